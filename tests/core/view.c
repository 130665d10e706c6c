// SPDX-License-Identifier: GPL-2.0-only
/*
 * Reads a store as its users would, and says whether it can be what a power
 * cut left between two acknowledged states of it.
 *
 * The rule: what both states have is there; what only one has may be there;
 * each record is as before or as after; nothing else is there. The data of a
 * page that both states have may be mixed by 8-byte words (rewritten in place
 * and not acknowledged yet); a page that only one state has is whole.
 */
#include "names_log.h"
#include "view.h"

#include <stdlib.h>

static bool same_handle(const struct ps_handle *a, const struct ps_handle *b)
{
	return a->type == b->type && a->len == b->len && !memcmp(a->bytes, b->bytes, a->len);
}

static void read_names(struct view_names *view, const struct ps *ps)
{
	static struct nl_record record;
	struct nl_cursor cursor;
	struct nl nl;

	view->err = nl_open(&nl, ps->names, ps->names_size, NL_OPEN_READ_ONLY);
	if (view->err)
		return;
	memcpy(view->uuid, nl.header.uuid, NL_UUID_SIZE);
	view->damage = names_damage(&nl);
	nl_cursor_start(&cursor, &nl);
	while (nl_cursor_next(&cursor, &record) > 0)
		view->nr_records++;
}

/* Leaves out damaged records: ps_check() reports them. */
void view_read(struct view *view, const struct ps *ps)
{
	*view = (struct view){ .super = ps->super };
	if (ps->names)
		read_names(&view->names, ps);
	for (u32 i = 0; i < ps->nr_files; i++) {
		struct ps_file_info info;

		if (ps_file_read(ps, i, &info) || info.state == PS_FILE_FREE)
			continue;
		if (view->nr_files == VIEW_FILES)
			abort();
		view->files[view->nr_files++] = (struct view_file){
			.handle = info.handle, .state = info.state, .size = info.size,
			.time = info.time,
		};
	}
	for (u32 i = 0; i < ps->nr_pages; i++) {
		struct ps_page_info info;
		struct ps_file_info file;

		if (ps_page_read(ps, i, &info) || info.state == PS_PAGE_FREE)
			continue;
		if (view->nr_pages == VIEW_PAGES || ps_file_read(ps, info.file, &file))
			abort();
		view->pages[view->nr_pages++] = (struct view_page){
			.handle = file.handle, .index = info.index, .state = info.state,
			.data = ps_page_addr(ps, i),
		};
	}
}

void view_open(struct view *view, void *image)
{
	struct ps ps;
	enum ps_error err = ps_open(&ps, image, TEST_SIZE, PS_OPEN_READ_ONLY);

	if (err)
		*view = (struct view){ .err = err };
	else
		view_read(view, &ps);
}

/* Copies the pages' data, so that the view outlives the image. */
void view_keep(struct view *view)
{
	view->copies = malloc((size_t)view->nr_pages * PS_PAGE_SIZE + 1);
	if (!view->copies)
		abort();
	for (u32 i = 0; i < view->nr_pages; i++) {
		u8 *copy = view->copies + (size_t)i * PS_PAGE_SIZE;

		memcpy(copy, view->pages[i].data, PS_PAGE_SIZE);
		view->pages[i].data = copy;
	}
}

void view_drop(struct view *view)
{
	free(view->copies);
	view->copies = NULL;
}

const struct view_file *view_find_file(const struct view *view, const struct ps_handle *handle)
{
	for (u32 i = 0; i < view->nr_files; i++)
		if (same_handle(&view->files[i].handle, handle))
			return &view->files[i];
	return NULL;
}

const struct view_page *view_find_page(const struct view *view, const struct ps_handle *handle,
				       u64 index)
{
	for (u32 i = 0; i < view->nr_pages; i++)
		if (view->pages[i].index == index &&
		    same_handle(&view->pages[i].handle, handle))
			return &view->pages[i];
	return NULL;
}

static const char *supers_between(const struct view *before, const struct view *after,
				  const struct view *now)
{
	struct ps_super_onmedia s = now->super, b = before->super, a = after->super;

	/* Sequence number and checksum may differ between two writes of the same content. */
	s.seq = 0;
	s.crc = 0;
	b.seq = 0;
	b.crc = 0;
	a.seq = 0;
	a.crc = 0;
	if (memcmp(&s, &b, sizeof(s)) && memcmp(&s, &a, sizeof(s)))
		return "the superblock is neither as before nor as after";
	return NULL;
}

static const char *names_between(const struct view_names *before, const struct view_names *after,
				 const struct view_names *now)
{
	if (now->err)
		return nl_strerror(now->err);
	if (now->damage)
		return "the name log's check finds damage";
	if (memcmp(now, before, sizeof(*now)) && memcmp(now, after, sizeof(*now)))
		return "the name log is neither as before nor as after";
	return NULL;
}

static const char *files_between(const struct view *before, const struct view *after,
				 const struct view *now)
{
	for (u32 i = 0; i < now->nr_files; i++) {
		const struct view_file *f = &now->files[i];
		const struct view_file *b = view_find_file(before, &f->handle);
		const struct view_file *a = view_find_file(after, &f->handle);

		if (!b && !a)
			return "a file is there that never was";
		if (!(b && b->state == f->state) && !(a && a->state == f->state))
			return "a file's state is neither as before nor as after";
		if (!(b && b->size == f->size) && !(a && a->size == f->size))
			return "a file's size is neither as before nor as after";
		if (!(b && b->time == f->time) && !(a && a->time == f->time))
			return "a file's time is neither as before nor as after";
	}
	for (u32 i = 0; i < before->nr_files; i++)
		if (view_find_file(after, &before->files[i].handle) &&
		    !view_find_file(now, &before->files[i].handle))
			return "an acknowledged file is gone";
	return NULL;
}

/* Each word of @now is that of @before or of @after. */
static bool mixed(const u8 *before, const u8 *after, const u8 *now)
{
	if (!memcmp(now, after, PS_PAGE_SIZE))
		return true;
	for (u32 i = 0; i < PS_PAGE_SIZE; i += 8)
		if (memcmp(now + i, before + i, 8) && memcmp(now + i, after + i, 8))
			return false;
	return true;
}

static const char *page_between(const struct view_page *b, const struct view_page *a,
				const struct view_page *now)
{
	if (!b && !a)
		return "a page is there that never was";
	if (!(b && b->state == now->state) && !(a && a->state == now->state))
		return "a page's state is neither as before nor as after";
	if (!mixed((b ? b : a)->data, (a ? a : b)->data, now->data))
		return "a page holds what was never written to it";
	return NULL;
}

static const char *pages_between(const struct view *before, const struct view *after,
				 const struct view *now)
{
	for (u32 i = 0; i < now->nr_pages; i++) {
		const struct view_page *p = &now->pages[i];
		const char *wrong = page_between(view_find_page(before, &p->handle, p->index),
						 view_find_page(after, &p->handle, p->index), p);

		if (wrong)
			return wrong;
	}
	for (u32 i = 0; i < before->nr_pages; i++) {
		const struct view_page *p = &before->pages[i];

		if (view_find_page(after, &p->handle, p->index) &&
		    !view_find_page(now, &p->handle, p->index))
			return "an acknowledged page is gone";
	}
	return NULL;
}

const char *view_between(const struct view *before, const struct view *after,
			 const struct view *now)
{
	const char *wrong = supers_between(before, after, now);

	if (!wrong)
		wrong = names_between(&before->names, &after->names, &now->names);
	if (!wrong)
		wrong = files_between(before, after, now);
	if (!wrong)
		wrong = pages_between(before, after, now);
	return wrong;
}
