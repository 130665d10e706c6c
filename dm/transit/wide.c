// SPDX-License-Identifier: GPL-2.0-only
/*
 * Discards and zeros: bios of any length, in as many sets.
 *
 * Such a bio is put on record first. Then set after set is visited: who is at work
 * on its blocks there is waited for, and their slots go. Nobody begins a write to
 * its blocks until it is done, as writers look at the record with their set's lock
 * held. What a discard finds in slots is dropped; what zeros find is evicted, so
 * that a reader meanwhile sees that or zeros, and nothing older: where the device
 * refuses that, the zeros fail, and the slots stay.
 */
#include "policy.h"

void dtc_wide_init(struct dtc *t)
{
	spin_lock_init(&t->wide.lock);
	init_waitqueue_head(&t->wide.wait);
}

bool dtc_wide_covers(struct dtc *t, u64 first, u64 last)
{
	struct dtc_range *range;
	bool covers = false;
	unsigned long flags;

	spin_lock_irqsave(&t->wide.lock, flags);
	hlist_for_each_entry(range, &t->wide.ranges, node)
		covers |= dtc_overlaps(range, first, last);
	spin_unlock_irqrestore(&t->wide.lock, flags);
	return covers;
}

void dtc_wide_wait(struct dtc *t, u64 first, u64 last)
{
	wait_event(t->wide.wait, !dtc_wide_covers(t, first, last));
}

/* Has the set blocks of the range that the device lacks: that it refuses, or (not @refused) doesn't? */
static bool dtc_set_owes(struct dtc_set *set, const struct dtc_range *range, bool refused)
{
	struct dtc_slot *slot;

	list_for_each_entry(slot, &set->queue, queue)
		if (dtc_in(range, slot) && !slot->clean && refused == dtc_given_up(slot))
			return true;
	return false;
}

static void dtc_set_evict(struct dtc *t, struct dtc_set *set, const struct dtc_range *range)
{
	struct dtc_slot *slot;

	list_for_each_entry(slot, &set->queue, queue)
		if (dtc_in(range, slot) && !slot->clean)
			dtc_want(t, set, slot);
	if (dtc_set_owes(set, range, false))
		dtc_hurry(t);
	wait_event_lock_irq(set->wait, !dtc_set_owes(set, range, false), set->lock);
}

static void dtc_set_drop(struct dtc *t, struct dtc_set *set, const struct dtc_range *range)
{
	struct dtc_slot *slot, *next;

	list_for_each_entry_safe(slot, next, &set->queue, queue) {
		if (!dtc_in(range, slot))
			continue;
		if (t->policy->left)
			t->policy->left(t, slot);
		dtc_count(t, DTC_DROPPED, 1);
		dtc_set_leave(t, set, slot);
	}
}

/* False: the set keeps a block that the device refuses, and that is to be @evict-ed first. */
static bool dtc_set_clear(struct dtc *t, struct dtc_set *set, const struct dtc_range *range, bool evict)
{
	bool good;

	spin_lock_irq(&set->lock);
	do {
		if (evict)
			dtc_set_evict(t, set, range);
		dtc_set_wait_idle(t, set, range->first, range->last, NULL);
		/* A flush may have given what was refused another chance meanwhile. */
	} while (evict && dtc_set_owes(set, range, false));
	good = !evict || !dtc_set_owes(set, range, true);
	if (good)
		dtc_set_drop(t, set, range);
	dtc_set_wake(set);
	spin_unlock_irq(&set->lock);
	return good;
}

static bool dtc_clear(struct dtc *t, const struct dtc_range *range, bool evict)
{
	u64 first = range->first >> DTC_CHUNK_SHIFT, last = range->last >> DTC_CHUNK_SHIFT, chunk;
	bool good = true;
	u32 i;

	if (last - first < dtc_nr_sets(t)) {
		for (chunk = first; chunk <= last; chunk++) {
			good &= dtc_set_clear(t, dtc_set_of(t, chunk << DTC_CHUNK_SHIFT), range, evict);
			cond_resched();
		}
		return good;
	}
	for (i = 0; i < dtc_nr_sets(t); i++) {
		good &= dtc_set_clear(t, &t->sets[i], range, evict);
		cond_resched();
	}
	return good;
}

/**
 * dtc_wide() - map a discard or zeros
 * @t: the target
 * @bio: positions are the device's
 */
int dtc_wide(struct dtc *t, struct bio *bio)
{
	bool zeroes = bio_op(bio) == REQ_OP_WRITE_ZEROES;
	struct dtc_bio *db = dtc_bio(bio);

	db->kind = DTC_BIO_WIDE;
	db->range.first = dtc_first_block(t, bio);
	db->range.last = db->range.first + dtc_nr_blocks(t, bio) - 1;
	spin_lock_irq(&t->wide.lock);
	hlist_add_head(&db->range.node, &t->wide.ranges);
	WRITE_ONCE(t->wide.nr, t->wide.nr + 1);
	spin_unlock_irq(&t->wide.lock);
	dtc_count(t, zeroes ? DTC_ZEROES : DTC_DISCARDS, 1);
	if (!dtc_clear(t, &db->range, zeroes))
		return dtc_ended(bio, BLK_STS_IOERR);
	return dtc_below(t, bio);
}

void dtc_wide_done(struct dtc *t, struct bio *bio)
{
	struct dtc_bio *db = dtc_bio(bio);
	unsigned long flags;

	spin_lock_irqsave(&t->wide.lock, flags);
	hlist_del(&db->range.node);
	WRITE_ONCE(t->wide.nr, t->wide.nr - 1);
	spin_unlock_irqrestore(&t->wide.lock, flags);
	wake_up_all(&t->wide.wait);
}
