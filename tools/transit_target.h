/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A mapped device whose target is a transit cache.
 */
#ifndef FOREBAY_TOOLS_TRANSIT_TARGET_H
#define FOREBAY_TOOLS_TRANSIT_TARGET_H

#include <stdbool.h>
#include <stdint.h>

#include "mapped.h"

struct transit_target {
	struct mapped mapped;
	char health[16];		/* "ok", "error" */
	char policy[16];
	uint64_t slots_used, slots_total;
	const char *values;		/* "key value key value", in mapped.status */
	char device[64];		/* as in the table: major:minor */
	const char *options;		/* likewise, in mapped.table */
};

bool transit_parse(struct transit_target *target);
bool transit_find(const char *name, struct transit_target *target);

#endif
