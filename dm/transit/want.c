// SPDX-License-Identifier: GPL-2.0-only
/*
 * Requests for eviction: a slot is marked as wanted, and its set goes on the ready list.
 *
 * Policies, drains and discards decide what to evict. The workers do the writing (worker.c, evict.c). A
 * slot that is pending is added to the ready list by its writer when the copy is complete.
 *
 * Uses set.c and ready.c. Used by the policies, drain.c, discard.c, retry.c, params.c.
 */
#include "policy.h"

/* Requests the eviction of one slot. */
void dtc_want(struct dtc *t, struct dtc_set *set, struct dtc_slot *slot)
{
	lockdep_assert_held(&set->lock);
	slot->wanted = true;
	if (slot->state == DTC_VALID)
		dtc_ready_add(t, set);
}

/* Requests the eviction of a block if the block is still cached and dirty. Context: No locks held. */
void dtc_want_block(struct dtc *t, u64 block)
{
	struct dtc_set *set = dtc_set_of(t, block);
	struct dtc_slot *slot;

	spin_lock_irq(&set->lock);
	slot = dtc_set_find(set, block);
	if (slot && !slot->clean)
		dtc_want(t, set, slot);
	spin_unlock_irq(&set->lock);
}

/*
 * Frees the slot of a clean block. False: the block has no slot, or the slot is no longer clean.
 * Context: No locks held.
 */
bool dtc_invalidate_clean(struct dtc *t, u64 block)
{
	struct dtc_set *set = dtc_set_of(t, block);
	struct dtc_slot *slot;
	bool dropped = false;

	spin_lock_irq(&set->lock);
	slot = dtc_set_find(set, block);
	if (slot && slot->clean && slot->state == DTC_VALID) {
		dropped = true;
		t->policy->removed(t, slot);
		dtc_set_remove(t, set, slot);
	}
	spin_unlock_irq(&set->lock);
	return dropped;
}

/*
 * Requests the eviction of a set's slots. Failed blocks are left out: retry.c retries them, and a
 * suspended target must not write them.
 */
static bool dtc_want_set(struct dtc *t, struct dtc_set *set)
{
	struct dtc_slot *slot;
	bool more = false;

	spin_lock_irq(&set->lock);
	list_for_each_entry(slot, &set->queue, queue) {
		if (slot->clean || slot->wanted || slot->retries)
			continue;
		more = true;
		dtc_want(t, set, slot);
	}
	spin_unlock_irq(&set->lock);
	return more;
}

/* Requests the eviction of one set: the next one that has slots not requested yet. */
void dtc_want_some(struct dtc *t)
{
	u32 start = READ_ONCE(t->next_set), nr = start, sets = dtc_nr_sets(t);

	for_each_set_bit_wrap(nr, t->occupied, sets, start) {
		if (dtc_want_set(t, &t->sets[nr])) {
			WRITE_ONCE(t->next_set, (nr + 1) & (sets - 1));
			return;
		}
	}
}

/* Requests the eviction of all slots, and doesn't wait for the result. */
void dtc_want_all(struct dtc *t)
{
	u32 nr;

	for_each_set_bit(nr, t->occupied, dtc_nr_sets(t)) {
		dtc_want_set(t, &t->sets[nr]);
		cond_resched();
	}
}
