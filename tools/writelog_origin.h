/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What names an origin, across boots.
 */
#ifndef FOREBAY_TOOLS_WRITELOG_ORIGIN_H
#define FOREBAY_TOOLS_WRITELOG_ORIGIN_H

#include <sys/types.h>

#include "../core/writelog.h"

void origin_name(const char *path, dev_t rdev, u8 id[WL_ORIGIN_ID_SIZE]);

#endif
