/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The state of the simulator: pm_sim.c changes the images, pm_visit.c visits what a power cut may leave of
 * them. For these two files only.
 */
#ifndef FOREBAY_TESTS_CORE_PM_STATE_H
#define FOREBAY_TESTS_CORE_PM_STATE_H

#include "pm_kinds.h"

#define WORD		8
#define MAX_VALUES	8	/* of one word between two fences */
#define MAX_UNDO	65536

struct pending {
	u32 word;
	u32 nr_values;
	u32 written_back;	/* so many of the values */
	u32 thread;		/* that wrote them back */
	u64 values[MAX_VALUES];
};

struct sim_state {
	enum sim_domain domain;
	u32 thread;			/* that stores, flushes and fences now */
	size_t size;
	u8 *live, *durable;
	struct pending *pending;	/* in the order of their first store */
	u32 nr_pending;
	u32 *slot;			/* of each word: index in pending, plus 1 */
	struct { u32 word; u64 value; } undo[MAX_UNDO];
	u32 nr_undo;
	sim_visit_fn visit;
	bool visiting;
	u32 samples;
	bool failed;
	u8 *kept;			/* where a state is to be kept; NULL: done */
	u32 keep_after;			/* fences */
	bool any_lost;			/* the medium has lost a line since the power went on */
	void (*before_read)(const void *from);
	void (*after_copy)(void);
	enum sim_sabotage sabotage;
	u32 sabotage_nth;
	bool sabotage_done;
	u32 count[SIM_CACHED + 1];
	u64 states, sampled;
	u64 random;
};

extern struct sim_state sim;

static inline u64 *word_at(u8 *image, u32 word)
{
	return (u64 *)(image + (size_t)word * WORD);
}

#endif
