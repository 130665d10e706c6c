// SPDX-License-Identifier: GPL-2.0-only
/*
 * How pages enter and leave the index of a file. index.c tells what the entries mean, and in which order
 * record and index change.
 */
#include "../trace.h"
#include "alloc.h"
#include "entry.h"
#include "heal.h"
#include "index.h"
#include "mapping.h"
#include "page.h"
#include "record.h"

/**
 * fb_page_insert() - put a page into the index
 * @fi: the inode; io_sem is held exclusively, or no other task can see it yet
 * @page: the page, with a committed record
 * @index: its place: fb_page_reserve() was called
 * @status: FB_STATUS_OUT_OF_SYNC or FB_STATUS_CLEAN, as the record says
 * @pinned: the page is in a pinned range
 */
void fb_page_insert(struct fb_inode *fi, struct fb_page *page, pgoff_t index, u32 status, bool pinned)
{
	page->owner = fi;
	page->index = index;
	page->referenced = true;
	fb_record_use(fi);
	page->resident = pinned;
	page->stored = false;
	page->heat = 0;
	page->unmapped_in = fi->flushes - FB_HOT_WITHIN - 1;	/* not lately */
	fb_page_name(fi, page, index);
	xa_lock(&fi->index);
	WARN_ON_ONCE(__xa_store(&fi->index, index, page, 0));
	fi->nr_pages++;
	fb_page_set(fi, page, status);
	xa_unlock(&fi->index);
}

/**
 * fb_page_reserve() - allocate the memory for an index entry
 * @fi: the inode
 * @index: where a page will be inserted
 *
 * Return: 0; -ENOMEM; -EFBIG: the index is too large for a page record. May sleep.
 */
int fb_page_reserve(struct fb_inode *fi, pgoff_t index)
{
	if (index >= PS_MAX_INDEX)
		return -EFBIG;
	return xa_reserve(&fi->index, index, GFP_NOFS);
}

/**
 * fb_page_unreserve() - take a page back that will not be inserted
 * @fi: the inode
 * @in: its reserved place, and the page, which becomes free
 */
void fb_page_unreserve(struct fb_inode *fi, struct fb_incoming *in)
{
	xa_release(&fi->index, in->index);
	fb_page_put_free(FB_SB(fi->vfs_inode.i_sb), in->page);
}

/*
 * Prepares the records of a batch of pages. -EIO: the device has lost the file's record, or those of some
 * pages, which are bad from now on.
 */
static int fb_pages_prepare(struct fb_inode *fi, const struct fb_incoming *in, unsigned int nr)
{
	struct fb_sb *fsb = FB_SB(fi->vfs_inode.i_sb);
	int err, failed = 0;
	unsigned int i;
	u32 number;

	for (i = 0; i < nr; i++) {
		number = fb_page_number(fsb, in[i].page);
		err = ps_page_prepare(&fsb->ps, number, fi->file, in[i].index);
		if (err == -EUCLEAN) {
			fb_record_heal(fi, fb_record_size_word(fi));
			err = ps_page_prepare(&fsb->ps, number, fi->file, in[i].index);
		}
		if (err == -EIO) {
			pr_err_ratelimited("%s: the device has lost records of pages: see forebay check\n",
					   fsb->cache_name);
			in[i].page->bad = true;
		}
		failed = err ?: failed;
	}
	return failed ? -EIO : 0;
}

/* Commits the page records of the batch whose pages are clean, or of those whose pages are not: @clean. */
static void fb_pages_commit(struct fb_inode *fi, const struct fb_incoming *in, unsigned int nr, bool clean)
{
	struct fb_sb *fsb = FB_SB(fi->vfs_inode.i_sb);
	struct ps_move moves[FB_MOVE_BATCH];
	unsigned int i, n = 0;

	for (i = 0; i < nr; i++) {
		if (in[i].clean != clean)
			continue;
		moves[n] = (struct ps_move) {
			.index = in[i].index, .file = fi->file, .page = fb_page_number(fsb, in[i].page) };
		n++;
	}
	if (n)
		ps_pages_commit(&fsb->ps, moves, n, clean ? PS_PAGE_CLEAN : PS_PAGE_OUT_OF_SYNC);
}

/**
 * fb_pages_commit_and_insert() - commit the records of copied pages, then insert the pages into the index
 * @fi: the inode; has a file record, io_sem is held exclusively
 * @in: pages in PMem, written but not fenced, and with reserved places in the index
 * @nr: how many, at most FB_MOVE_BATCH
 *
 * When this returns 0 the pages are durable, and primary: reads and writes find them in the index.
 *
 * Return: 0; -EIO: the device has lost the record of a page, or of the file. All pages stay the caller's.
 */
int fb_pages_commit_and_insert(struct fb_inode *fi, struct fb_incoming *in, unsigned int nr)
{
	unsigned int i;

	lockdep_assert_held_write(&fi->io_sem);
	if (fb_pages_prepare(fi, in, nr))
		return -EIO;
	fb_pages_commit(fi, in, nr, false);
	fb_pages_commit(fi, in, nr, true);
	for (i = 0; i < nr; i++) {
		in[i].page->has_space = in[i].has_space;
		fb_page_insert(fi, in[i].page, in[i].index,
			       in[i].clean ? FB_STATUS_CLEAN : FB_STATUS_OUT_OF_SYNC, in[i].pinned);
	}
	trace_fb_publish(fi, in[0].index, nr);
	return 0;
}

/**
 * fb_page_detach() - take a page out of the index and leave its record
 * @fi: its inode; no other task has it. May sleep
 * @page: the page, which no mapping has; the caller's from now on, record included
 */
void fb_page_detach(struct fb_inode *fi, struct fb_page *page)
{
	xa_lock(&fi->index);
	__xa_erase(&fi->index, page->index);
	fi->nr_pages--;
	fb_page_set(fi, page, FB_STATUS_FREE);
	xa_unlock(&fi->index);
	fb_page_gone(FB_SB(fi->vfs_inode.i_sb), page);
}

/**
 * fb_pages_invalidate() - the lower file is primary for these pages from now on
 * @fi: its inode; io_sem is held exclusively
 * @pages: pages that no mapping has; free afterwards
 * @nr: how many, at most FB_INVALIDATE_BATCH
 *
 * Their records are durably free before they can be used again, and before the
 * lower file is written in their place.
 */
void fb_pages_invalidate(struct fb_inode *fi, struct fb_page **pages, unsigned int nr)
{
	struct fb_sb *fsb = FB_SB(fi->vfs_inode.i_sb);
	u32 numbers[FB_INVALIDATE_BATCH];

	lockdep_assert_held_write(&fi->io_sem);
	for (unsigned int i = 0; i < nr; i++) {
		numbers[i] = fb_page_number(fsb, pages[i]);
		fb_page_detach(fi, pages[i]);
	}
	ps_pages_free(&fsb->ps, numbers, nr);
	for (unsigned int i = 0; i < nr; i++)
		fb_page_put_free(fsb, pages[i]);
}
