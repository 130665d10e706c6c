/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The state of a transit cache is one JSON object. docs/transit.md lists its keys.
 */
#ifndef FOREBAY_TOOLS_TRANSIT_STATUS_H
#define FOREBAY_TOOLS_TRANSIT_STATUS_H

#include <stdbool.h>

struct mapped;

bool transit_gather(void *all, const char *name, const struct mapped *mapped);

#endif
