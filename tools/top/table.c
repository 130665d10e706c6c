// SPDX-License-Identifier: GPL-2.0-only
/* Makes lines of two samples: a table for each group that has members. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"
#include "base/message.h"
#include "cell.h"
#include "columns.h"
#include "table.h"

#define PAGE	4096
#define SECTOR	512

static const struct column cache_columns[] = {
	{ "CACHE", -20, cell_name, .key = "mountpoints" },
	{ "OUT-OF-SYNC", 11, cell_fill, .key = "pages_out_of_sync", .other = "pages_total" },
	{ "FREE", 6, cell_fill, .key = "pages_free", .other = "pages_total" },
	{ "SYNC/S", 8, cell_syncs, .key = NULL },
	{ "BELOW/S", 8, cell_syncs, .key = "sync_latency_storage" },
	{ "50 %", 9, cell_percentile, .unit = 50 },
	{ "99 %", 9, cell_percentile, .unit = 99 },
	{ "IN MiB/S", 9, cell_mebibytes, .key = "pages_absorbed", .unit = PAGE },
	{ "OUT MiB/S", 10, cell_mebibytes, .key = "pages_written_back", .unit = PAGE },
	{ "CLEAN IN", 9, cell_left, .key = "pages_out_of_sync", .other = "pages_written_back", .unit = 1 },
	{ }
};

static const struct column writelog_columns[] = {
	{ "WRITE LOG", -20, cell_name, .key = "name" },
	{ "USED", 6, cell_fill, .key = "bytes_used", .other = "bytes_total" },
	{ "READ/S", 8, cell_rate, .key = "reads" },
	{ "HIT", 6, cell_share, .key = "read_hit_sectors", .other = "read_sectors" },
	{ "WRITE/S", 8, cell_rate, .key = "writes" },
	{ "IN MiB/S", 9, cell_mebibytes, .key = "write_sectors", .unit = SECTOR },
	{ "OUT MiB/S", 10, cell_mebibytes, .key = "writeback_sectors", .unit = SECTOR },
	{ "WAIT/S", 7, cell_rate, .key = "space_waits" },
	{ "EMPTY IN", 9, cell_left, .key = "bytes_used", .other = "writeback_sectors", .unit = SECTOR },
	{ }
};

static const struct column transit_columns[] = {
	{ "TRANSIT CACHE", -20, cell_name, .key = "name" },
	{ "USED", 6, cell_fill, .key = "slots_used", .other = "slots_total" },
	{ "READ/S", 8, cell_rate, .key = "read_blocks" },
	{ "HIT", 6, cell_share, .key = "read_hits", .other = "read_blocks" },
	{ "WRITE/S", 8, cell_rate, .key = "write_blocks" },
	{ "PAST/S", 8, cell_rate, .key = "bypassed" },
	{ "EVICT/S", 8, cell_rate, .key = "evicted" },
	{ "STALL/S", 8, cell_rate, .key = "stalled" },
	{ "FLUSH/S", 8, cell_rate, .key = "flushes" },
	{ }
};

static const struct column *const columns[NR_GROUPS] = { cache_columns, writelog_columns, transit_columns };

/**
 * lines_add - append a line
 * @lines: where to
 * @kind: of the line
 *
 * Return: the line, without text; it may move when another one is added.
 */
struct line *lines_add(struct lines *lines, enum line_kind kind)
{
	lines->line = reallocarray(lines->line, lines->n + 1, sizeof(*lines->line));
	if (!lines->line)
		abort();
	lines->line[lines->n] = (struct line){ .kind = kind };
	return &lines->line[lines->n++];
}

/**
 * line_append - append a cell to a line
 * @line: the line
 * @width: of its column; below 0: the text is left-aligned, and cut if it is wider
 * @text: the cell
 */
void line_append(struct line *line, int width, const char *text)
{
	size_t at = strlen(line->text), bytes;
	int columns;

	if (width >= 0) {
		snprintf(line->text + at, LINE_TEXT - at, " %*s", width, text);
		return;
	}
	columns = columns_before(text, -width, &bytes);
	snprintf(line->text + at, LINE_TEXT - at, "%.*s%*s", (int)bytes, text, -width - columns, "");
}

static void add_object(struct lines *lines, const struct column *column, const struct change *change)
{
	struct line *line = lines_add(lines, LINE_OBJECT);
	char text[CELL_TEXT];

	for (; column->title; column++) {
		column->cell(column, change, text);
		line_append(line, column->width, make_harmless(text));
	}
}

static void add_group(struct lines *lines, enum group group, const struct sample *now,
		      const struct sample *before)
{
	size_t n = json_object_array_length(now->groups[group]);
	struct change change;
	struct line *line;

	if (!n)
		return;
	if (lines->n)
		lines_add(lines, LINE_NOTE);
	line = lines_add(lines, LINE_TITLE);
	for (const struct column *column = columns[group]; column->title; column++)
		line_append(line, column->width, column->title);
	for (size_t i = 0; i < n; i++) {
		change = sample_change(now, before, group, i);
		add_object(lines, columns[group], &change);
	}
}

/**
 * lines_make - the lines for what happened between two samples
 * @lines: filled in; lines_free() frees them
 * @now: the later sample
 * @before: the earlier one; without groups there is none, and no rates
 */
void lines_make(struct lines *lines, const struct sample *now, const struct sample *before)
{
	*lines = (struct lines){ };
	for (int group = 0; group < NR_GROUPS; group++)
		add_group(lines, group, now, before);
	if (!lines->n)
		snprintf(lines_add(lines, LINE_NOTE)->text, LINE_TEXT, "No mounted cache, write log or transit cache.");
}

void lines_free(struct lines *lines)
{
	free(lines->line);
}
