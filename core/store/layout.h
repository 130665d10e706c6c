/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Loading and storing records, also where the medium has lost their lines. For the files of core/store/ only.
 *
 * A plain load from a lost line would bring the machine down, so records are loaded by pm_read(). A store of
 * one word neither heals a lost line nor fails; only a copy of the whole line heals it.
 */
#ifndef FOREBAY_CORE_STORE_LAYOUT_H
#define FOREBAY_CORE_STORE_LAYOUT_H

#include "store.h"

#define PS_LINE		64	/* the smallest unit that a medium loses */
#define PS_LINE_RECORDS	4	/* page records in a line */

static inline void ps_flush(const struct ps *ps, void *addr, size_t len)
{
	if (ps->flush_caches && !BREAK_FLUSH)
		pm_flush(addr, len);
}

/* All changes of a readable record's word are made by this function. */
static inline void ps_store(const struct ps *ps, __le64 *word, u64 value)
{
	pm_store64(word, cpu_to_le64(value));
	ps_flush(ps, word, sizeof(*word));
}

/* False: the medium has lost the record's line. */
static inline bool ps_file_load(const struct ps *ps, u32 file, struct ps_file_onmedia *rec)
{
	return pm_read(rec, &ps->files[file], sizeof(*rec));
}

/* False: the medium has lost the record's line. */
static inline bool ps_file_generation(const struct ps *ps, u32 file, u32 *generation)
{
	__le64 commit;

	if (!pm_read(&commit, &ps->files[file].commit, sizeof(commit)))
		return false;
	*generation = le64_to_cpu(commit) >> PS_FILE_GEN_SHIFT;
	return true;
}

/* False: the medium has lost the record's line, and so three other records. */
static inline bool ps_page_load(const struct ps *ps, u32 page, struct ps_page_onmedia *rec)
{
	return pm_read(rec, &ps->pages[page], sizeof(*rec));
}

static inline u32 ps_page_word_file(u64 commit)
{
	return commit >> PS_PAGE_FILE_SHIFT & (PS_MAX_FILES - 1);
}

#endif
