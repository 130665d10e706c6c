/* SPDX-License-Identifier: GPL-2.0-only */
/* The lines of top's other screen: callers_table.c */
#ifndef FOREBAY_TOOLS_CALLERS_TABLE_H
#define FOREBAY_TOOLS_CALLERS_TABLE_H

struct lines;
struct look;

void lines_of_callers(struct lines *lines, const struct look *look);

#endif
