// SPDX-License-Identifier: GPL-2.0-only
/*
 * The metrics of a transit cache. docs/transit.md describes the values; docs/metrics.md the metrics.
 */
#include <stddef.h>

#include "family.h"

static const struct label labels[] = {
	{ "name", "name" }, { }
};

static const char *const info[] = { "device", "policy", "health", NULL };

static const struct family families[] = {
	{ "forebay_transit_info", false, "A transit cache; its labels describe it.", ONE, .labels = info },
	{ "forebay_transit_healthy", false, "1: the device takes writes.",
	  IS_TEXT, .key = "health", .text = "ok" },
	{ "forebay_transit_device_bytes", false, "Length of the mapped device.", SECTORS, .key = "sectors" },
	{ "forebay_transit_slots", false, "Slots of the cache, a block each.", AS_IS, .key = "slots_total" },
	{ "forebay_transit_slots_used", false, "Slots in use.", AS_IS, .key = "slots_used" },
	{ "forebay_transit_refused_blocks", false, "Blocks that the device refuses, kept in the cache.",
	  AS_IS, .key = "refused" },
	{ "forebay_transit_read_blocks", true, "Blocks read.", AS_IS, .key = "read_blocks" },
	{ "forebay_transit_read_hits", true, "Blocks read that were in the cache.",
	  AS_IS, .key = "read_hits" },
	{ "forebay_transit_write_blocks", true, "Blocks written.", AS_IS, .key = "write_blocks" },
	{ "forebay_transit_write_hits", true, "Blocks written that were in the cache.",
	  AS_IS, .key = "write_hits" },
	{ "forebay_transit_stalled", true, "Blocks whose writer waited for a free slot.",
	  AS_IS, .key = "stalled" },
	{ "forebay_transit_bypassed", true, "Blocks written past the full cache.", AS_IS, .key = "bypassed" },
	{ "forebay_transit_fua", true, "Blocks written past the cache because of FUA.", AS_IS, .key = "fua" },
	{ "forebay_transit_flushes", true, "Flushes.", AS_IS, .key = "flushes" },
	{ "forebay_transit_discards", true, "Discards.", AS_IS, .key = "discards" },
	{ "forebay_transit_zeroes", true, "Writes of zeros.", AS_IS, .key = "zeroes" },
	{ "forebay_transit_evicted", true, "Blocks written to the device.", AS_IS, .key = "evicted" },
	{ "forebay_transit_dropped", true, "Blocks that discards and zeros took out of the cache.",
	  AS_IS, .key = "dropped" },
	{ "forebay_transit_errors", true, "Times that the device refused a block.", AS_IS, .key = "errors" },
	{ "forebay_transit_failed_flushes", true, "Flushes that failed.", AS_IS, .key = "failed_flushes" },
	{ }
};

const struct source transit_source = { labels, families };
