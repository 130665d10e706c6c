/* SPDX-License-Identifier: GPL-2.0-only */
/* Running one operation on a name log with a power cut at every point. See names_crash.c. */
#ifndef FOREBAY_TESTS_CORE_NAMES_CRASH_H
#define FOREBAY_TESTS_CORE_NAMES_CRASH_H

#include "cuts.h"
#include "names_log.h"

struct names_scenario {
	const char *name;
	bool raw;			/* setup and operation start without a log */
	void (*setup)(struct nl *nl);	/* NULL: an empty log */
	void (*op)(struct nl *nl);
	u32 spared;			/* steps that can be left out without harm */
};

u32 names_open_flags(void);
void names_setup(const struct names_scenario *scenario, struct nl *nl, enum sim_domain domain);
const char *names_explore(const struct names_scenario *scenario, struct nl *nl, enum sim_domain domain,
			  u32 samples, enum sim_sabotage sabotage, u32 nth);

#endif
