// SPDX-License-Identifier: GPL-2.0-only
/*
 * Draining: everything that was complete when it begins goes to the device.
 *
 * Each drain is numbered. A slot has the number of the first drain that has to wait
 * for it, taken when it was first written; an overwritten slot keeps it, as the
 * version that a drain waits for may be one that has been replaced in place. Slots
 * that are written later have a later number, and nobody waits for them.
 */
#include "policy.h"
#include "trace.h"

/* Had it been written before drain @stamp began? */
static bool dtc_old(const struct dtc_slot *slot, u32 stamp)
{
	return !slot->clean && (s32)(slot->stamp - stamp) <= 0;
}

static void dtc_want_old(struct dtc *t, struct dtc_set *set, u32 stamp)
{
	struct dtc_slot *slot;

	spin_lock_irq(&set->lock);
	list_for_each_entry(slot, &set->queue, queue) {
		/* What the device has refused gets one more chance, but not from a suspended target. */
		if (dtc_old(slot, stamp) && (!slot->tries || !READ_ONCE(t->quiet)))
			dtc_want(t, set, slot);
	}
	spin_unlock_irq(&set->lock);
}

/* Is there a slot that is waited for (or, @failed, that the device refuses)? */
static bool dtc_set_has_old(struct dtc_set *set, u32 stamp, bool failed)
{
	struct dtc_slot *slot;

	list_for_each_entry(slot, &set->queue, queue)
		if (dtc_old(slot, stamp) && failed == dtc_given_up(slot))
			return true;
	return false;
}

static int dtc_wait_old(struct dtc_set *set, u32 stamp, bool interruptible)
{
	int err = 0;

	spin_lock_irq(&set->lock);
	if (interruptible)
		err = wait_event_interruptible_lock_irq(set->wait, !dtc_set_has_old(set, stamp, false),
							set->lock);
	else
		wait_event_lock_irq(set->wait, !dtc_set_has_old(set, stamp, false), set->lock);
	if (!err && dtc_set_has_old(set, stamp, true))
		err = -EIO;
	spin_unlock_irq(&set->lock);
	return err;
}

/**
 * dtc_drain() - wait until what was complete before is on the device
 * @t: the target
 * @interruptible: by signals
 *
 * Return: 0; -EIO if the device refuses some of it; -ERESTARTSYS. The device may have it
 * in a cache of its own.
 */
int dtc_drain(struct dtc *t, bool interruptible)
{
	u32 stamp = atomic_fetch_inc(&t->stamp), nr;
	int err = 0;

	trace_dtc_drain(t, stamp, dtc_used(t));
	for_each_set_bit(nr, t->occupied, dtc_nr_sets(t)) {
		dtc_want_old(t, &t->sets[nr], stamp);
		cond_resched();
	}
	dtc_hurry(t);
	for_each_set_bit(nr, t->occupied, dtc_nr_sets(t)) {
		int failed = dtc_wait_old(&t->sets[nr], stamp, interruptible);

		if (failed == -ERESTARTSYS)
			return failed;
		err = err ?: failed;
	}
	return err;
}

/* A flush has ended that began when t->stamp was @stamp: may FUA writes be believed? map.c says why. */
void dtc_flush_ended(struct dtc *t, u32 stamp, bool failed)
{
	unsigned long flags;

	if (likely(!failed && !READ_ONCE(t->flush_failed)))
		return;
	spin_lock_irqsave(&t->flush_lock, flags);
	if (failed) {
		t->failed_stamp = atomic_inc_return(&t->stamp);
		WRITE_ONCE(t->flush_failed, true);
	} else if ((s32)(stamp - t->failed_stamp) >= 0) {
		WRITE_ONCE(t->flush_failed, false);
	}
	spin_unlock_irqrestore(&t->flush_lock, flags);
	if (failed)
		dtc_retry_later(t);
}

/* Not what the device has refused: that has its own tries, and a suspended target must leave it alone. */
static bool dtc_want_set(struct dtc *t, struct dtc_set *set)
{
	struct dtc_slot *slot;
	bool more = false;

	spin_lock_irq(&set->lock);
	list_for_each_entry(slot, &set->queue, queue) {
		if (slot->clean || slot->wanted || slot->tries)
			continue;
		more = true;
		dtc_want(t, set, slot);
	}
	spin_unlock_irq(&set->lock);
	return more;
}

/* What the next set has that is not wanted yet. */
void dtc_want_some(struct dtc *t)
{
	u32 hand = READ_ONCE(t->hand), nr = hand, sets = dtc_nr_sets(t);

	for_each_set_bit_wrap(nr, t->occupied, sets, hand) {
		if (dtc_want_set(t, &t->sets[nr])) {
			WRITE_ONCE(t->hand, (nr + 1) & (sets - 1));
			return;
		}
	}
}

/* All that is not wanted yet, without waiting for it. */
void dtc_want_all(struct dtc *t)
{
	u32 nr;

	for_each_set_bit(nr, t->occupied, dtc_nr_sets(t)) {
		dtc_want_set(t, &t->sets[nr]);
		cond_resched();
	}
}
