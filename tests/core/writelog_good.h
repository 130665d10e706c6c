/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A good log, which tests damage (writelog_damage.c, writelog_heal.c). It has three generations: 1 and 0 are
 * sealed, 2 is open. Data have checksums.
 */
#ifndef FOREBAY_TESTS_CORE_WRITELOG_GOOD_H
#define FOREBAY_TESTS_CORE_WRITELOG_GOOD_H

#include "log/layout.h"
#include "writelog_crash.h"

#define ENTRIES		13	/* of the good log */
#define WAYS_TO_SPOIL	66	/* of spoil_word() */

/* What a replay of the image gave. */
struct good_found {
	u32 entries;
	u32 damage;
	struct wl_damage first;
	struct wl_entry bad_data;	/* of a WL_BAD_DATA */
};

extern u8 good[LOG_SIZE];		/* the image of the good log */
extern struct log made;			/* how it was made; its wl is open on the simulator's image */
extern struct good_found got;

void good_make(enum sim_domain where);
void good_restore(void);
void replay(void);
u8 *chunk_header(u32 gen, u32 chunk);
u8 *entry_header(u32 gen, u32 chunk, u32 index);
void flip(u8 *at, u32 bit);
void spoil_word(__le64 *word, u32 way);

#endif
