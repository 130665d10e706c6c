/* SPDX-License-Identifier: GPL-2.0-only */
/* Making a cache, for other verbs. */
#ifndef FOREBAY_TOOLS_FORMAT_H
#define FOREBAY_TOOLS_FORMAT_H

#include <stdbool.h>

bool format_cache(const char *path);

#endif
