/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A mapped device whose target is a write log, through libdevmapper.
 */
#ifndef FOREBAY_TOOLS_WRITELOG_TARGET_H
#define FOREBAY_TOOLS_WRITELOG_TARGET_H

#include <json-c/json.h>
#include <stdbool.h>
#include <stdint.h>

/* As device-mapper knows it; its names have 15 characters at most. */
#define WRITELOG_TARGET	"forebay-wlog"

#define WRITELOG_TEXT	4096

struct writelog_target {
	char health[16];		/* "ok", "error", "failed" */
	char mode[16];			/* "write", "cleaning", "cleaner" */
	uint64_t generations_used, generations_total;
	uint64_t bytes_used, bytes_total;
	char values[WRITELOG_TEXT];	/* "key value key value" */
	char origin[64], log[64];	/* as in the table: major:minor */
	uint64_t sectors;
	int open_count;
	bool suspended;
};

typedef bool (*writelog_each_fn)(void *arg, const char *name);

bool target_create(const char *name, uint64_t sectors, const char *parameters);
bool target_read(const char *name, struct writelog_target *target);
bool target_each(writelog_each_fn each, void *arg);
int target_message(const char *name, const char *message);
int target_remove(const char *name);

#endif
