// SPDX-License-Identifier: GPL-2.0-only
/*
 * Absorption: a sync call that owes few volatile pages moves them into PMem instead of waiting for storage.
 * From then on they are DAX pages, and writes change them in place. move.c moves each page.
 */
#include "../page/index.h"
#include "../page/record.h"
#include "../trace.h"
#include "absorb.h"
#include "move.h"
#include "tracker.h"

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
	fb_pages_move_in(fi, in, nr, 0);
	fb_count(FB_SB(fi->vfs_inode.i_sb), FB_PAGES_ABSORBED, nr);
	return err;
}

/*
 * A page that moved after this sync has emptied the tracker was taken for clean. It isn't durable below,
 * so it is marked out-of-sync.
 */
static void fb_absorb_touch(struct fb_inode *fi, pgoff_t first, pgoff_t end)
{
	struct fb_page *page;
	unsigned long index;

	down_read(&fi->io_sem);
	xa_for_each_range(&fi->index, index, page, first, end - 1)
		fb_page_touch(fi, page);
	up_read(&fi->io_sem);
}

static int fb_absorb_range(struct fb_inode *fi, pgoff_t index, pgoff_t end)
{
	struct fb_range range;
	int err;

	fb_range_lock(&fi->ranges, &range, index, end - 1, FB_RANGE_EXCLUSIVE);
	end = min(end, fb_pages_in_file(fi));
	err = index < end ? fb_record_for_pages(fi) : 0;
	if (!err && index < end)
		fb_absorb_touch(fi, index, end);
	while (!err && index < end)
		err = fb_absorb_batch(fi, &index, end);
	fb_range_unlock(&fi->ranges, &range);
	return err;
}

/**
 * fb_absorb() - make the volatile pages that a file owes durable in PMem
 * @fi: the inode
 *
 * Context: process, under sync_lock. Sleeps.
 * Return: 0 when they are; else a negative errno: the tracker has them still, and
 * the caller has to go below.
 */
int fb_absorb(struct fb_inode *fi)
{
	struct fb_sb *fsb = FB_SB(fi->vfs_inode.i_sb);
	struct fb_tracker owed = fb_track_take(fi);
	int err = 0;

	lockdep_assert_held(&fi->sync_lock);
	if (owed.overflow || owed.nr_pages > fsb->absorb_pages || !fb_may_absorb(fi))
		err = -E2BIG;
	for (unsigned int i = 0; !err && i < owed.nr_ranges; i++)
		err = fb_absorb_range(fi, owed.range[i].start, owed.range[i].end);
	if (err)
		fb_track_again(fi, &owed);
	if (err == -ENOSPC)
		fb_count(fsb, FB_CACHE_FULL, 1);
	trace_fb_absorb(fi, owed.nr_pages, err);
	return err;
}
