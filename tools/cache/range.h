/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Ranges of files, as verbs take them from the command line.
 */
#ifndef FOREBAY_TOOLS_RANGE_H
#define FOREBAY_TOOLS_RANGE_H

#include <stdint.h>

#include "base/verb.h"

struct file_range {
	int fd;
	const char *path;
	uint64_t offset, length;	/* length 0: up to the end */
};

#define RANGE_HELP \
	"RANGE is OFFSET:LENGTH, or OFFSET, which means from there to the end, in bytes\n" \
	"or with k, m, g or t behind the number; all of the file if it is left out.\n\n"

enum exit_status range_open(const struct verb *verb, int argc, char **argv, struct file_range *range);
void range_problem(const char *verb, const char *path);

#endif
