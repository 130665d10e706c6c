/* SPDX-License-Identifier: GPL-2.0-only */
/* The stores that scenarios begin with: see setups.c. */
#ifndef FOREBAY_TESTS_CORE_SETUPS_H
#define FOREBAY_TESTS_CORE_SETUPS_H

#include "store/store.h"

#define SETUP_NAMES_SIZE	(64u << 10)	/* of the name logs that setups and operations make */

/* What setups and operations are made of. */
void create(struct ps *ps, u32 file, u32 id);
void write_page(struct ps *ps, u32 page, u32 offset, u32 len, u32 seed);
void move_in(struct ps *ps, u32 page, u32 file, u64 index, u32 n, u32 len);

/* Setups of struct scenario. */
void setup_pages(struct ps *ps);
void setup_clean_page(struct ps *ps);
void setup_stale(struct ps *ps);
void setup_stale_reborn(struct ps *ps);
void setup_stale_with_time(struct ps *ps);
void setup_bound(struct ps *ps);
void setup_foreign(struct ps *ps);
void setup_old_store(struct ps *ps);
void setup_names(struct ps *ps);
void setup_names_bad_a(struct ps *ps);
void setup_names_bad_b(struct ps *ps);
void setup_bad_a(struct ps *ps);
void setup_bad_b(struct ps *ps);
void setup_damaged_file(struct ps *ps);
void setup_damaged_pages(struct ps *ps);

#endif
