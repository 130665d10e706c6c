// SPDX-License-Identifier: GPL-2.0-only
/*
 * Failed writes and failed flushes: what is counted, and when a retry is due.
 *
 * A slot whose write failed is valid again and counts in t->nr_failed. After DTC_MAX_RETRIES failures
 * flushes fail because of the slot, and no writer waits for a free slot any more. The block is still
 * retried every DTC_RETRY_LATER; retry.c does so.
 *
 * Once a flush has failed, t->flush_failed makes FUA writes fail; map.c says why.
 *
 * Uses no other file: retries are requested by queueing t->retry. Used by set.c, evict.c, map.c,
 * state.c, registry.c, retry.c.
 */
#include "policy.h"

#define DTC_RETRY_SOON	(HZ / 10)
#define DTC_RETRY_LATER	(2 * HZ)

/**
 * dtc_clear_retries() - the slot's block was written, invalidated, or taken over
 * @t: the target
 * @slot: in a set
 *
 * Context: Under the set's lock.
 */
void dtc_clear_retries(struct dtc *t, struct dtc_slot *slot)
{
	lockdep_assert_held(&dtc_set_of(t, slot->block)->lock);
	if (likely(!slot->retries))
		return;
	slot->retries = 0;
	if (!atomic_dec_return(&t->nr_failed) && READ_ONCE(t->failing))
		mod_delayed_work(t->evictors, &t->retry, 0);	/* reports the recovery */
}

void dtc_write_error(struct dtc *t, struct dtc_slot *slot, blk_status_t status)
{
	unsigned long delay = DTC_RETRY_SOON;

	lockdep_assert_held(&dtc_set_of(t, slot->block)->lock);
	slot->state = DTC_VALID;
	slot->wanted = false;
	if (!slot->retries)
		atomic_inc(&t->nr_failed);
	slot->retries = min(slot->retries + 1, DTC_MAX_RETRIES);
	dtc_count(t, DTC_ERRORS, 1);
	if (slot->retries == DTC_MAX_RETRIES)
		DMERR_LIMIT("%s: %pg refuses sector %llu: error %d; what was written there is in the cache only",
			    dm_table_device_name(t->ti->table), t->lower->bdev, slot->block << t->block_shift,
			    blk_status_to_errno(status));
	if (t->policy->stored)
		t->policy->stored(t, slot);
	if (slot->retries == DTC_MAX_RETRIES)
		delay = READ_ONCE(t->failing) ? DTC_RETRY_LATER : 0;
	if (READ_ONCE(t->suspended))
		return;
	/* An earlier retry may be pending with a longer delay. */
	if (!delayed_work_pending(&t->retry) ||
	    time_after(READ_ONCE(t->retry.timer.expires), jiffies + delay))
		mod_delayed_work(t->evictors, &t->retry, delay);
}

/* Requests a retry because a flush failed. Context: Any, interrupts too. */
void dtc_retry_later(struct dtc *t)
{
	if (!READ_ONCE(t->suspended))
		queue_delayed_work(t->evictors, &t->retry, DTC_RETRY_LATER);
}

/**
 * dtc_flush_ended() - note a flush's result, which decides whether FUA writes are trusted
 * @t: the target
 * @stamp: t->stamp when the flush began
 * @failed: whether the flush failed
 *
 * A success counts only if the flush began after the last failure. map.c says why FUA writes depend on
 * flushes.
 * Context: Any, interrupts too.
 */
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
