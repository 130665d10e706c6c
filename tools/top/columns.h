/* SPDX-License-Identifier: GPL-2.0-only */
/* Text by the columns that it takes on a terminal: columns.c */
#ifndef FOREBAY_TOOLS_COLUMNS_H
#define FOREBAY_TOOLS_COLUMNS_H

#include <stddef.h>

int columns_before(const char *text, int most, size_t *bytes);

#endif
