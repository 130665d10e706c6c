/* SPDX-License-Identifier: GPL-2.0-only */
/* What tests ask of the simulator (pm_sim.h): where stores are lost, which steps are left out. */
#ifndef FOREBAY_TESTS_CORE_PM_KINDS_H
#define FOREBAY_TESTS_CORE_PM_KINDS_H

#include "pm/env.h"

/* Where stores are lost: what is not written back, or only what is not fenced. */
enum sim_domain { SIM_MEM_CTRL, SIM_CPU_CACHE };

/* A step that is left out, to see that a test notices. */
enum sim_sabotage {
	SIM_NONE,
	SIM_NO_FENCE,	/* the nth fence does nothing */
	SIM_NO_FLUSH,	/* the nth flush does nothing */
	SIM_CACHED,	/* the nth copy or zeroing stays in the CPU's caches */
};

/* So many random samples that all pairs and, where it can be, all states come along. */
#define SIM_THOROUGH	1000

/* Looks at one crash state; false: it is wrong, stop here. */
typedef bool (*sim_visit_fn)(void *image);

#endif
