// SPDX-License-Identifier: GPL-2.0-only
/*
 * The worker: when pages are written back, and how many.
 *
 * It runs when free and clean pages together are less than a quarter of the cache, until they are half of
 * it; and when less than an eighth of the file records are free, until a quarter of them are (records.c).
 * It gives up clean pages when less than an eighth of the cache is free, until a quarter is; and when a sync
 * was too large for what is free, until such a sync has room (fb_cache_want_room()).
 *
 * While a file's turn takes long (turn.c), the worker comes again soon. What that turn has made clean by then
 * can be given up.
 *
 * Without any such need, age.c writes old pages back while storage is idle.
 */
#include <linux/workqueue.h>

#include "../page/alloc.h"
#include "../page/walk.h"
#include "../pin/lock.h"
#include "reclaim.h"
#include "records.h"
#include "turn.h"
#include "worker.h"

/* In jiffies, before the worker looks again: files are at their turn still, or had one in vain. */
#define FB_TURN_LOOK	(HZ / 10)

static bool fb_writeback_wanted(struct fb_sb *fsb, unsigned int of_four)
{
	unsigned long all, ready;

	spin_lock(&fsb->lru_lock);
	all = fsb->ps.nr_pages - fsb->nr_resident;
	ready = fsb->nr_free + fsb->nr_clean - fsb->nr_resident_clean;
	spin_unlock(&fsb->lru_lock);
	return ready < all / 4 * of_four;
}

/* Visits every file once, or until enough is clean. Returns whether a file's turn takes long. */
static bool fb_writeback_round(struct fb_sb *fsb)
{
	struct fb_walk walk;
	struct fb_inode *fi;
	bool busy = false;

	fb_walk_begin(fsb, &fsb->inodes, &walk);
	while (fb_writeback_wanted(fsb, 2) && (fi = fb_walk_next(fsb, &walk))) {
		busy = fb_turn(fi, NULL) || busy;
		iput(&fi->vfs_inode);
		if (fb_cache_low(fsb))
			fb_reclaim(fsb, fsb->ps.nr_pages / 4);
	}
	fb_walk_end(fsb, &walk);
	return busy;
}

/* Clean pages become free ones. */
static void fb_make_free(struct fb_sb *fsb)
{
	unsigned long want = xchg(&fsb->want_free, 0);

	if (fb_cache_low(fsb))
		want = max(want, fsb->ps.nr_pages / 4);
	fb_reclaim(fsb, want);
}

/**
 * fb_writeback_work() - the worker: clean pages are made, and given up when needed
 * @work: fb_sb->writeback_work
 *
 * It ends before its goal, and comes again soon, if files are at their turn still. Likewise if a round makes
 * nothing clean: there are only pages that storage refuses, or that are changed again at once.
 */
void fb_writeback_work(struct work_struct *work)
{
	struct fb_sb *fsb = container_of(to_delayed_work(work), struct fb_sb, writeback_work);
	struct percpu_counter *cleaned = &fsb->counters[FB_PAGES_WRITTEN_BACK];
	bool busy;
	s64 before;

	fb_take_busy(fsb);
	if (fb_cache_low(fsb) && READ_ONCE(fsb->pins.charged))
		fb_pins_refresh_all(fsb);
	fb_make_free(fsb);
	if (fb_records_low(fsb))
		fb_records_reclaim(fsb);
	if (!fb_writeback_wanted(fsb, 1))
		return;
	while (fb_writeback_wanted(fsb, 2) && READ_ONCE(fsb->nr_out_of_sync)) {
		before = percpu_counter_sum(cleaned);
		busy = fb_writeback_round(fsb);
		if (busy || percpu_counter_sum(cleaned) == before) {
			queue_delayed_work(fsb->wq, &fsb->writeback_work, FB_TURN_LOOK);
			return;
		}
	}
}
