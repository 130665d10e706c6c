/* SPDX-License-Identifier: GPL-2.0-only */
/* Which processes make sync calls on which files, since the last look: callers.c */
#ifndef FOREBAY_TOOLS_CALLERS_H
#define FOREBAY_TOOLS_CALLERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* A process and a file that it made durable. */
struct caller {
	int pid;
	char program[17];
	dev_t dev;		/* of the mount */
	uint64_t inode;
	uint64_t calls, below;	/* all, and those that waited for storage */
	uint64_t bins[64];	/* calls by the binary logarithm of their bin's limit in ns */
};

/* All of them. */
struct look {
	struct caller **caller;	/* those with most calls first */
	size_t n;
	double seconds;
	bool lost;		/* some calls are missing */
};

struct callers;

struct callers *callers_begin(const char **why);
void callers_read(struct callers *callers);
void callers_look(struct callers *callers, struct look *look);
void callers_next(struct callers *callers);
void callers_end(struct callers *callers);

#endif
