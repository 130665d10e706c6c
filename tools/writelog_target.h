/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A mapped device whose target is a write log.
 */
#ifndef FOREBAY_TOOLS_WRITELOG_TARGET_H
#define FOREBAY_TOOLS_WRITELOG_TARGET_H

#include <stdbool.h>
#include <stdint.h>

#include "mapped.h"

/* As device-mapper knows it; its names have 15 characters at most. */
#define WRITELOG_TARGET	"forebay-wlog"

struct writelog_target {
	struct mapped mapped;
	char health[16];		/* "ok", "error", "failed" */
	char mode[16];			/* "write", "cleaning", "cleaner" */
	uint64_t generations_used, generations_total;
	uint64_t bytes_used, bytes_total;
	const char *values;		/* "key value key value", in mapped.status */
	char origin[64], log[64];	/* as in the table: major:minor */
};

bool target_parse(struct writelog_target *target);
bool target_read(const char *name, struct writelog_target *target);

#endif
