/* SPDX-License-Identifier: GPL-2.0-only */
/* Which pages of a file are in PMem, and in what state: index.c */
#ifndef FOREBAY_PAGE_INDEX_H
#define FOREBAY_PAGE_INDEX_H

#include "../forebay.h"

#define FB_HOT_WITHIN	8	/* sync calls: a store so soon after its page was unmapped heats the page */

static inline struct fb_page *fb_page_find(struct fb_inode *fi, pgoff_t index)
{
	return xa_load(&fi->index, index);
}

static inline bool fb_has_pages(const struct fb_inode *fi)
{
	return READ_ONCE(fi->nr_pages) != 0;
}

/* The first page at or after *@index and up to @last; *@index becomes its index. */
static inline struct fb_page *fb_page_next(struct fb_inode *fi, unsigned long *index, pgoff_t last)
{
	return xa_find(&fi->index, index, last, XA_PRESENT);
}

/*
 * The bytes from @pos on that a read or write of @count may take below before a page is in PMem; none, if
 * that at @pos is. A caller that writes has locked the range.
 */
static inline size_t fb_lower_span(struct fb_inode *fi, loff_t pos, size_t count)
{
	unsigned long index = pos >> PAGE_SHIFT;

	if (!fb_page_next(fi, &index, (pos + count - 1) >> PAGE_SHIFT))
		return count;
	return index > pos >> PAGE_SHIFT ? min_t(loff_t, count, ((loff_t)index << PAGE_SHIFT) - pos) : 0;
}

void fb_page_set(struct fb_inode *fi, struct fb_page *page, u32 status);
void fb_page_set_bad(struct fb_inode *fi, struct fb_page *page);
void fb_page_set_resident(struct fb_inode *fi, struct fb_page *page, bool resident);
int __fb_page_touch(struct fb_inode *fi, struct fb_page *page, bool mapped);
bool fb_page_flush(struct fb_inode *fi, struct fb_page *page);
bool fb_page_flush_mapped(struct fb_inode *fi, struct fb_page *page);
void fb_page_begin_writeback(struct fb_inode *fi, struct fb_page *page);
bool fb_page_end_writeback(struct fb_inode *fi, struct fb_page *page, bool ok);

/**
 * fb_page_touch() - a page is about to be changed by the kernel
 * @fi: its inode; io_sem is held, in either way
 * @page: the page
 *
 * When this returns 0 the record says, durably, that the lower file is older.
 *
 * Return: as __fb_page_touch().
 */
static inline int fb_page_touch(struct fb_inode *fi, struct fb_page *page)
{
	/* One load: state and flags change together under the index's lock. */
	return READ_ONCE(page->status) != FB_STATUS_OUT_OF_SYNC ? __fb_page_touch(fi, page, false) : 0;
}

#endif
