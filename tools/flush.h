/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Having a target write down all that it holds, with progress.
 */
#ifndef FOREBAY_TOOLS_FLUSH_H
#define FOREBAY_TOOLS_FLUSH_H

#include "mapped.h"
#include "message.h"

/* In bytes or blocks, as the target counts. */
struct amounts {
	uint64_t held;			/* at most; now */
	uint64_t passed_on;		/* since the target was made, or on its way */
	uint64_t refused;		/* how often some of that was */
};

struct flush {
	const char *name;		/* of the mapped device */
	const char *message;		/* that has the target do it */
	bool quiet;			/* no progress */
	bool counts;			/* what it passes on first is what it held, and @look says how much */
	bool (*look)(const char *name, struct amounts *now);
	const char *(*text)(char text[SIZE_TEXT], uint64_t amount);
	const char *rest;		/* what is to be said of what is left */
	struct amounts before;		/* flush_run()'s own */
};

enum exit_status flush_run(struct flush *flush);

#endif
