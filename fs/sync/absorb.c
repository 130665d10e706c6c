// SPDX-License-Identifier: GPL-2.0-only
/*
 * Absorption: a sync call moves the volatile pages of a file into PMem instead of waiting for storage.
 * From then on they are DAX pages, and writes change them in place. move.c moves each page.
 *
 * A sync goes below instead
 *   - if moving so many pages would take longer than the lower fsync, as far as has been measured (cost.c);
 *   - if it has more pages than one sync may take of those that are free (fb_cache_room()). Absorbed pages
 *     have to be written back later, so a cache that is short gains nothing by them;
 *   - if it has more than FB_ABSORB_MAX pages. That is a copy of a large file. Most of its time goes into
 *     bytes and not into the call, and its bytes would be written to storage twice;
 *   - if it isn't known which pages are volatile (tracker.c).
 *
 * Pages are locked in windows, and enter the index in batches, so that readers and writers of the file don't
 * wait for the whole sync. A sync that ends midway, for lack of a free page, leaves in PMem what has moved,
 * and goes below for all.
 */
#include "../page/alloc.h"
#include "../page/entry.h"
#include "../page/index.h"
#include "../page/record.h"
#include "../trace.h"
#include "absorb.h"
#include "cost.h"
#include "move.h"
#include "tracker.h"

/* Of one sync: 64 MiB. */
#define FB_ABSORB_MAX		(SZ_64M / PAGE_SIZE)
/* Pages moved under one lock of their range. */
#define FB_ABSORB_WINDOW	64

/*
 * Moves the pages from *index on, at most a batch of them; *index becomes the next to look at. The range is
 * locked exclusively.
 */
static int fb_absorb_batch(struct fb_inode *fi, pgoff_t *index, pgoff_t end)
{
	struct fb_incoming in[FB_MOVE_BATCH];
	struct folio *locked = NULL;
	unsigned int nr = 0;
	int err = 0, err2;

	for (; *index < end && nr < FB_MOVE_BATCH; ++*index) {
		if (fb_page_find(fi, *index))
			continue;
		err = fb_move_in(fi, *index, true, locked, &in[nr]);
		if (err)
			break;
		locked = in[nr].folio ?: locked;
		in[nr++].clean = false;		/* as below */
	}
	if (!nr)
		return err;
	err2 = fb_record_lock(fi);
	if (err2) {
		fb_pages_stay_out(fi, in, nr);
		return err2;
	}
	err2 = fb_pages_move_in(fi, in, nr, 0);
	if (err2)
		return err2;
	fb_count(FB_SB(fi->vfs_inode.i_sb), FB_PAGES_ABSORBED, nr);
	return err;
}

/*
 * A page that moved after this sync has emptied the tracker was taken for clean. It isn't durable below,
 * so it is marked out-of-sync.
 */
static int fb_absorb_touch(struct fb_inode *fi, pgoff_t first, pgoff_t end)
{
	struct fb_page *page;
	unsigned long index;
	int err = 0;

	down_read(&fi->io_sem);
	xa_for_each_range(&fi->index, index, page, first, end - 1)
		err = fb_page_touch(fi, page) ?: err;
	up_read(&fi->io_sem);
	return err;
}

static int fb_absorb_window(struct fb_inode *fi, pgoff_t index, pgoff_t end, unsigned int how)
{
	struct fb_range range;
	int err;

	err = fb_range_lock(&fi->ranges, &range, index, end - 1, FB_RANGE_EXCLUSIVE | how);
	if (err)
		return err;
	end = min(end, fb_pages_in_file(fi));
	err = index < end ? fb_record_for_pages(fi) : 0;
	if (!err && index < end)
		err = fb_absorb_touch(fi, index, end);
	while (!err && index < end)
		err = fb_absorb_batch(fi, &index, end);
	fb_range_unlock(&fi->ranges, &range);
	return err;
}

static int fb_absorb_range(struct fb_inode *fi, const struct fb_pages_from *range, unsigned int how)
{
	pgoff_t at = range->start, end = range->end;
	int err = 0;

	for (; !err && at < min(end, fb_pages_in_file(fi)); at += FB_ABSORB_WINDOW) {
		err = fb_absorb_window(fi, at, min(end, at + FB_ABSORB_WINDOW), how);
		cond_resched();
	}
	return err;
}

static int fb_absorb_ranges(struct fb_inode *fi, struct fb_tracker *taken, unsigned int how)
{
	const struct fb_pages_from *range = fb_track_ranges(taken);
	int err = taken->overflow ? -E2BIG : 0;

	for (unsigned int i = 0; !err && i < taken->nr_ranges; i++)
		err = fb_absorb_range(fi, &range[i], how);
	return err;
}

/* Why a sync of so many pages goes below, or 0. A batch of pages may take the last ones that are free. */
static int fb_absorb_refuses(struct fb_inode *fi, unsigned long pages)
{
	struct fb_sb *fsb = FB_SB(fi->vfs_inode.i_sb);

	if (pages > FB_ABSORB_MAX || !fb_may_absorb(fi))
		return -E2BIG;
	if (pages > FB_MOVE_BATCH && pages > fb_cache_room(fsb)) {
		fb_cache_want_room(fsb, pages);
		return -ENOSPC;
	}
	return pages > fb_cost_limit(fsb) && !fb_cost_again(fsb) ? -E2BIG : 0;
}

/**
 * fb_absorb_max() - how many pages a sync may have now to be absorbed
 * @fsb: the mount
 *
 * Any context.
 */
unsigned long fb_absorb_max(const struct fb_sb *fsb)
{
	return min3(fb_cost_limit(fsb), FB_ABSORB_MAX, max(fb_cache_room(fsb), FB_MOVE_BATCH));
}

/**
 * fb_absorb() - make a file's volatile pages durable in PMem
 * @fi: the inode
 * @how: ranges of pages that other tasks have locked are waited for: FB_RANGE_KILLABLE, or FB_RANGE_NOWAIT
 *
 * Context: process, under sync_lock. Sleeps.
 * Return: 0 when they are; else a negative errno: the tracker has them still, and
 * the caller has to go below.
 */
int fb_absorb(struct fb_inode *fi, unsigned int how)
{
	struct fb_sb *fsb = FB_SB(fi->vfs_inode.i_sb);
	unsigned long pages = fb_track_count(fi);
	int err = fb_absorb_refuses(fi, pages);
	u64 start_ns = ktime_get_ns();
	struct fb_tracker taken;

	lockdep_assert_held(&fi->sync_lock);
	if (!err) {
		taken = fb_track_take(fi);
		pages = taken.nr_pages;
		err = fb_absorb_ranges(fi, &taken, how);
		if (err)
			fb_track_again(fi, &taken);
		else
			fb_cost_absorbed(fsb, pages, start_ns);
		fb_track_free(&taken);
	}
	if (err == -ENOSPC)
		fb_count(fsb, FB_CACHE_FULL, 1);
	trace_fb_absorb(fi, pages, err);
	return err;
}
