// SPDX-License-Identifier: GPL-2.0-only
/*
 * The metrics of a mounted cache. docs/sysfs.md describes the values; docs/metrics.md the metrics.
 */
#include <stddef.h>

#include "family.h"

static const struct label labels[] = {
	{ "cache", "device" }, { "uuid", "cache_uuid" }, { "mount", "mountpoints" }, { }
};

static const char *const info[] = { "lower", "lower_uuid", "mode", "persistence", NULL };

static const struct family families[] = {
	{ "forebay_cache_info", false, "A mounted cache; its labels describe it.", ONE, .labels = info },
	{ "forebay_cache_volatile", false, "1: the cache is ordinary memory, lost with the power.",
	  AS_IS, .key = "volatile_cache" },
	{ "forebay_cache_size_bytes", false, "DAX pages of the cache.", PAGES, .key = "pages_total" },
	{ "forebay_cache_free_bytes", false, "Pages that hold nothing.", PAGES, .key = "pages_free" },
	{ "forebay_cache_clean_bytes", false, "Pages that the lower file has, too, durably.",
	  PAGES, .key = "pages_clean" },
	{ "forebay_cache_out_of_sync_bytes", false, "Pages that are durable in the cache only.",
	  PAGES, .key = "pages_out_of_sync" },
	{ "forebay_cache_dirty_bytes", false, "Out-of-sync pages that are written through a mapping.",
	  PAGES, .key = "pages_dirty" },
	{ "forebay_cache_lost_bytes", false,
	  "Pages that the device can't read any more, and storage lacks.", PAGES, .key = "pages_lost" },
	{ "forebay_cache_unplaced_bytes", false, "Pages found at mount whose lower file can't be opened.",
	  PAGES, .key = "pages_unplaced" },
	{ "forebay_cache_busy_bytes", false, "Pages that the last drain found in use by direct I/O.",
	  PAGES, .key = "pages_busy" },
	{ "forebay_cache_pinned_bytes", false, "Pages that are pinned or locked.",
	  PAGES, .key = "pages_pinned" },
	{ "forebay_cache_pin_limit_bytes", false, "How much may be pinned in all.",
	  PAGES, .key = "pin_limit" },
	{ "forebay_cache_pin_limit_user_bytes", false, "How much one user may pin.",
	  PAGES, .key = "pin_limit_user" },
	{ "forebay_cache_recovered_bytes", false, "Out-of-sync pages found at mount.",
	  PAGES, .key = "pages_recovered" },
	{ "forebay_cache_files", false, "File records of the cache.", AS_IS, .key = "files_total" },
	{ "forebay_cache_files_used", false, "File records in use.", AS_IS, .key = "files_used" },
	{ "forebay_cache_syncs_absorbed", true, "Sync calls answered from the cache alone.",
	  AS_IS, .key = "syncs_absorbed" },
	{ "forebay_cache_syncs_lower", true, "Sync calls that also went to the lower file system.",
	  AS_IS, .key = "syncs_lower" },
	{ "forebay_cache_absorbed_bytes", true, "Pages moved into the cache.",
	  PAGES, .key = "pages_absorbed" },
	{ "forebay_cache_written_back_bytes", true, "Pages written to the lower file system.",
	  PAGES, .key = "pages_written_back" },
	{ "forebay_cache_reclaimed_bytes", true, "Clean pages given up for others.",
	  PAGES, .key = "pages_reclaimed" },
	{ "forebay_cache_full", true, "Syncs that went to storage because too few pages were free.",
	  AS_IS, .key = "cache_full" },
	{ "forebay_cache_sync_memory_seconds", .help = "Sync calls that waited for their own stores alone.",
	  .scale = HISTOGRAM, .key = "sync_latency_memory" },
	{ "forebay_cache_sync_move_seconds", .help = "Sync calls that moved pages into the cache.",
	  .scale = HISTOGRAM, .key = "sync_latency_move" },
	{ "forebay_cache_sync_storage_seconds", .help = "Sync calls that waited for the lower file system.",
	  .scale = HISTOGRAM, .key = "sync_latency_storage" },
	{ "forebay_cache_lower_sync_seconds", false, "Average cost of a sync of the lower file system.",
	  NANOSECONDS, .key = "lower_sync_ns" },
	{ "forebay_cache_lower_sync_page_seconds", false, "Its average cost for each page besides.",
	  NANOSECONDS, .key = "lower_sync_page_ns" },
	{ "forebay_cache_absorb_seconds", false, "Average cost of an absorbed sync.",
	  NANOSECONDS, .key = "absorb_ns" },
	{ "forebay_cache_absorb_page_seconds", false, "Its average cost for each page besides.",
	  NANOSECONDS, .key = "absorb_page_ns" },
	{ "forebay_cache_absorb_max_bytes", false,
	  "Most volatile data that a sync may have to be absorbed.", PAGES, .key = "absorb_max" },
	{ "forebay_cache_writeback_age_seconds", false,
	  "Age at which data are written back while storage is idle.", AS_IS, .key = "writeback_age" },
	{ "forebay_cache_names_on", false, "1: the name log is on.",
	  IS_TEXT, .key = "names_state", .text = "on" },
	{ "forebay_cache_names_size_bytes", false, "Size of the name log.", AS_IS, .key = "names_size" },
	{ "forebay_cache_names_used_bytes", false, "How much of the name log is in use.",
	  AS_IS, .key = "names_used" },
	{ "forebay_cache_names_recorded", true,
	  "Changes of names and attributes that the name log was told.", AS_IS, .key = "names_recorded" },
	{ "forebay_cache_names_barriers", true, "Changes that the name log couldn't hold in full.",
	  AS_IS, .key = "names_barriers" },
	{ "forebay_cache_names_switched_off", true, "How often the name log was off for a moment.",
	  AS_IS, .key = "names_switched_off" },
	{ "forebay_cache_names_replayed", false, "Changes that the mount found in the name log.",
	  AS_IS, .key = "names_replayed" },
	{ "forebay_cache_writeback_errors", true, "Failed attempts to write pages back.",
	  AS_IS, .key = "writeback_errors" },
	{ "forebay_cache_writeback_failing", false, "1: the latest attempt to write back failed.",
	  IS_NOT_ZERO, .key = "last_error" },
	{ }
};

const struct source cache_source = { labels, families };
