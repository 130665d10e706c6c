// SPDX-License-Identifier: GPL-2.0-only
/*
 * Sets aside what a damaged store can't be mounted with. A damaged page record is
 * simply freed (ps_page_free()); a damaged file record takes its pages along.
 *
 * Only the command uses this. It decides what goes, from what ps_check() reports; a power
 * cut in the middle leaves a store with less damage, and repair begins again.
 */
#include "pagestore.h"

static bool names_file(const struct ps *ps, u32 page, u32 file)
{
	u64 commit = le64_to_cpu(READ_ONCE(ps->pages[page].commit));

	return commit && (commit >> PS_PAGE_FILE_SHIFT & (PS_MAX_FILES - 1)) == file;
}

/**
 * ps_file_purge - end the life of a file record that can't be believed
 * @ps: store
 * @file: record number, below nr_files
 *
 * Frees every page record that names it, whatever generation that says: the generation in
 * the file record may be lower than it was, and then its next life would bring pages of
 * this one back. Hence also the fence between.
 *
 * Durable on return.
 *
 * Context: Any; nobody else uses the store.
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
