/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The findings of a check: printed or listed one by one, then their meaning.
 */
#ifndef FOREBAY_TOOLS_FINDINGS_H
#define FOREBAY_TOOLS_FINDINGS_H

#include "base/json.h"
#include "base/verb.h"
#include "device.h"

#define FINDING_KINDS	8	/* at most */

/* Findings of one kind have the same meaning. */
struct finding_kind {
	const char *name;
	const char *meaning;
};

struct findings {
	const char *path;
	const struct finding_kind *kinds;
	u64 of_kind[FINDING_KINDS];
	u64 nr;
	bool all;			/* print all of them, however many */
	bool repairs;			/* they are going to be repaired */
	json_object *list;		/* NULL: print them */
};

bool findings_count(struct findings *findings, unsigned int kind);
void findings_print_rest(const struct findings *findings);
void findings_conclude(const struct findings *findings, u64 found);
void print_superblock_finding(const char *path, const char *key, const char *text);
void advise_unopened(const struct device *dev, bool fits, const char *format);

#endif
