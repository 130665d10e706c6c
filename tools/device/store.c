// SPDX-License-Identifier: GPL-2.0-only
/*
 * Counts what a cache holds, and says it in JSON.
 */
#include <errno.h>

#include "../core/names/names.h"
#include "base/progress.h"
#include "store.h"

/* A mount rewrites a damaged header copy, like a superblock. */
static void count_damage(void *arg, const struct nl_damage *damage)
{
	struct store_counts *counts = arg;

	counts->names_damaged += damage->kind != NL_BAD_HEADER;
}

/* Counts the committed records: a mount replays no others. A log that can't be opened is one damage. */
static void count_names(const struct ps *ps, struct store_counts *counts)
{
	static struct nl_record record;
	struct nl_cursor cursor;
	struct nl nl;

	counts->names_size = ps->names_size;
	if (!ps->names)
		return;
	if (nl_open(&nl, ps->names, ps->names_size, NL_OPEN_READ_ONLY)) {
		counts->names_damaged = 1;
		return;
	}
	nl_cursor_start(&cursor, &nl);
	while (nl_cursor_next(&cursor, &record) > 0 && cursor.committed)
		counts->names_records++;
	nl_check(&nl, &record, count_damage, counts);
}

/**
 * store_count - count what a store holds, and report every two seconds that this goes on
 * @path: of the device, for the report
 * @ps: store
 * @counts: filled in
 */
void store_count(const char *path, const struct ps *ps, struct store_counts *counts)
{
	struct progress progress;

	*counts = (struct store_counts){ };
	progress_begin(&progress, path, "being read");
	count_names(ps, counts);
	for (u32 file = 0; file < ps->nr_files; file++) {
		struct ps_file_info info;

		if (ps_file_read(ps, file, &info)) {
			counts->records_damaged++;
			continue;
		}
		counts->files_used += info.state != PS_FILE_FREE;
		counts->files_unflushed += info.state != PS_FILE_FREE && (info.size || info.time);
	}
	for (u32 page = 0; page < ps->nr_pages; page++) {
		struct ps_page_info info;
		int err = ps_page_read(ps, page, &info);

		if (err == -EUCLEAN)
			counts->records_damaged++;
		else if (err || info.state == PS_PAGE_FREE)
			counts->pages_free++;
		else if (info.state == PS_PAGE_CLEAN)
			counts->pages_clean++;
		else
			counts->pages_out_of_sync++;
	}
	progress_end(&progress);
}

/**
 * store_describe - describe a store and its contents, with the keys of docs/sysfs.md
 * @ps: store
 * @counts: from store_count()
 * @json: the object to add it to
 */
void store_describe(const struct ps *ps, const struct store_counts *counts, json_object *json)
{
	json_object *lower = NULL;
	char text[37];

	uuid_text(text, ps->super.cache_uuid);
	json_add_text(json, "cache_uuid", text);
	if (ps_is_bound(ps))
		lower = json_object_new_string(uuid_text(text, ps->super.lower_uuid));
	json_object_object_add(json, "lower_uuid", lower);
	json_add_number(json, "pages_total", ps->nr_pages);
	json_add_number(json, "pages_free", counts->pages_free);
	json_add_number(json, "pages_clean", counts->pages_clean);
	json_add_number(json, "pages_out_of_sync", counts->pages_out_of_sync);
	json_add_number(json, "files_total", ps->nr_files);
	json_add_number(json, "files_used", counts->files_used);
	json_add_number(json, "files_unflushed", counts->files_unflushed);
	json_add_number(json, "records_damaged", counts->records_damaged);
	json_add_number(json, "names_size", counts->names_size);
	json_add_number(json, "names_records", counts->names_records);
	json_add_number(json, "names_damaged", counts->names_damaged);
}
