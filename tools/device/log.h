/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A write log on a device or in an image, and what it holds.
 */
#ifndef FOREBAY_TOOLS_WRITELOG_LOG_H
#define FOREBAY_TOOLS_WRITELOG_LOG_H

#include "../core/log/log.h"
#include "store.h"

/* Counted by a replay. */
struct log_counts {
	u64 generations_free, generations_open, generations_sealed;
	u64 entries, writes, discards;	/* zeroes count as discards: neither has data */
	u64 bytes;			/* of data, older versions included */
	u64 damaged;			/* damaged places */
};

bool log_open(struct wl *wl, const struct device *dev);
bool log_count(const char *path, const struct wl *wl, struct log_counts *counts);
void log_describe(const struct wl *wl, const struct log_counts *counts, json_object *json);
const char *log_origin(char text[2 * WL_ORIGIN_ID_SIZE + 1], const u8 id[WL_ORIGIN_ID_SIZE]);

#endif
