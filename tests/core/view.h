/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What a store says when it is read: its files and pages as a caller sees
 * them, without record numbers. See view.c.
 */
#ifndef FOREBAY_TESTS_CORE_VIEW_H
#define FOREBAY_TESTS_CORE_VIEW_H

#include "names/names.h"
#include "store/store.h"

#define VIEW_FILES	16
#define VIEW_PAGES	64

/* Of every store that is tested; small, so that millions can be read. */
#define TEST_SIZE	PS_MIN_SIZE
#define TEST_FILES	8
#define TEST_MAX_PAGES	(TEST_SIZE / PS_PAGE_SIZE)

struct view_file {
	struct ps_handle handle;
	enum ps_file_state state;
	u64 size;
	s64 time;
};

struct view_page {
	struct ps_handle handle;
	u64 index;
	enum ps_page_state state;
	const u8 *data;
};

/* A store's name log: what names_log.c finds in more detail. */
struct view_names {
	enum nl_error err;
	u32 damage;		/* kinds, of the check */
	u32 nr_records;
	u8 uuid[NL_UUID_SIZE];
};

struct view {
	enum ps_error err;	/* other than PS_OK: the rest is empty */
	struct ps_super_onmedia super;
	struct view_names names;	/* zero if there is none */
	u32 nr_files, nr_pages;
	struct view_file files[VIEW_FILES];
	struct view_page pages[VIEW_PAGES];
	u8 *copies;		/* of the pages' data, if the view owns them */
};

void view_read(struct view *view, const struct ps *ps);
void view_open(struct view *view, void *image);
void view_keep(struct view *view);
void view_drop(struct view *view);
const struct view_file *view_find_file(const struct view *view, const struct ps_handle *handle);
const struct view_page *view_find_page(const struct view *view, const struct ps_handle *handle,
				       u64 index);

/* NULL, or why @now cannot come from a power cut between @before and @after. */
const char *view_between(const struct view *before, const struct view *after,
			 const struct view *now);

#endif
