/* SPDX-License-Identifier: GPL-2.0-only */
/* Running one operation on a page store with a power cut at every point. See crash.c. */
#ifndef FOREBAY_TESTS_CORE_CRASH_H
#define FOREBAY_TESTS_CORE_CRASH_H

#include "cuts.h"
#include "view.h"

struct scenario {
	const char *name;
	bool raw;			/* setup and operation start without a store */
	void (*setup)(struct ps *ps);	/* NULL: an empty store */
	void (*op)(struct ps *ps);
	u32 damaged;			/* until so many acknowledgments ps_check() reports: it is a repair */
	u32 spared;			/* steps that can be left out without harm */
};

u32 crash_open_flags(enum sim_domain domain);
struct ps crash_setup(const struct scenario *scenario, enum sim_domain domain);
const char *crash_explore(const struct scenario *scenario, struct ps *ps, enum sim_domain domain,
			  u32 samples, enum sim_sabotage sabotage, u32 nth);

/* Helpers that setups and operations share. */
void test_format(u32 nr_files);
void test_format_names(u32 nr_files, u64 names_size);
bool test_make_names(void *region, u64 size, const void *uuid);
struct ps_handle test_handle(u32 id);
void test_fill(u8 *data, u32 seed);
void test_report(void *arg, const char *what, u64 number, const char *why);
u64 test_check(const struct ps *ps);

#endif
