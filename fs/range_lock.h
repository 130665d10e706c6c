/* SPDX-License-Identifier: GPL-2.0-only */
/* Locks on ranges of a file's pages: range_lock.c */
#ifndef FOREBAY_RANGE_LOCK_H
#define FOREBAY_RANGE_LOCK_H

#include <linux/lockdep.h>
#include <linux/rbtree.h>
#include <linux/spinlock.h>
#include <linux/types.h>

/* How a range is locked. */
enum {
	FB_RANGE_SHARED		= 0,
	FB_RANGE_EXCLUSIVE	= 1,
	FB_RANGE_KILLABLE	= 2,	/* a fatal signal ends the wait */
	FB_RANGE_NOWAIT		= 4,
	FB_RANGE_SECOND		= 8,	/* for lockdep: the task has locked a range of another file */
};

/* A range that a task holds, or waits for. */
struct fb_range {
	struct rb_node rb;
	unsigned long first, last, subtree_last;
	struct task_struct *task;	/* the waiter */
	u64 ticket;			/* in the order of requests */
	unsigned int blocked;		/* so many earlier ranges are in the way */
	bool exclusive;
	bool owned;			/* by a task, for lockdep; a request in flight has none */
};

/* The ranges of one file. */
struct fb_range_lock {
	spinlock_t lock;		/* the next three */
	struct rb_root_cached ranges;	/* those held and those waited for */
	u64 next_ticket;
	unsigned int nr_exclusive;	/* of both kinds */
	struct lockdep_map dep_map;
};

void fb_range_lock_init(struct fb_range_lock *rl);
int fb_range_lock(struct fb_range_lock *rl, struct fb_range *range, pgoff_t first, pgoff_t last,
		  unsigned int how);
void fb_range_disown(struct fb_range_lock *rl, struct fb_range *range);
void fb_range_unlock(struct fb_range_lock *rl, struct fb_range *range);
bool __fb_range_is_exclusive(struct fb_range_lock *rl, pgoff_t index);

/**
 * fb_range_is_exclusive() - whether a page is in a range that is locked exclusively, or about to be
 * @rl: the file's ranges
 * @index: the page
 *
 * Context: under io_sem, so that a task which locks a range and then takes io_sem exclusively is sure that
 * every later caller sees the range.
 */
static inline bool fb_range_is_exclusive(struct fb_range_lock *rl, pgoff_t index)
{
	return unlikely(READ_ONCE(rl->nr_exclusive)) && __fb_range_is_exclusive(rl, index);
}

#endif
