/* SPDX-License-Identifier: GPL-2.0-only */
/* Leaving out one step of an operation at a time. See sabotage.c. */
#ifndef FOREBAY_TESTS_CORE_SABOTAGE_H
#define FOREBAY_TESTS_CORE_SABOTAGE_H

#include "pm_sim.h"

#define SABOTAGE_SAMPLES	100

extern const char *const domain_names[];	/* by enum sim_domain */

/*
 * struct sabotaged - an operation of which steps are left out
 * @name: of the scenario
 * @spared: so many steps can be left out without a wrong state
 * @scenario: what @explore is given
 * @explore: sets up, and runs the operation with a power cut everywhere and step @nth of a kind left out;
 *	returns what is wrong with the first wrong state, or NULL
 */
struct sabotaged {
	const char *name;
	u32 spared;
	const void *scenario;
	const char *(*explore)(const void *scenario, enum sim_domain domain, enum sim_sabotage what, u32 nth);
};

void sabotage_all_steps(const struct sabotaged *operation);

#endif
