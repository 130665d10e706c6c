// SPDX-License-Identifier: GPL-2.0-only
/*
 * Discards and zeroes: bios of any length, across many sets.
 *
 * The bio's range is first added to t->discards. Then the sets are visited one by one: the task waits
 * for readers and writers of the blocks, and the blocks' slots are freed. New writes to the range wait
 * until the bio completes, because writers check t->discards under their set's lock.
 *
 * Cached blocks are invalidated before a discard. Before zeroes they are evicted: a concurrent read
 * then returns the cached version or zeroes, never an older version. If the device refuses such a
 * block, the zeroes fail and the slots stay.
 *
 * Uses set.c, range.c, want.c, ready.c, bio.c. Used by map.c.
 */
#include "policy.h"

/*
 * True if the set has dirty slots in the range: with @refused, slots that eviction has given up on;
 * otherwise the others.
 */
static bool dtc_set_has_unwritten(struct dtc_set *set, const struct dtc_range *range, bool refused)
{
	struct dtc_slot *slot;

	lockdep_assert_held(&set->lock);
	list_for_each_entry(slot, &set->queue, queue)
		if (dtc_slot_in_range(range, slot) && !slot->clean && refused == dtc_given_up(slot))
			return true;
	return false;
}

static void dtc_set_evict(struct dtc *t, struct dtc_set *set, const struct dtc_range *range)
{
	struct dtc_slot *slot;

	lockdep_assert_held(&set->lock);
	list_for_each_entry(slot, &set->queue, queue)
		if (dtc_slot_in_range(range, slot) && !slot->clean)
			dtc_want(t, set, slot);
	if (dtc_set_has_unwritten(set, range, false))
		dtc_expedite(t);
	wait_event_lock_irq(set->wait, !dtc_set_has_unwritten(set, range, false), set->lock);
}

static void dtc_set_invalidate(struct dtc *t, struct dtc_set *set, const struct dtc_range *range)
{
	struct dtc_slot *slot, *next;

	lockdep_assert_held(&set->lock);
	list_for_each_entry_safe(slot, next, &set->queue, queue) {
		if (!dtc_slot_in_range(range, slot))
			continue;
		if (t->policy->removed)
			t->policy->removed(t, slot);
		dtc_count(t, DTC_DROPPED, 1);
		dtc_set_remove(t, set, slot);
	}
}

/*
 * Frees the set's slots in the range, after evicting them if @evict. False: the device refuses a block,
 * and the slots stay.
 */
static bool dtc_set_clear(struct dtc *t, struct dtc_set *set, const struct dtc_range *range, bool evict)
{
	bool good;

	spin_lock_irq(&set->lock);
	do {
		if (evict)
			dtc_set_evict(t, set, range);
		dtc_set_wait_idle(t, set, range->first, range->last, NULL);
		/* A flush may have started another retry of a failed slot meanwhile. */
	} while (evict && dtc_set_has_unwritten(set, range, false));
	good = !evict || !dtc_set_has_unwritten(set, range, true);
	if (good)
		dtc_set_invalidate(t, set, range);
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
 * dtc_discard() - map a discard or zeroes
 * @t: the target
 * @bio: positions are the device's
 *
 * map.c removes the range when the bio completes.
 *
 * Context: Task in map. Sleeps.
 * Return: DM_MAPIO_SUBMITTED or DM_MAPIO_REMAPPED.
 */
int dtc_discard(struct dtc *t, struct bio *bio)
{
	bool zeroes = bio_op(bio) == REQ_OP_WRITE_ZEROES;
	struct dtc_bio *db = dtc_bio_data(bio);

	db->kind = DTC_BIO_DISCARD;
	db->range.first = dtc_first_block(t, bio);
	db->range.last = db->range.first + dtc_nr_blocks(t, bio) - 1;
	dtc_discards_add(t, &db->range);
	dtc_count(t, zeroes ? DTC_ZEROES : DTC_DISCARDS, 1);
	if (!dtc_clear(t, &db->range, zeroes))
		return dtc_ended(bio, BLK_STS_IOERR);
	return dtc_remap(t, bio);
}
