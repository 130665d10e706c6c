/* SPDX-License-Identifier: GPL-2.0-only */
/* A name log, storage that is made up, and what nl_judge() says of both. See names_judged.c. */
#ifndef FOREBAY_TESTS_CORE_NAMES_JUDGED_H
#define FOREBAY_TESTS_CORE_NAMES_JUDGED_H

#include "names/layout.h"
#include "names/replay.h"
#include "names_log.h"
#include "test.h"

#define DIRS	8

/* What storage has of a directory or file. */
struct on_storage {
	u64 counter;
	s64 ctime;
	int err;
	bool forbidden;		/* it must not be looked at */
	u32 looks;
};

extern struct on_storage there[DIRS];
extern u8 region[NAMES_SIZE];
extern struct nl nl;
extern struct nl_judge judge;
extern u8 bits[256];
extern u32 max_nodes;		/* for run() */

void start(void);
int run(void);
bool gives(u64 counter, s64 ctime, enum nl_verdict verdict);
bool gives_attribute(u64 place, u64 counter, s64 ctime, bool expected);
bool stored(u64 place);
struct nl_change link_in(u32 dir, u64 before, s64 ctime, u32 object);
u64 append(struct nl_change change);

/* names_judge_objects.c */
void names_judge_objects_tests(void);

#endif
