// SPDX-License-Identifier: GPL-2.0-only
/*
 * Promotion: pages of a range that belongs in PMem move there from the lower page cache.
 *
 * A range belongs in PMem if it is in a MAP_SYNC mapping, attached or pinned (pin/belong.c).
 * Its pages move
 *   - when that begins: those that the lower page cache has, dirty and mapped ones too, as long as free
 *     pages last (fb_promote());
 *   - at the next fault, or after the next write (vfs/fault.c, vfs/write.c);
 *   - all of them, waiting for space, if the range is pinned (vfs/range_ioctl.c).
 * If a page can't move when a MAP_SYNC mapping is made, it is written back and leaves the lower page cache.
 * So it isn't in the way later. A fault on such a mapping maps a volatile page in three cases only: the page
 * is busy and is read, the file is immutable, or the file has lost its last name (vfs/fault.c).
 *
 * Each page moves as in move.c.
 */
#include <linux/mm.h>

#include "../page/alloc.h"
#include "../page/entry.h"
#include "../page/index.h"
#include "../page/record.h"
#include "../pin/belong.h"
#include "move.h"
#include "promote.h"

/* Pages looked at under one lock of their range. */
#define FB_PROMOTE_LOOK		64
/* How long, in jiffies, and how often a task waits for a page that hardware or other tasks use. */
#define FB_BUSY_STEP		(HZ / 50)
#define FB_BUSY_TRIES		250

/* The page's range is locked exclusively. */
static int fb_promote_locked(struct fb_inode *fi, pgoff_t index)
{
	struct fb_incoming in;
	int err;

	if (index >= fb_pages_in_file(fi))
		return -ENXIO;
	if (fb_page_find(fi, index))
		return 0;
	err = fb_record_for_pages(fi) ?: fb_move_in(fi, index, false, NULL, &in);
	if (err)
		return err;
	err = fb_record_lock(fi);
	if (err)
		fb_pages_stay_out(fi, &in, 1);
	else
		err = fb_pages_move_in(fi, &in, 1, 0);
	return err;
}

/**
 * fb_promote_page() - move one page into PMem
 * @fi: the inode
 * @index: the page; the lower page cache has had it just now
 *
 * Context: process; locks the page's range, takes io_sem.
 * Return: 0; -ENOSPC, -ENOENT, -EBUSY as fb_move_in(); -EINTR if the task is killed; -ENXIO if the file has
 * become shorter; -EPERM if it is immutable; or why there is no file record.
 */
int fb_promote_page(struct fb_inode *fi, pgoff_t index)
{
	struct fb_range range;
	int err;

	err = fb_range_lock(&fi->ranges, &range, index, index, FB_RANGE_EXCLUSIVE | FB_RANGE_KILLABLE);
	if (err)
		return err;
	err = fb_promote_locked(fi, index);
	fb_range_unlock(&fi->ranges, &range);
	return err;
}

/* True if the page belongs in PMem. Takes io_sem. */
static bool fb_wanted(struct fb_inode *fi, pgoff_t index)
{
	bool wanted;

	down_read(&fi->io_sem);
	wanted = fb_belongs_in_pmem(fi, index, index);
	up_read(&fi->io_sem);
	return wanted;
}

/*
 * Moves a batch from *index up to @last, in a range that is locked exclusively; *index becomes the next to
 * look at. Returns -ENOSPC when no page is free.
 */
static int fb_promote_batch(struct fb_inode *fi, pgoff_t *index, pgoff_t last, bool whole)
{
	struct fb_incoming in[FB_MOVE_BATCH];
	struct folio *locked = NULL;
	unsigned int nr = 0;
	int err = 0, err2;

	for (; *index <= last && nr < FB_MOVE_BATCH; ++*index) {
		if (!xa_find(&fi->lower->i_mapping->i_pages, index, last, XA_PRESENT)) {
			*index = last + 1;
			break;
		}
		if (fb_page_find(fi, *index) || (!whole && !fb_wanted(fi, *index)))
			continue;
		err = fb_move_in(fi, *index, false, locked, &in[nr]);
		if (err && err != -ENOENT && err != -EBUSY)	/* these stay volatile, for now */
			break;
		if (!err) {
			locked = in[nr].folio ?: locked;
			nr++;
		}
		err = 0;
	}
	if (!nr)
		return err;
	err2 = fb_record_lock(fi);
	if (err2)
		fb_pages_stay_out(fi, in, nr);
	else
		fb_pages_move_in(fi, in, nr, 0);	/* or they stay volatile, for now */
	return err2 ?: err;
}

/* The same for a window of pages from *index on. */
static int fb_promote_window(struct fb_inode *fi, pgoff_t *index, pgoff_t last, bool whole)
{
	struct fb_range range;
	pgoff_t beyond;
	int err;

	last = min(last, *index + FB_PROMOTE_LOOK - 1);
	err = fb_range_lock(&fi->ranges, &range, *index, last, FB_RANGE_EXCLUSIVE | FB_RANGE_KILLABLE);
	if (err)
		return err;
	beyond = fb_pages_in_file(fi);
	err = *index < beyond ? fb_record_for_pages(fi) : 0;
	while (!err && *index < min(last + 1, beyond))
		err = fb_promote_batch(fi, index, min(last, beyond - 1), whole);
	if (!err)
		*index = last + 1;
	fb_range_unlock(&fi->ranges, &range);
	return err;
}

/**
 * fb_promote() - move the volatile pages of a range that are in memory into PMem
 * @fi: the inode
 * @index: first page; becomes the one behind the last that was looked at
 * @last: last page
 * @whole: all of them; or only those that belong there
 *
 * Pages that hardware uses stay.
 *
 * Return: 0; -ENOSPC if no page is free; -EINTR; -EPERM if the file is immutable; or why there is no file
 * record.
 */
int fb_promote(struct fb_inode *fi, pgoff_t *index, pgoff_t last, bool whole)
{
	struct xarray *lower = &fi->lower->i_mapping->i_pages;
	int err = 0;

	while (!err && *index <= last && xa_find(lower, index, last, XA_PRESENT)) {
		if (*index >= fb_pages_in_file(fi))
			break;
		err = fb_promote_window(fi, index, last, whole);
		if (fatal_signal_pending(current))
			err = -EINTR;
		cond_resched();
	}
	if (!err)
		*index = last + 1;
	return err;
}

/**
 * fb_promote_mapped() - a MAP_SYNC mapping is made
 * @fi: the inode
 * @first: first page of the mapping
 * @last: last page
 *
 * Pages for which no page of PMem is free leave the lower page cache: written back if they are dirty.
 */
void fb_promote_mapped(struct fb_inode *fi, pgoff_t first, pgoff_t last)
{
	struct address_space *mapping = fi->lower->i_mapping;

	if (fb_promote(fi, &first, last, true) != -ENOSPC || first > last)
		return;
	/* Either call may fail; then faults find the pages in the lower page cache. */
	filemap_write_and_wait_range(mapping, (loff_t)first << PAGE_SHIFT,
				     ((loff_t)last << PAGE_SHIFT) + PAGE_SIZE - 1);
	invalidate_inode_pages2_range(mapping, first, last);
}

/**
 * fb_wait_to_promote() - after fb_promote_page() has failed: wait for what the page lacked
 * @fi: the inode
 * @err: why it has failed
 * @patience: of all tries with this page
 *
 * Waits for space, or a step for a busy page. A page that went away is tried again at once. The caller
 * holds no range, nor io_sem.
 *
 * Return: 0 to try again; -EINTR if the task is killed; -ENOMEM if space was waited for in vain; @err if
 * the page was busy for too long, or if the error is one that no wait helps against.
 */
int fb_wait_to_promote(struct fb_inode *fi, int err, struct fb_patience *patience)
{
	if (err == -ENOSPC || err == -EXFULL)
		err = fb_wait_for_space(fi, err, &patience->deadline);
	else if (err == -EBUSY && ++patience->busy <= FB_BUSY_TRIES)
		err = schedule_timeout_killable(FB_BUSY_STEP) ? -EINTR : 0;
	else if (err == -ENOENT)	/* went away */
		err = 0;
	return err ?: fatal_signal_pending(current) ? -EINTR : 0;
}
