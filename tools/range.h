/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Ranges of files, as the verbs take and show them.
 */
#ifndef FOREBAY_TOOLS_RANGE_H
#define FOREBAY_TOOLS_RANGE_H

#include <linux/types.h>
#include <stdbool.h>
#include <stdint.h>

struct json_object;

struct file_range {
	int fd;
	const char *path;
	uint64_t offset, length;	/* length 0: up to the end */
};

bool size_parse(const char *text, __u64 *size);
bool range_parse(const char *text, uint64_t *offset, uint64_t *length);
struct json_object *gather_file(const char *path, bool *good);
void print_file(struct json_object *file);

#endif
