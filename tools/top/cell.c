// SPDX-License-Identifier: GPL-2.0-only
/*
 * Cells: a number of now, or what a counter gained a second. "-" stands for an unknown value, as of a mount
 * that began after the last look.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/compiler.h"
#include "base/json.h"
#include "base/latency.h"
#include "cell.h"

#define MIB	(1 << 20)

static void unknown(char text[CELL_TEXT])
{
	snprintf(text, CELL_TEXT, "-");
}

/* The mount point, or the name of a mapped device. */
void cell_name(const struct column *column, const struct change *change, char text[CELL_TEXT])
{
	json_object *targets = json_object_object_get(change->now, column->key), *first = targets;
	const char *name;

	if (json_object_is_type(targets, json_type_array))
		first = json_object_array_get_idx(targets, 0);
	name = json_object_get_string(first) ?: json_text(change->now, "device");
	snprintf(text, CELL_TEXT, "%s", name);
}

/* @key of @other, in percent */
void cell_fill(const struct column *column, const struct change *change, char text[CELL_TEXT])
{
	uint64_t all = json_number(change->now, column->other);

	if (!all)
		return unknown(text);
	snprintf(text, CELL_TEXT, "%.0f %%", 100.0 * json_number(change->now, column->key) / all);
}

/* @key a second */
void cell_rate(const struct column *column, const struct change *change, char text[CELL_TEXT])
{
	uint64_t n;

	if (!change_of(change, column->key, &n))
		return unknown(text);
	snprintf(text, CELL_TEXT, "%.0f", n / change->seconds);
}

/* @key in units of @unit bytes, as MiB a second */
void cell_mebibytes(const struct column *column, const struct change *change, char text[CELL_TEXT])
{
	uint64_t n;

	if (!change_of(change, column->key, &n))
		return unknown(text);
	snprintf(text, CELL_TEXT, "%.1f", n * column->unit / change->seconds / MIB);
}

/* What of @other's growth is @key's, in percent; "-" also if nothing grew */
void cell_share(const struct column *column, const struct change *change, char text[CELL_TEXT])
{
	uint64_t part, all;

	if (!change_of(change, column->key, &part) || !change_of(change, column->other, &all) || !all)
		return unknown(text);
	snprintf(text, CELL_TEXT, "%.0f %%", 100.0 * part / all);
}

/* How long until @key is 0, if @other goes on growing as now; @unit: what one of @other takes of @key */
void cell_left(const struct column *column, const struct change *change, char text[CELL_TEXT])
{
	uint64_t left = json_number(change->now, column->key), done;
	double seconds;

	if (left && (!change_of(change, column->other, &done) || !done))
		return unknown(text);
	seconds = left ? left * change->seconds / (done * column->unit) : 0;
	if (!left)
		snprintf(text, CELL_TEXT, "empty");
	else if (seconds < 100)
		snprintf(text, CELL_TEXT, "%.0f s", seconds);
	else
		snprintf(text, CELL_TEXT, "%.0f min", seconds / 60);
}

static const char *const kinds[] = { "sync_latency_memory", "sync_latency_move", "sync_latency_storage" };

/* Of all sync calls since the last look, or of one kind, by the limits of bins; false: unknown. */
static bool gather_bins(const struct change *change, const char *kind, uint64_t bins[64], uint64_t *count)
{
	json_object *now, *before;

	*count = 0;
	memset(bins, 0, 64 * sizeof(*bins));
	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
		now = json_object_object_get(change->now, kinds[i]);
		before = change->before ? json_object_object_get(change->before, kinds[i]) : NULL;
		if (!now || !before || json_number(now, "count") < json_number(before, "count"))
			return false;
		if (kind && strcmp(kind, kinds[i]))
			continue;
		*count += json_number(now, "count") - json_number(before, "count");
		latency_bins(now, 1, bins);
		latency_bins(before, -1, bins);
	}
	return true;
}

/* Sync calls a second, all or those of the kind @key */
void cell_syncs(const struct column *column, const struct change *change, char text[CELL_TEXT])
{
	uint64_t bins[64], count;

	if (!gather_bins(change, column->key, bins, &count))
		return unknown(text);
	snprintf(text, CELL_TEXT, "%.0f", count / change->seconds);
}

/**
 * percentile_text - below what time so many of the calls were
 * @text: filled in
 * @bins: number of calls, by the binary logarithm of their bin's limit in ns
 * @count: of all bins; not 0
 * @percent: of the calls
 */
void percentile_text(char text[CELL_TEXT], const uint64_t bins[64], uint64_t count, unsigned int percent)
{
	uint64_t seen = 0;
	unsigned int bin = 0;

	while (bin < 63 && (seen += bins[bin]) * 100 < count * percent)
		bin++;
	if (bin < 20)
		snprintf(text, CELL_TEXT, "<%.3g us", (1ULL << bin) / 1e3);
	else
		snprintf(text, CELL_TEXT, "<%.3g ms", (1ULL << bin) / 1e6);
}

/* Below what time @unit percent of the sync calls were, all or those of the kind @key */
void cell_percentile(const struct column *column, const struct change *change, char text[CELL_TEXT])
{
	uint64_t bins[64], count;

	if (!gather_bins(change, column->key, bins, &count) || !count)
		return unknown(text);
	percentile_text(text, bins, count, column->unit);
}
