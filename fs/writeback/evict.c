// SPDX-License-Identifier: GPL-2.0-only
/*
 * Pages leave PMem, and a file record that has nothing left to say goes with the last of them.
 *
 *	fb_invalidate_range()	what the lower file has, or shall lose: in whatever state
 *	fb_settle_range()	written back, to the last byte; the pages stay
 *	fb_evict_range()	the lower file becomes primary: written back first
 *	fb_evict_unpinned()	a user needs a range in PMem no more: written back first; what is pinned or
 *				locked stays, and what a task may be storing to by a reference
 *				(sync/stored.c)
 *	fb_evict_for_reclaim()	the worker needs the file's record: the same, of the whole file
 *	fb_evict_file()		all of a file, at unmount; fb_abandon(): what could not be written back
 *				stays in PMem for the next mount
 */
#include "../page/alloc.h"
#include "../page/entry.h"
#include "../page/index.h"
#include "../page/mapping.h"
#include "../page/record.h"
#include "../page/times.h"
#include "../pin/lock.h"
#include "../pin/tree.h"
#include "evict.h"
#include "writeback.h"

/* How often pages that changed while they were written back are written back again. */
#define FB_EVICT_TRIES	3
/* Pages looked at under one hold of io_sem. */
#define FB_EVICT_LOOK	(4 * FB_INVALIDATE_BATCH)

/* Invalidates a batch of pages from *index on; returns whether there may be more. */
static bool fb_invalidate_some(struct fb_inode *fi, unsigned long *index, pgoff_t last)
{
	struct fb_page *pages[FB_INVALIDATE_BATCH];
	unsigned int nr;

	down_write(&fi->io_sem);
	for (nr = 0; nr < FB_INVALIDATE_BATCH && *index <= last; nr++) {
		pages[nr] = fb_page_next(fi, index, last);
		if (!pages[nr])
			break;
		++*index;
	}
	if (nr)
		unmap_mapping_pages(fi->lower->i_mapping, pages[0]->index,
				    pages[nr - 1]->index - pages[0]->index + 1, false);
	fb_pages_invalidate(fi, pages, nr);
	up_write(&fi->io_sem);
	return nr == FB_INVALIDATE_BATCH;
}

/**
 * fb_invalidate_range() - invalidate all pages of a range, in whatever state
 * @fi: the inode
 * @first: first page
 * @last: last page
 *
 * What hardware uses goes, too: page/alloc.c keeps it from being used again.
 *
 * Context: process, under wb_lock and with the range locked exclusively, or with no other task on the
 * inode. Takes io_sem.
 */
void fb_invalidate_range(struct fb_inode *fi, pgoff_t first, pgoff_t last)
{
	unsigned long index = first;

	lockdep_assert_held(&fi->wb_lock);
	while (fb_invalidate_some(fi, &index, last))
		cond_resched();
}

/**
 * fb_evict_record() - the file record goes if it has nothing left to say
 * @fi: the inode; the caller has a reference
 *
 * A time that only the record has keeps it: the file's turn (turn.c) makes that durable below.
 *
 * Context: process, under wb_lock. Takes io_sem.
 */
void fb_evict_record(struct fb_inode *fi)
{
	struct file *wb_file = NULL;
	u32 file;

	lockdep_assert_held(&fi->wb_lock);
	down_write(&fi->io_sem);
	file = fi->file;
	if (file != FB_NO_FILE && !fb_has_pages(fi) && !test_bit(FB_SIZE_EXACT, &fi->flags) &&
	    fi->record_size <= i_size_read(fi->lower) && !fb_time_only_in_record(fi)) {
		wb_file = fb_record_forget(fi);
		fb_file_record_free(FB_SB(fi->vfs_inode.i_sb), file);
	}
	up_write(&fi->io_sem);
	if (wb_file)
		__fput_sync(wb_file);
}

/* The same for a caller that may wait for storage. */
static void fb_evict_record_and_time(struct fb_inode *fi)
{
	lockdep_assert_held(&fi->wb_lock);
	if (!fb_has_pages(fi))
		fb_time_to_lower(fi);	/* or it stays, and so does the record */
	fb_evict_record(fi);
}

/**
 * fb_settle_range() - the lower file gets what a range has; the pages stay
 * @fi: the inode
 * @first: first page
 * @last: last page
 *
 * A task that was changing a page when the range was locked ends before the first batch begins, and makes
 * a second turn necessary at most. Pages that are not clean then may be changing, by references that tasks
 * have (sync/stored.c).
 *
 * Context: process, under wb_lock and with the range locked exclusively. Takes io_sem.
 * Return: 0; or why pages could not be written back.
 */
int fb_settle_range(struct fb_inode *fi, pgoff_t first, pgoff_t last)
{
	lockdep_assert_held(&fi->wb_lock);
	return fb_writeback_locked(fi, first, last) ?: fb_writeback_locked(fi, first, last);
}

/**
 * fb_evict_range() - the lower file becomes primary for a range
 * @fi: the inode
 * @first: first page
 * @last: last page
 *
 * Pages that may be changing go, too: the copy below is as good as any.
 *
 * Context: process, under wb_lock and with the range locked exclusively. Takes io_sem.
 * Return: 0; or why pages could not be written back: then all are still here.
 */
int fb_evict_range(struct fb_inode *fi, pgoff_t first, pgoff_t last)
{
	int err = fb_settle_range(fi, first, last);

	lockdep_assert_held(&fi->wb_lock);
	if (!err)
		fb_invalidate_range(fi, first, last);
	return err;
}

/* Evicts up to a batch of clean pages from *index on; returns whether there may be more. */
static bool fb_evict_batch(struct fb_inode *fi, unsigned long *index, pgoff_t last,
			   struct forebay_dropped *result)
{
	struct fb_page *pages[FB_INVALIDATE_BATCH], *page;
	unsigned int nr = 0, looked;

	down_write(&fi->io_sem);
	for (looked = 0; looked < FB_EVICT_LOOK && nr < FB_INVALIDATE_BATCH && *index <= last;
	     ++*index, looked++) {
		page = fb_page_next(fi, index, last);
		if (!page)
			break;
		if (page->resident || fb_pin_locked_page(fi, *index)) {
			result->pinned++;
			continue;
		}
		if (page->status == FB_STATUS_CLEAN)
			unmap_mapping_pages(fi->lower->i_mapping, *index, 1, false);
		/* Asked again: mlock() of a page that was mapped takes no fault. */
		if (fb_pin_locked_page(fi, *index))
			result->pinned++;
		else if (page->status == FB_STATUS_CLEAN)
			pages[nr++] = page;
		else
			result->busy++;
	}
	fb_pages_invalidate(fi, pages, nr);
	up_write(&fi->io_sem);
	result->dropped += nr;
	return looked == FB_EVICT_LOOK || nr == FB_INVALIDATE_BATCH;
}

/* Invalidates the clean pages of a range, except pinned ones. */
static void fb_evict_clean(struct fb_inode *fi, pgoff_t first, pgoff_t last, struct forebay_dropped *result)
{
	unsigned long index = first;

	lockdep_assert_held(&fi->wb_lock);
	result->pinned = 0;
	result->busy = 0;
	while (fb_evict_batch(fi, &index, last, result))
		cond_resched();
}

/**
 * fb_evict_unpinned() - take a range out of PMem
 * @fi: the inode; the caller has a reference. Takes wb_lock and io_sem
 * @first: first page
 * @last: last page
 * @result: gets dropped, pinned and busy
 *
 * Return: 0; or why pages could not be written back: they are still there.
 */
int fb_evict_unpinned(struct fb_inode *fi, pgoff_t first, pgoff_t last, struct forebay_dropped *result)
{
	unsigned int tries = FB_EVICT_TRIES;
	int err;

	result->dropped = 0;
	fb_pins_refresh(fi);
	do {
		err = fb_writeback_range(fi, first, last);
		mutex_lock(&fi->wb_lock);
		fb_evict_clean(fi, first, last, result);
		fb_evict_record_and_time(fi);
		mutex_unlock(&fi->wb_lock);
	} while (!err && result->busy && --tries);
	return err;
}

/**
 * fb_evict_for_reclaim() - take a file out of PMem for the sake of its record
 * @fi: the inode; the caller has a reference. Takes wb_lock by fb_wb_lock_soon(), and io_sem
 *
 * What is not clean stays, and what is pinned, locked or busy.
 *
 * Context: process, the worker. Sleeps.
 */
void fb_evict_for_reclaim(struct fb_inode *fi)
{
	struct forebay_dropped dropped = {};

	if (!fb_wb_lock_soon(fi))
		return;
	fb_evict_clean(fi, 0, FB_LAST_PAGE, &dropped);
	fb_evict_record(fi);
	mutex_unlock(&fi->wb_lock);
}

/**
 * fb_evict_file() - give up all pages of a file, and its record
 * @fi: the inode; the caller has a reference. Unmount does this to every file
 *
 * What can't be written back stays.
 */
void fb_evict_file(struct fb_inode *fi)
{
	mutex_lock(&fi->wb_lock);
	fb_evict_range(fi, 0, ULONG_MAX);
	fb_evict_record_and_time(fi);
	mutex_unlock(&fi->wb_lock);
}

/**
 * fb_abandon() - unmount leaves what could not be written back to the next mount
 * @fi: the inode; the caller has a reference
 *
 * Its record and the records of its pages stay.
 */
void fb_abandon(struct fb_inode *fi)
{
	struct file *wb_file;
	struct fb_page *page;
	unsigned long index;

	mutex_lock(&fi->wb_lock);	/* a task may be using wb_file */
	down_write(&fi->io_sem);
	xa_for_each(&fi->index, index, page) {
		fb_page_detach(fi, page);
		fb_page_unname(FB_SB(fi->vfs_inode.i_sb), page);
	}
	wb_file = fb_record_forget(fi);
	up_write(&fi->io_sem);
	mutex_unlock(&fi->wb_lock);
	__fput_sync(wb_file);
}
