/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Records that prevent a mount, and setting them aside.
 */
#ifndef FOREBAY_TOOLS_REPAIR_H
#define FOREBAY_TOOLS_REPAIR_H

#include <stdbool.h>

#include "base/verb.h"
#include "device/store.h"

struct damage {
	u32 *files, *pages;		/* numbers of records; room for all there are */
	u32 nr_files, nr_pages;
	u64 supers;			/* opening the store rewrites a damaged copy from the other */
	u64 names;			/* findings in the name log, which is left as it is */
	u64 lost;			/* pages of files: no repair brings them back */
};

bool damage_begin(struct damage *damage, const struct ps *ps);
void damage_note(struct damage *damage, const char *what, u64 number);
void damage_end(struct damage *damage);
enum exit_status damage_repair(struct damage *damage, const struct device *dev, bool yes);

#endif
