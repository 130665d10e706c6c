/* SPDX-License-Identifier: GPL-2.0-only */
/* The text of one cell of top's tables. */
#ifndef FOREBAY_TOOLS_CELL_H
#define FOREBAY_TOOLS_CELL_H

#include "sample.h"

#define CELL_TEXT	64

/* A column. @cell writes the text for one object, from the keys and the unit. */
struct column {
	const char *title;
	int width;		/* negative: left-aligned, as in printf() */
	void (*cell)(const struct column *column, const struct change *change, char text[CELL_TEXT]);
	const char *key, *other;
	uint64_t unit;		/* bytes, or what a unit of @key counts */
};

void cell_name(const struct column *column, const struct change *change, char text[CELL_TEXT]);
void cell_fill(const struct column *column, const struct change *change, char text[CELL_TEXT]);
void cell_rate(const struct column *column, const struct change *change, char text[CELL_TEXT]);
void cell_mebibytes(const struct column *column, const struct change *change, char text[CELL_TEXT]);
void cell_share(const struct column *column, const struct change *change, char text[CELL_TEXT]);
void cell_left(const struct column *column, const struct change *change, char text[CELL_TEXT]);
void cell_syncs(const struct column *column, const struct change *change, char text[CELL_TEXT]);
void percentile_text(char text[CELL_TEXT], const uint64_t bins[64], uint64_t count, unsigned int percent);
void cell_percentile(const struct column *column, const struct change *change, char text[CELL_TEXT]);

#endif
