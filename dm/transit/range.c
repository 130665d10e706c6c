// SPDX-License-Identifier: GPL-2.0-only
/*
 * Ranges of discards and zeroes in flight.
 *
 * Such a bio spans many sets, so its range is on one list of the target. Writers check the list under
 * their set's lock; discard.c says how that excludes them.
 *
 * Uses no other file. Used by set.c, discard.c and map.c.
 */
#include "transit.h"

void dtc_discards_init(struct dtc *t)
{
	spin_lock_init(&t->discards.lock);
	init_waitqueue_head(&t->discards.wait);
}

bool dtc_discards_overlap(struct dtc *t, u64 first, u64 last)
{
	struct dtc_range *range;
	bool covers = false;
	unsigned long flags;

	spin_lock_irqsave(&t->discards.lock, flags);
	hlist_for_each_entry(range, &t->discards.ranges, node)
		covers |= dtc_overlaps(range, first, last);
	spin_unlock_irqrestore(&t->discards.lock, flags);
	return covers;
}

void dtc_discards_wait(struct dtc *t, u64 first, u64 last)
{
	wait_event(t->discards.wait, !dtc_discards_overlap(t, first, last));
}

void dtc_discards_add(struct dtc *t, struct dtc_range *range)
{
	spin_lock_irq(&t->discards.lock);
	hlist_add_head(&range->node, &t->discards.ranges);
	WRITE_ONCE(t->discards.nr, t->discards.nr + 1);
	spin_unlock_irq(&t->discards.lock);
}

void dtc_discards_remove(struct dtc *t, struct dtc_range *range)
{
	unsigned long flags;

	spin_lock_irqsave(&t->discards.lock, flags);
	hlist_del(&range->node);
	WRITE_ONCE(t->discards.nr, t->discards.nr - 1);
	spin_unlock_irqrestore(&t->discards.lock, flags);
	wake_up_all(&t->discards.wait);
}
