/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What a write log or a transit cache in use says of itself.
 */
#ifndef FOREBAY_TOOLS_TARGET_H
#define FOREBAY_TOOLS_TARGET_H

#include <stdbool.h>
#include <stdint.h>

#include "mapped.h"

/* How much of something is in use. */
struct amount {
	uint64_t used, total;
};

struct target {
	struct mapped mapped;
	char health[16];		/* "ok", "error"; of a write log also "failed" */
	char mode[16];			/* of a write log: "write", "cleaning", "cleaner"; else the policy */
	struct amount pieces;		/* generations of a write log, slots of a transit cache */
	struct amount bytes;		/* of a write log: of generations; what these hold may be less */
	const char *values;		/* "key value key value", in mapped.status */
	char below[64], log[64];	/* as in the table: major:minor; a transit cache has no log */
	const char *options;		/* like values, in mapped.table */
};

bool target_parse(const struct mapped_kind *kind, struct target *target);
bool target_read(const char *name, const struct mapped_kind *kind, struct target *target);
bool target_find(const char *name, const struct mapped_kind *kind, struct target *target);

#endif
