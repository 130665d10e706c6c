// SPDX-License-Identifier: GPL-2.0-only
/*
 * Frees the damaged records that keep a store from being mounted. A damaged page record is simply freed
 * (ps_page_free()). A damaged file record is freed together with its pages.
 *
 * Only the command uses this. It decides what is freed, from the reports of ps_check(). A power cut
 * during a repair leaves a store with less damage, and the repair can be repeated.
 */
#include "layout.h"

/* A record whose line is lost names no file: it never becomes valid. */
static bool names_file(const struct ps *ps, u32 page, u32 file)
{
	struct ps_page_onmedia rec;

	return ps_page_load(ps, page, &rec) && rec.commit &&
	       ps_page_word_file(le64_to_cpu(rec.commit)) == file;
}

/**
 * ps_file_purge - free a damaged file record
 * @ps: store
 * @file: record number, below nr_files
 *
 * Frees every page record that names the file record, whatever its generation. The damaged record's
 * generation may be lower than it was, and a next life would then revive these pages. Hence also the
 * fence before the file record is freed.
 *
 * Durable on return.
 *
 * Context: Any; the caller excludes others from the store.
 */
void ps_file_purge(struct ps *ps, u32 file)
{
	u32 page;

	for (page = 0; page < ps->nr_pages; page++)
		if (names_file(ps, page, file))
			ps_page_free(ps, page);
	ps_fence(ps);
	ps_file_free(ps, file);
}
