/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What all caches, write logs and transit caches counted at one moment, as JSON; and what changed between two
 * such moments.
 *
 * top/ shows rates of what the status verbs gather: sample.c takes a sample, cell.c makes text of two of
 * them, table.c lines of these texts, by columns.c, and top.c shows the lines. callers.c asks the kernel
 * which processes make sync calls, file_name.c finds names of their files, and callers_table.c makes lines
 * of these. It uses base/, sys/, mapped/ and metrics/gather.h.
 */
#ifndef FOREBAY_TOOLS_SAMPLE_H
#define FOREBAY_TOOLS_SAMPLE_H

#include <json-c/json.h>
#include <stdbool.h>
#include <stdint.h>

#include "metrics/gather.h"

struct sample {
	double when;			/* seconds of the monotonic clock */
	struct json_object *groups[NR_GROUPS];	/* arrays */
};

/* One object at two moments. */
struct change {
	struct json_object *now, *before;	/* @before is NULL if the object is new */
	double seconds;
};

bool sample_take(struct sample *sample);
void sample_free(struct sample *sample);
struct change sample_change(const struct sample *now, const struct sample *before, enum group group,
			    size_t nr);
bool change_of(const struct change *change, const char *key, uint64_t *difference);

#endif
