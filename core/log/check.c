// SPDX-License-Identifier: GPL-2.0-only
/*
 * Reads a whole write log and reports inconsistencies. Writes nothing.
 *
 * A power cut never leaves anything that is reported here. Bytes in chunks beyond what their words
 * count, words of earlier lives, open generations, and an older but valid superblock copy are all
 * normal.
 *
 * A cursor's findings come from replay.c. This file also checks that both superblocks agree,
 * and that generations were freed in order.
 */
#include "layout.h"

struct check {
	const struct wl *wl;
	wl_report_fn report;
	void *arg;
	u64 found;
};

static void complain(struct check *check, const struct wl_damage *damage)
{
	check->found++;
	check->report(check->arg, damage);
}

static void complain_of(struct check *check, enum wl_damage_kind kind, u32 number, const char *why)
{
	struct wl_damage damage = { .kind = kind, .gen = number, .why = why };

	complain(check, &damage);
}

static void check_supers(struct check *check)
{
	const struct wl_super_onmedia *best = &check->wl->super;
	u32 copy;

	for (copy = 0; copy < WL_NR_SUPERS; copy++) {
		struct wl_super_onmedia s;

		if (!wl_super_read(check->wl->base, copy, &s))
			complain_of(check, WL_BAD_SUPER, copy,
				    "is damaged; the other copy is used");
		else if (s.seq == best->seq && memcmp(&s, best, sizeof(s)))
			complain_of(check, WL_BAD_SUPER, copy,
				    "differs from the other copy, though both are whole");
	}
}

/* Returns the smallest identifier of a generation with entries that count. */
static u64 oldest_live_id(const struct wl *wl)
{
	u64 oldest = WL_MAX_ID + 1;
	u32 gen;

	for (gen = 0; gen < wl->nr_gens; gen++) {
		struct wl_gen_info info;

		cond_resched();
		if (wl_gen_live(wl, gen, &info))
			oldest = min_t(u64, oldest, info.id);
	}
	return oldest;
}

static void check_order_of_freeing(struct check *check)
{
	u64 oldest = oldest_live_id(check->wl);
	u32 gen;

	for (gen = 0; gen < check->wl->nr_gens; gen++) {
		struct wl_gen_info info;

		if (!wl_gen_read(check->wl, gen, &info) && info.state == WL_GEN_FREE &&
		    info.id > oldest)
			complain_of(check, WL_BAD_GENERATION, gen, "was freed before an older one");
	}
}

static void check_entries(struct check *check, struct wl_stream *streams)
{
	struct wl_cursor cursor;
	struct wl_entry entry;
	int got;

	wl_cursor_start(&cursor, check->wl, streams, WL_VERIFY_DATA);
	while ((got = wl_cursor_next(&cursor, &entry)))
		if (got < 0)
			complain(check, &cursor.damage);
}

/**
 * wl_check - verify everything in a log that can be verified
 * @wl: log; it doesn't change meanwhile
 * @streams: array of @wl->nr_chunks
 * @report: called for every inconsistency
 * @arg: passed to @report
 *
 * Context: Any; reads all headers, and the data if the log has checksums of the data.
 * Return: number of inconsistencies.
 */
u64 wl_check(const struct wl *wl, struct wl_stream *streams, wl_report_fn report, void *arg)
{
	struct check check = { .wl = wl, .report = report, .arg = arg };

	check_supers(&check);
	check_order_of_freeing(&check);
	check_entries(&check, streams);
	return check.found;
}
