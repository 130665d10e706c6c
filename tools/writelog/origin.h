/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * How a log recognises its origin across boots: a name and a fingerprint.
 *
 * writelog/ has the verbs of write logs that transit caches don't have. It uses base/, sys/, mapped/,
 * device/ and core/.
 */
#ifndef FOREBAY_TOOLS_WRITELOG_ORIGIN_H
#define FOREBAY_TOOLS_WRITELOG_ORIGIN_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "../core/log/log.h"

void origin_name(const char *path, dev_t rdev, u8 id[WL_ORIGIN_ID_SIZE]);
bool origin_fingerprint(const struct wl *wl, const char *path, uint64_t sectors, u32 *fingerprint);

#endif
