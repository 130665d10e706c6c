// SPDX-License-Identifier: GPL-2.0-only
/*
 * Replays a log into a view, and compares views. Of data only a hash is kept:
 * between two acknowledgments an entry is there with all its bytes or not at all.
 */
#include "writelog_view.h"

#include <stdlib.h>

static u64 hash(const u8 *data, u32 len)
{
	u64 hash = 0xcbf29ce484222325ULL;

	while (len--)
		hash = (hash ^ *data++) * 0x100000001b3ULL;
	return hash;
}

/* Replays a log that is open. */
void log_view_read(struct log_view *view, const struct wl *wl)
{
	struct wl_stream streams[LOG_CHUNKS];
	struct wl_cursor cursor;
	struct wl_entry entry;
	int got;

	memset(view, 0, offsetof(struct log_view, entries));
	if (wl->nr_gens != LOG_GENS || wl->nr_chunks != LOG_CHUNKS)
		abort();
	memcpy(view->uuid, wl->super.uuid, WL_UUID_SIZE);
	view->origin_sectors = le64_to_cpu(wl->super.origin_sectors);
	view->fingerprint = wl_fingerprint(wl);
	for (u32 gen = 0; gen < LOG_GENS; gen++)
		wl_gen_read(wl, gen, &view->gens[gen]);
	wl_cursor_start(&cursor, wl, streams, WL_VERIFY_DATA);
	while ((got = wl_cursor_next(&cursor, &entry))) {
		if (got < 0) {
			view->damage = view->damage ?: cursor.damage.why;
			continue;
		}
		if (view->n == LOG_ENTRIES)
			abort();
		view->entries[view->n++] = (struct log_view_entry){
			entry.order, entry.sector, entry.nr_sectors, entry.op,
			hash(wl_entry_data(wl, &entry), wl_entry_len(&entry)),
		};
	}
}

/* Opens and replays an image. */
void log_view_open(struct log_view *view, void *image)
{
	enum wl_error err;
	struct wl wl;

	err = wl_open(&wl, image, LOG_SIZE, WL_OPEN_READ_ONLY);
	if (err)
		*view = (struct log_view){ .err = err };
	else
		log_view_read(view, &wl);
}

static bool same_entries(const struct log_view *a, const struct log_view *b)
{
	return a->n == b->n && !memcmp(a->entries, b->entries, a->n * sizeof(*a->entries));
}

/* True if all entries of @some are in @all, in the same order. */
static bool entries_among(const struct log_view *some, const struct log_view *all)
{
	u32 found = 0;

	for (u32 i = 0; i < all->n && found < some->n; i++)
		found += !memcmp(&all->entries[i], &some->entries[found], sizeof(*some->entries));
	return found == some->n;
}

static bool same_gen(const struct wl_gen_info *a, const struct wl_gen_info *b)
{
	return a->state == b->state && a->id == b->id && a->entries == b->entries;
}

/* Both stand in the superblock, and change at once. */
static bool same_origin(const struct log_view *a, const struct log_view *b)
{
	return a->origin_sectors == b->origin_sectors && a->fingerprint == b->fingerprint;
}

const char *log_view_between(const struct log_view *before, const struct log_view *after,
			     const struct log_view *now, bool piecewise)
{
	if (now->damage && now->damage != before->damage)
		return now->damage;
	if (memcmp(now->uuid, after->uuid, WL_UUID_SIZE))
		return "it is another log";
	if (!same_origin(now, before) && !same_origin(now, after))
		return "it is bound to something else, or has another fingerprint of it";
	for (u32 gen = 0; gen < LOG_GENS; gen++)
		if (!same_gen(&now->gens[gen], &before->gens[gen]) &&
		    !same_gen(&now->gens[gen], &after->gens[gen]))
			return "a generation is neither as before nor as after";
	if (piecewise)
		return entries_among(before, now) && entries_among(now, after) ?
			NULL : "entries are missing, or are there that nobody made";
	if (!same_entries(now, before) && !same_entries(now, after))
		return "replay gives neither what was there before nor what is there after";
	return NULL;
}
