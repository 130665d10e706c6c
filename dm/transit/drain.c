// SPDX-License-Identifier: GPL-2.0-only
/*
 * Draining: everything that was complete when the drain begins is written to the device.
 *
 * Drains are numbered by t->stamp. A slot records the number of the first drain that has to wait for
 * the slot, taken at the first write. An overwrite keeps the number, because a drain may wait for the
 * version that the overwrite replaces. Slots written after a drain began have a higher number, and the
 * drain doesn't wait for them.
 *
 * Uses want.c, ready.c. Used by map.c, state.c and policy/pmbd.c.
 */
#include "policy.h"
#include "trace.h"

/* True if the slot is dirty and was written before drain @stamp began. */
static bool dtc_dirty_before(const struct dtc_slot *slot, u32 stamp)
{
	return !slot->clean && (s32)(slot->stamp - stamp) <= 0;
}

static void dtc_want_before(struct dtc *t, struct dtc_set *set, u32 stamp)
{
	struct dtc_slot *slot;

	spin_lock_irq(&set->lock);
	list_for_each_entry(slot, &set->queue, queue) {
		/* A failed block is retried once more, but not on behalf of a suspended target. */
		if (dtc_dirty_before(slot, stamp) && (!slot->retries || !READ_ONCE(t->suspended)))
			dtc_want(t, set, slot);
	}
	spin_unlock_irq(&set->lock);
}

/* True if the drain still waits for a slot of the set; with @failed: if the drain has given up on one. */
static bool dtc_set_has_before(struct dtc_set *set, u32 stamp, bool failed)
{
	struct dtc_slot *slot;

	lockdep_assert_held(&set->lock);
	list_for_each_entry(slot, &set->queue, queue)
		if (dtc_dirty_before(slot, stamp) && failed == dtc_given_up(slot))
			return true;
	return false;
}

static int dtc_wait_before(struct dtc_set *set, u32 stamp, bool interruptible)
{
	int err = 0;

	spin_lock_irq(&set->lock);
	if (interruptible)
		err = wait_event_interruptible_lock_irq(set->wait, !dtc_set_has_before(set, stamp, false),
							set->lock);
	else
		wait_event_lock_irq(set->wait, !dtc_set_has_before(set, stamp, false), set->lock);
	if (!err && dtc_set_has_before(set, stamp, true))
		err = -EIO;
	spin_unlock_irq(&set->lock);
	return err;
}

/**
 * dtc_drain() - wait until all earlier writes are on the device
 * @t: the target
 * @interruptible: whether signals end the wait
 *
 * The device may still hold the blocks in a volatile cache of its own.
 *
 * Context: Task or work, no locks held. Sleeps.
 * Return: 0; -EIO: the device refuses a block; -ERESTARTSYS: a signal arrived.
 */
int dtc_drain(struct dtc *t, bool interruptible)
{
	u32 stamp = atomic_fetch_inc(&t->stamp), nr;
	int err = 0;

	trace_dtc_drain(t, stamp, dtc_used(t));
	for_each_set_bit(nr, t->occupied, dtc_nr_sets(t)) {
		dtc_want_before(t, &t->sets[nr], stamp);
		cond_resched();
	}
	dtc_expedite(t);
	for_each_set_bit(nr, t->occupied, dtc_nr_sets(t)) {
		int failed = dtc_wait_before(&t->sets[nr], stamp, interruptible);

		if (failed == -ERESTARTSYS)
			return failed;
		err = err ?: failed;
	}
	return err;
}

