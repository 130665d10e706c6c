/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The state of a write log in use is one JSON object. docs/writelog.md lists its keys.
 */
#ifndef FOREBAY_TOOLS_WRITELOG_STATUS_H
#define FOREBAY_TOOLS_WRITELOG_STATUS_H

#include <stdbool.h>

struct mapped;

bool writelog_gather(void *all, const char *name, const struct mapped *mapped);

#endif
