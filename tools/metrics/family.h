/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The families of metrics that `forebay metrics` can print. cache.c, writelog.c and transit.c have a table
 * each; metrics.c prints them.
 *
 * metrics/ turns what the status verbs gather into OpenMetrics text. It uses base/, mapped/, cache/,
 * writelog/ and transit/.
 */
#ifndef FOREBAY_TOOLS_FAMILY_H
#define FOREBAY_TOOLS_FAMILY_H

#include <json-c/json.h>
#include <stdbool.h>

/* How a value in the JSON object becomes the value of a metric. */
enum scale {
	AS_IS,
	PAGES,			/* pages to bytes */
	SECTORS,		/* sectors of 512 bytes to bytes */
	NANOSECONDS,		/* to seconds */
	IS_NOT_ZERO,		/* 1: the number is not 0 */
	IS_TEXT,		/* 1: the string is @text */
	ONE,			/* always 1: the labels say it all */
	HISTOGRAM,		/* a latency as base/latency.h has it, in seconds; @counter doesn't matter */
};

/* A family of metrics: one sample for each object. */
struct family {
	const char *name;	/* without "_total", which a counter's sample has besides */
	bool counter;		/* else a gauge */
	const char *help;
	enum scale scale;
	const char *key;	/* in the object; of @values if the object has such an object */
	const char *text;	/* IS_TEXT: the string that counts as 1 */
	const char *const *labels;	/* more labels: keys of the object; NULL: none */
};

/* A label that every sample of a source has. */
struct label {
	const char *name;
	const char *key;	/* in the object; an array gives its first string */
};

/* A kind of object, and what is printed of it. */
struct source {
	const struct label *labels;	/* the last has no name */
	const struct family *families;	/* the last has no name */
};

extern const struct source cache_source, writelog_source, transit_source;

#endif
