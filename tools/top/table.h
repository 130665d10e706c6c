/* SPDX-License-Identifier: GPL-2.0-only */
/* The lines that top shows. */
#ifndef FOREBAY_TOOLS_TABLE_H
#define FOREBAY_TOOLS_TABLE_H

#include "sample.h"

#define LINE_TEXT	256

enum line_kind { LINE_TITLE, LINE_OBJECT, LINE_NOTE };

struct line {
	enum line_kind kind;
	char text[LINE_TEXT];
};

struct lines {
	struct line *line;
	size_t n;
};

struct line *lines_add(struct lines *lines, enum line_kind kind);
void line_append(struct line *line, int width, const char *text);
void lines_make(struct lines *lines, const struct sample *now, const struct sample *before);
void lines_free(struct lines *lines);

#endif
