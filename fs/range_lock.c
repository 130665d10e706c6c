// SPDX-License-Identifier: GPL-2.0-only
/*
 * Locks on ranges of a file's pages. They say which pages may change their place while the file system
 * below works on them, without holding up the rest of the file.
 *
 *   shared	a write, a fault or direct I/O passes pages below. It locks its range, looks the index up and
 *		goes below with nothing else held. No page of the range moves into PMem meanwhile.
 *   exclusive	pages of the range move into PMem; or a truncation, a punched hole, a copy hands the range to
 *		the lower file system. All that was passed below for the range is over.
 *
 * Ranges are granted in the order of requests: a request waits for each earlier one that overlaps it, unless
 * both are shared. So a stream of writes doesn't starve the task that moves a page. A task waits at most for
 * the requests that were in its way when it came.
 *
 * A request that waits is in the tree already, with the count of ranges in its way. Each unlock takes one
 * off the count of every later range that it was in the way of.
 *
 * Context: a range is locked outside of io_sem and of all locks of the lower file system. It may be
 * unlocked in any context, by the end of an asynchronous request. A task that holds a range takes no page
 * fault.
 */
#include <linux/interval_tree_generic.h>
#include <linux/sched/signal.h>

#include "range_lock.h"

#define FB_RANGE_FIRST(range)	((range)->first)
#define FB_RANGE_LAST(range)	((range)->last)
/* Not every kernel has lib/interval_tree.c built in; the template that makes its functions is a header. */
INTERVAL_TREE_DEFINE(struct fb_range, rb, unsigned long, subtree_last, FB_RANGE_FIRST, FB_RANGE_LAST,
		     static inline, fb_ranges)

/**
 * fb_range_lock_init() - a file without locked ranges
 * @rl: the file's ranges
 */
void fb_range_lock_init(struct fb_range_lock *rl)
{
	static struct lock_class_key key;

	spin_lock_init(&rl->lock);
	rl->ranges = RB_ROOT_CACHED;
	rl->next_ticket = 0;
	rl->nr_exclusive = 0;
	lockdep_init_map(&rl->dep_map, "fb_range", &key, 0);
}

/* Counts what is in the way of @range. */
static unsigned int fb_range_count_blockers(struct fb_range_lock *rl, const struct fb_range *range)
{
	pgoff_t first = range->first, last = range->last;
	unsigned int blockers = 0;
	struct fb_range *other;

	lockdep_assert_held(&rl->lock);
	if (!range->exclusive && !rl->nr_exclusive)
		return 0;
	for (other = fb_ranges_iter_first(&rl->ranges, first, last); other;
	     other = fb_ranges_iter_next(other, first, last))
		blockers += range->exclusive || other->exclusive;
	return blockers;
}

/* Takes a range out, held or waited for; wakes the requests that have nothing else in their way. */
static void fb_range_remove(struct fb_range_lock *rl, struct fb_range *range)
{
	pgoff_t first = range->first, last = range->last;
	struct fb_range *other;

	lockdep_assert_held(&rl->lock);
	fb_ranges_remove(range, &rl->ranges);
	WRITE_ONCE(rl->nr_exclusive, rl->nr_exclusive - range->exclusive);
	if (!range->exclusive && !rl->nr_exclusive)
		return;
	for (other = fb_ranges_iter_first(&rl->ranges, first, last); other;
	     other = fb_ranges_iter_next(other, first, last)) {
		if (other->ticket < range->ticket || (!range->exclusive && !other->exclusive))
			continue;
		/* Pairs with fb_range_wait(): what was done under @range is seen under @other. */
		smp_store_release(&other->blocked, other->blocked - 1);
		if (!other->blocked)
			wake_up_process(other->task);	/* the task can't go before it has rl->lock */
	}
}

/* Waits until nothing is in the way. Returns -EINTR if the task was killed first. */
static int fb_range_wait(struct fb_range_lock *rl, struct fb_range *range, bool killable)
{
	unsigned int state = killable ? TASK_KILLABLE : TASK_UNINTERRUPTIBLE;
	int err = 0;

	for (;;) {
		set_current_state(state);
		if (!smp_load_acquire(&range->blocked))	/* pairs with fb_range_remove() */
			break;
		if (killable && fatal_signal_pending(current)) {
			err = -EINTR;
			break;
		}
		schedule();
	}
	__set_current_state(TASK_RUNNING);
	return err;
}

/**
 * fb_range_lock() - lock a range of a file's pages
 * @rl: the file's ranges
 * @range: the lock; the caller's, until fb_range_unlock()
 * @first: first page
 * @last: last page
 * @how: FB_RANGE_*
 *
 * Context: process. Sleeps, but with FB_RANGE_NOWAIT.
 * Return: 0; -EINTR if the task was killed while it waited, -EAGAIN if it would have to wait.
 */
int fb_range_lock(struct fb_range_lock *rl, struct fb_range *range, pgoff_t first, pgoff_t last,
		  unsigned int how)
{
	unsigned int blocked;
	unsigned long flags;
	int err = 0;

	range->first = first;
	range->last = last;
	range->task = current;
	range->exclusive = how & FB_RANGE_EXCLUSIVE;
	range->owned = true;
	if (!(how & FB_RANGE_NOWAIT))
		might_sleep();
	lock_acquire(&rl->dep_map, how & FB_RANGE_SECOND ? SINGLE_DEPTH_NESTING : 0,
		     !!(how & FB_RANGE_NOWAIT), !range->exclusive, 1, NULL, _RET_IP_);

	spin_lock_irqsave(&rl->lock, flags);
	blocked = fb_range_count_blockers(rl, range);
	range->blocked = blocked;
	if (blocked && (how & FB_RANGE_NOWAIT)) {
		err = -EAGAIN;
	} else {
		range->ticket = rl->next_ticket++;
		fb_ranges_insert(range, &rl->ranges);
		WRITE_ONCE(rl->nr_exclusive, rl->nr_exclusive + range->exclusive);
	}
	spin_unlock_irqrestore(&rl->lock, flags);
	if (blocked && !err) {
		err = fb_range_wait(rl, range, how & FB_RANGE_KILLABLE);
		if (err) {
			fb_range_unlock(rl, range);
			return err;
		}
	}
	if (err)
		lock_release(&rl->dep_map, _RET_IP_);
	return err;
}

/**
 * fb_range_disown() - a request that is about to be passed below will unlock its range when it ends
 * @rl: the file's ranges
 * @range: locked by this task
 */
void fb_range_disown(struct fb_range_lock *rl, struct fb_range *range)
{
	range->owned = false;
	lock_release(&rl->dep_map, _RET_IP_);
}

/**
 * fb_range_unlock() - unlock a range
 * @rl: the file's ranges
 * @range: locked, or waited for by this task
 *
 * Context: any.
 */
void fb_range_unlock(struct fb_range_lock *rl, struct fb_range *range)
{
	unsigned long flags;

	if (range->owned)
		lock_release(&rl->dep_map, _RET_IP_);
	spin_lock_irqsave(&rl->lock, flags);
	fb_range_remove(rl, range);
	spin_unlock_irqrestore(&rl->lock, flags);
}

/* For fb_range_is_exclusive(). */
bool __fb_range_is_exclusive(struct fb_range_lock *rl, pgoff_t index)
{
	struct fb_range *range;
	unsigned long flags;

	spin_lock_irqsave(&rl->lock, flags);
	for (range = fb_ranges_iter_first(&rl->ranges, index, index); range;
	     range = fb_ranges_iter_next(range, index, index)) {
		if (range->exclusive)
			break;
	}
	spin_unlock_irqrestore(&rl->lock, flags);
	return range;
}
