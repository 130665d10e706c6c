/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What a write log says when it is replayed. See writelog_view.c.
 */
#ifndef FOREBAY_TESTS_CORE_WRITELOG_VIEW_H
#define FOREBAY_TESTS_CORE_WRITELOG_VIEW_H

#include "log/log.h"

/* Of every log that is tested; small, so that millions can be replayed. */
#define LOG_SIZE	WL_MIN_SIZE
#define LOG_GENS	4
#define LOG_CHUNKS	3
#define LOG_CHUNK_SIZE	WL_MIN_CHUNK_SIZE

#define LOG_ENTRIES	128

struct log_view_entry {
	u64 order, sector, nr_sectors;
	enum wl_op op;
	u64 hash;		/* of the data */
};

struct log_view {
	enum wl_error err;	/* other than WL_OK: the rest is empty */
	const char *damage;	/* the first; NULL: none */
	u8 uuid[WL_UUID_SIZE];
	u64 origin_sectors;
	u32 fingerprint;
	struct wl_gen_info gens[LOG_GENS];
	u32 n;
	struct log_view_entry entries[LOG_ENTRIES];
};

void log_view_read(struct log_view *view, const struct wl *wl);
void log_view_open(struct log_view *view, void *image);
/*
 * NULL, or why @now cannot come from a power cut between @before and @after. With @piecewise a part of the
 * entries that @after has more may be there.
 */
const char *log_view_between(const struct log_view *before, const struct log_view *after,
			     const struct log_view *now, bool piecewise);

#endif
