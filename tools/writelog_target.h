/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A mapped device whose target is a write log.
 */
#ifndef FOREBAY_TOOLS_WRITELOG_TARGET_H
#define FOREBAY_TOOLS_WRITELOG_TARGET_H

#include <stdbool.h>
#include <stdint.h>

#include "mapped.h"

struct writelog_target {
	struct mapped mapped;
	char health[16];		/* "ok", "error", "failed" */
	char mode[16];			/* "write", "cleaning", "cleaner" */
	uint64_t generations_used, generations_total;
	uint64_t bytes_used, bytes_total;	/* of generations: what they hold may be less */
	const char *values;		/* "key value key value", in mapped.status */
	char origin[64], log[64];	/* as in the table: major:minor */
	const char *options;		/* like values, in mapped.table */
};

bool writelog_parse(struct writelog_target *target);
bool writelog_find(const char *name, struct writelog_target *target);
void writelog_say_mode(const char *name);

#endif
