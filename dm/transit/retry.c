// SPDX-License-Identifier: GPL-2.0-only
/*
 * Retries of failed writes and flushes, and the reports of the device's health.
 *
 * t->retry runs after error.c has queued it, and after a resume. The work requests an eviction of every
 * failed slot. When no failed slot is left, the work flushes the device: a success makes FUA writes
 * trusted again (map.c).
 *
 * Uses want.c, slot.c, error.c.
 */
#include "transit.h"

/* Reports once that the device fails, and once that it has recovered. */
static void dtc_health(struct dtc *t, bool failed)
{
	if (failed && !t->failing) {
		WRITE_ONCE(t->failing, true);
		/*
		 * Pairs with atomic_dec_return() in dtc_clear_retries(), which may have cleared the last
		 * slot.
		 */
		smp_mb();
		if (!atomic_read(&t->nr_failed))
			queue_delayed_work(t->evictors, &t->retry, 0);
		DMERR("%s: %pg fails: what it refuses stays in the cache and is tried again; flushes fail meanwhile",
		      dm_table_device_name(t->ti->table), t->lower->bdev);
		dm_table_event(t->ti->table);
		dtc_slot_wake_waiters(t);
	} else if (t->failing && !atomic_read(&t->nr_failed)) {
		WRITE_ONCE(t->failing, false);
		DMINFO("%s: %pg takes writes again", dm_table_device_name(t->ti->table), t->lower->bdev);
		dm_table_event(t->ti->table);
	}
}

static bool dtc_retry_set(struct dtc *t, struct dtc_set *set)
{
	struct dtc_slot *slot;
	bool failed = false;

	spin_lock_irq(&set->lock);
	list_for_each_entry(slot, &set->queue, queue) {
		if (!slot->retries)
			continue;
		failed |= slot->retries == DTC_MAX_RETRIES;
		dtc_want(t, set, slot);
	}
	spin_unlock_irq(&set->lock);
	return failed;
}

/* After a failed flush, and once all blocks are written, checks that they are durable, too. */
static void dtc_flush_again(struct dtc *t)
{
	u32 stamp = atomic_read(&t->stamp);

	if (!READ_ONCE(t->flush_failed))
		return;
	if (atomic_read(&t->nr_failed))
		dtc_retry_later(t);
	else
		dtc_flush_ended(t, stamp, blkdev_issue_flush(t->lower->bdev));
}

static void dtc_retry(struct work_struct *work)
{
	struct dtc *t = container_of(to_delayed_work(work), struct dtc, retry);
	bool failed = false;
	u32 nr;

	if (READ_ONCE(t->suspended))	/* dtc_postsuspend() waits for all I/O itself */
		return;
	for_each_set_bit(nr, t->occupied, dtc_nr_sets(t))
		failed |= dtc_retry_set(t, &t->sets[nr]);
	dtc_flush_again(t);
	dtc_health(t, failed);
}

void dtc_retry_init(struct dtc *t)
{
	INIT_DELAYED_WORK(&t->retry, dtc_retry);
}
