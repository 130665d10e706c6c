// SPDX-License-Identifier: GPL-2.0-only
/*
 * The worker: when pages are written back, and how many.
 *
 * It is woken when less than an eighth of the cache is free, or less than an eighth of the file records; when
 * a task waits for one of these; and when a sync was too large for what is free. First it gives up clean
 * pages, if less than an eighth is free until a quarter is, and for a large sync until that has room
 * (fb_cache_want_room()). Then it takes file records back, until a quarter of them are free (records.c). It
 * writes pages back if free and clean pages together are less than a quarter of the cache, until they are
 * half of it; and if less than an eighth is still free, or a large sync hasn't room, because reclaim spares
 * what is clean (reclaim.c). Of all these, resident pages are no part.
 *
 * Only files that reclaim would take pages of are written back. Other files' pages would be out-of-sync again
 * soon, and the next write to a page that has become clean costs more. That is enough: if all pages of the
 * files above their share are clean, then clean pages and free ones are a quarter of the cache.
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

/* In jiffies. The worker looks again after this if files are still at their turn, or had one in vain. */
#define FB_TURN_LOOK	(HZ / 10)
/* So many pages are clean that were not: reclaim may find some. */
#define FB_TURNS_CLEANED	64

/* True if free and clean pages are less than so many quarters of the cache. */
static bool fb_ready_is_short(struct fb_sb *fsb, unsigned int of_four)
{
	unsigned long ready;

	spin_lock(&fsb->lru_lock);
	ready = fsb->nr_free + fsb->nr_clean - fsb->nr_resident_clean;
	spin_unlock(&fsb->lru_lock);
	return ready < fb_cache_part(fsb, 4) * of_four;
}

static bool fb_writeback_wanted(struct fb_sb *fsb, unsigned int of_four)
{
	unsigned long out_of_sync;

	spin_lock(&fsb->lru_lock);
	out_of_sync = fsb->nr_out_of_sync - (fsb->nr_resident - fsb->nr_resident_clean);
	spin_unlock(&fsb->lru_lock);
	/* If free pages are few after a look at the clean ones, reclaim spares those. */
	return out_of_sync && (fb_cache_low(fsb) || fb_ready_is_short(fsb, of_four));
}

/* True if so many pages are not free, and some that are out-of-sync could be. */
static bool fb_is_short_of(struct fb_sb *fsb, unsigned long want)
{
	return READ_ONCE(fsb->nr_free) < want && READ_ONCE(fsb->nr_out_of_sync);
}

/*
 * Visits every file once, or until enough is clean, and so many pages are free. Returns whether a file's turn
 * takes long.
 */
static bool fb_writeback_round(struct fb_sb *fsb, unsigned long want)
{
	unsigned long free = max(want, fb_cache_part(fsb, 4));
	struct fb_walk walk;
	struct fb_inode *fi;
	unsigned long clean = READ_ONCE(fsb->nr_clean);
	bool spared, busy = false;

	fb_walk_begin(fsb, &fsb->inodes, &walk);
	while ((fb_is_short_of(fsb, want) || fb_writeback_wanted(fsb, 2)) &&
	       (fi = fb_walk_next(fsb, &walk))) {
		spared = fb_reclaim_spares(fi, free);
		if (!spared)
			busy = fb_turn(fi, NULL) || busy;
		iput(&fi->vfs_inode);
		/* After a file that is spared there is more to give up only if other turns have ended. */
		if (spared && READ_ONCE(fsb->nr_clean) < clean + FB_TURNS_CLEANED)
			continue;
		if (fb_cache_low(fsb) || fb_is_short_of(fsb, want))
			fb_reclaim(fsb, free);
		clean = READ_ONCE(fsb->nr_clean);
	}
	fb_walk_end(fsb, &walk);
	return busy;
}

/* Clean pages become free ones. Returns how many shall be free for a large sync. */
static unsigned long fb_make_free(struct fb_sb *fsb)
{
	unsigned long room = xchg(&fsb->want_free, 0);

	fb_reclaim(fsb, fb_cache_low(fsb) ? max(room, fb_cache_part(fsb, 4)) : room);
	return room;
}

/**
 * fb_writeback_work() - the worker: clean pages are made, and given up when needed
 * @work: fb_sb->writeback_work
 *
 * It ends before its goal, and comes again soon, if files are at their turn still. Likewise if a round makes
 * nothing clean: there are only pages that storage refuses, or that are changed again at once. If it makes
 * nothing clean, and enough is, the rest is spared: the next task that takes a page wakes the worker.
 */
void fb_writeback_work(struct work_struct *work)
{
	struct fb_sb *fsb = container_of(to_delayed_work(work), struct fb_sb, writeback_work);
	struct percpu_counter *cleaned = &fsb->counters[FB_PAGES_WRITTEN_BACK];
	unsigned long room;
	bool busy;
	s64 before;

	fb_take_busy(fsb);
	if (fb_cache_low(fsb) && READ_ONCE(fsb->pins.charged))
		fb_pins_refresh_all(fsb);
	room = fb_make_free(fsb);
	if (fb_records_low(fsb))
		fb_records_reclaim(fsb);
	if (fb_is_short_of(fsb, room))
		fb_writeback_round(fsb, room);
	if (!fb_writeback_wanted(fsb, 1))
		return;
	while (fb_writeback_wanted(fsb, 2)) {
		before = percpu_counter_sum(cleaned);
		busy = fb_writeback_round(fsb, 0);
		if (!busy && percpu_counter_sum(cleaned) != before)
			continue;
		if (busy || fb_ready_is_short(fsb, 1))
			queue_delayed_work(fsb->wq, &fsb->writeback_work, FB_TURN_LOOK);
		return;
	}
}
