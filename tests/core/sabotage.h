/* SPDX-License-Identifier: GPL-2.0-only */
/* Cutting the power at every point of an operation, also with a step left out. See sabotage.c. */
#ifndef FOREBAY_TESTS_CORE_SABOTAGE_H
#define FOREBAY_TESTS_CORE_SABOTAGE_H

#include "pm_sim.h"

/*
 * struct operation - what is cut everywhere, and of which steps are left out
 * @group: of tests, for the report
 * @name: of the scenario
 * @spared: so many steps can be left out without a wrong state
 * @scenario: what @explore is given
 * @explore: sets up, and runs the operation with a power cut everywhere and step @nth of a kind left out;
 *	returns what is wrong with the first wrong state, or NULL
 */
struct operation {
	const char *group;
	const char *name;
	u32 spared;
	const void *scenario;
	const char *(*explore)(const void *scenario, enum sim_domain domain, u32 samples,
			       enum sim_sabotage what, u32 nth);
};

void cut_everywhere(const struct operation *operation);
void sabotage_all_steps(const struct operation *operation);

#endif
