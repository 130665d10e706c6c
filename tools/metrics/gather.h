/* SPDX-License-Identifier: GPL-2.0-only */
/* What `forebay metrics` prints and `forebay top` compares: all that is in use, in the words of `status`. */
#ifndef FOREBAY_TOOLS_GATHER_H
#define FOREBAY_TOOLS_GATHER_H

#include <json-c/json.h>
#include <stdbool.h>

enum group { CACHES, WRITELOGS, TRANSITS, NR_GROUPS };

bool gather_groups(struct json_object *groups[NR_GROUPS]);

#endif
