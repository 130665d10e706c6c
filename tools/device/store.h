/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What a cache holds.
 */
#ifndef FOREBAY_TOOLS_STORE_H
#define FOREBAY_TOOLS_STORE_H

#include "base/json.h"
#include "device.h"

/* Counted record by record. */
struct store_counts {
	u64 files_used;
	u64 files_unflushed;	/* have a size or time that may not be durable on the lower file system */
	u64 pages_out_of_sync;
	u64 pages_clean;
	u64 pages_free;
	u64 records_damaged;
	u64 names_size;		/* of the name log, in bytes; 0: there is none */
	u64 names_records;	/* changes of names that a mount replays */
	u64 names_damaged;	/* inconsistencies of the name log that forbid mounting */
};

void store_count(const char *path, const struct ps *ps, struct store_counts *counts);
void store_describe(const struct ps *ps, const struct store_counts *counts, json_object *json);

#endif
