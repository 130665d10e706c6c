// SPDX-License-Identifier: GPL-2.0-only
/*
 * The metrics of a write log in use. docs/writelog.md describes the values; docs/metrics.md the metrics.
 */
#include <stddef.h>

#include "family.h"

static const struct label labels[] = {
	{ "name", "name" }, { "uuid", "uuid" }, { }
};

static const char *const info[] = { "device", "origin", "mode", "health", NULL };

static const struct family families[] = {
	{ "forebay_writelog_info", false, "A write log in use; its labels describe it.",
	  ONE, .labels = info },
	{ "forebay_writelog_healthy", false, "1: neither the log nor its origin fails.",
	  IS_TEXT, .key = "health", .text = "ok" },
	{ "forebay_writelog_failed", false, "1: writing back has failed for long: a full log refuses writes.",
	  IS_TEXT, .key = "health", .text = "failed" },
	{ "forebay_writelog_volatile", false, "1: the log is ordinary memory, lost with the power.",
	  AS_IS, .key = "volatile_log" },
	{ "forebay_writelog_origin_bytes", false, "Length of the mapped device.",
	  SECTORS, .key = "origin_sectors" },
	{ "forebay_writelog_size_bytes", false, "Size of the log.", AS_IS, .key = "bytes_total" },
	{ "forebay_writelog_used_bytes", false, "How much of the log is in use, in whole generations.",
	  AS_IS, .key = "bytes_used" },
	{ "forebay_writelog_refused_blocks", false, "Blocks that the origin refuses, set aside in the log.",
	  AS_IS, .key = "refused" },
	{ "forebay_writelog_reads", true, "Reads.", AS_IS, .key = "reads" },
	{ "forebay_writelog_read_bytes", true, "Data asked for by reads.", SECTORS, .key = "read_sectors" },
	{ "forebay_writelog_read_hit_bytes", true, "Data of reads that came from the log.",
	  SECTORS, .key = "read_hit_sectors" },
	{ "forebay_writelog_lost_reads", true, "Reads of blocks that are damaged in the log.",
	  AS_IS, .key = "lost_reads" },
	{ "forebay_writelog_writes", true, "Writes.", AS_IS, .key = "writes" },
	{ "forebay_writelog_write_bytes", true, "Data written.", SECTORS, .key = "write_sectors" },
	{ "forebay_writelog_entries", true, "Entries made in the log.", AS_IS, .key = "entries" },
	{ "forebay_writelog_direct_writes", true, "Writes past the log, by a cleaner.",
	  AS_IS, .key = "direct_writes" },
	{ "forebay_writelog_discards", true, "Discards.", AS_IS, .key = "discards" },
	{ "forebay_writelog_zeroes", true, "Writes of zeros.", AS_IS, .key = "zeroes" },
	{ "forebay_writelog_slot_waits", true, "Writers that waited for a slot.",
	  AS_IS, .key = "slot_waits" },
	{ "forebay_writelog_space_waits", true, "Writers that waited in the queue for space.",
	  AS_IS, .key = "space_waits" },
	{ "forebay_writelog_full_waits", true,
	  "Writers that waited for a whole generation: the log was full.", AS_IS, .key = "full_waits" },
	{ "forebay_writelog_generations", true, "Generations begun.", AS_IS, .key = "generations" },
	{ "forebay_writelog_writeback_bytes", true, "Data written to the origin.",
	  SECTORS, .key = "writeback_sectors" },
	{ "forebay_writelog_writeback_bios", true, "Bios to the origin.", AS_IS, .key = "writeback_bios" },
	{ "forebay_writelog_along_bytes", true, "Data written early, beside data of an older generation.",
	  SECTORS, .key = "along_sectors" },
	{ "forebay_writelog_superseded_bytes", true, "Data not written, since there was a newer version.",
	  SECTORS, .key = "superseded_sectors" },
	{ "forebay_writelog_origin_errors", true, "Writebacks that failed because of the origin.",
	  AS_IS, .key = "origin_errors" },
	{ "forebay_writelog_medium_errors", true, "Damage found in the log.", AS_IS, .key = "medium_errors" },
	{ }
};

const struct source writelog_source = { labels, families };
