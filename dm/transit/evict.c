// SPDX-License-Identifier: GPL-2.0-only
/*
 * Eviction: a worker (worker.c) takes what is wanted from a set's queue, in the order
 * in which it was written, and sends it down, a bio a block.
 *
 * What the device refuses is valid again, and is tried again a little later; after
 * DTC_TRIES times it counts as failed, flushes fail because of it, nobody waits
 * for a slot any more, and it is still tried from time to time.
 */
#include "policy.h"
#include "trace.h"

#define DTC_RETRY_SOON	(HZ / 10)
#define DTC_RETRY_LATER	(2 * HZ)
/* Blocks of a set that are written before its worker looks at others. */
#define DTC_TURN	16
/* Bios that are there when memory is short. */
#define DTC_BIOS	64

struct dtc_wb {
	struct dtc *t;
	struct dtc_slot *slot;
	u64 began;
	struct bio bio;			/* last: its vector follows */
};

/* With the set's lock held. */
void dtc_want(struct dtc *t, struct dtc_set *set, struct dtc_slot *slot)
{
	slot->wanted = true;
	if (slot->state == DTC_VALID)
		dtc_ready(t, set);
}

/* If it is (still) in a slot. Without locks. */
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

/* Frees the slot of a block that the device has, too; false: it is no longer that. */
bool dtc_drop_clean(struct dtc *t, u64 block)
{
	struct dtc_set *set = dtc_set_of(t, block);
	struct dtc_slot *slot;
	bool dropped = false;

	spin_lock_irq(&set->lock);
	slot = dtc_set_find(set, block);
	if (slot && slot->clean && slot->state == DTC_VALID) {
		dropped = true;
		t->policy->left(t, slot);
		dtc_set_leave(t, set, slot);
	}
	spin_unlock_irq(&set->lock);
	return dropped;
}

/* The slot has no trouble any more, one way or the other. */
void dtc_forgive(struct dtc *t, struct dtc_slot *slot)
{
	if (likely(!slot->tries))
		return;
	slot->tries = 0;
	if (!atomic_dec_return(&t->troubled) && READ_ONCE(t->failing))
		mod_delayed_work(t->evictors, &t->retry, 0);	/* says so */
}

static void dtc_refused(struct dtc *t, struct dtc_slot *slot, blk_status_t status)
{
	unsigned long delay = DTC_RETRY_SOON;

	slot->state = DTC_VALID;
	slot->wanted = false;
	if (!slot->tries)
		atomic_inc(&t->troubled);
	slot->tries = min(slot->tries + 1, DTC_TRIES);
	dtc_count(t, DTC_ERRORS, 1);
	if (slot->tries == DTC_TRIES)
		DMERR_LIMIT("%s: %pg refuses sector %llu: error %d; what was written there is in the cache only",
			    dm_table_device_name(t->ti->table), t->below->bdev, slot->block << t->block_shift,
			    blk_status_to_errno(status));
	if (t->policy->stored)
		t->policy->stored(t, slot);
	if (slot->tries == DTC_TRIES)
		delay = READ_ONCE(t->failing) ? DTC_RETRY_LATER : 0;
	if (READ_ONCE(t->quiet))
		return;
	/* A try that is due for others may be later than that. */
	if (!delayed_work_pending(&t->retry) ||
	    time_after(READ_ONCE(t->retry.timer.expires), jiffies + delay))
		mod_delayed_work(t->evictors, &t->retry, delay);
}

/* The device has it; the slot goes, unless it stays as a copy. */
static void dtc_written(struct dtc *t, struct dtc_set *set, struct dtc_slot *slot)
{
	dtc_count(t, DTC_EVICTED, 1);
	if (!t->policy->keeps_clean) {
		dtc_set_leave(t, set, slot);
		return;
	}
	dtc_forgive(t, slot);
	slot->state = DTC_VALID;
	slot->wanted = false;
	slot->clean = true;
	dtc_set_dirty(t, set, -1);
	t->policy->cleaned(t, slot);
	/* After that: who began to wait before has not seen it. */
	if (READ_ONCE(t->free.waiting)) {
		t->policy->left(t, slot);
		dtc_set_leave(t, set, slot);
	}
}

static void dtc_bio_done(struct bio *bio)
{
	struct dtc_wb *wb = container_of(bio, struct dtc_wb, bio);
	struct dtc_slot *slot = wb->slot;
	struct dtc *t = wb->t;
	struct dtc_set *set = dtc_set_of(t, slot->block);
	unsigned long flags;

	dtc_lap(t, DTC_PHASE_EVICTION, wb->began);
	trace_dtc_evicted(t, slot->block, bio->bi_status);
	spin_lock_irqsave(&set->lock, flags);
	if (unlikely(bio->bi_status)) {
		dtc_refused(t, slot, bio->bi_status);
		if (slot->wanted)
			dtc_ready(t, set);
	} else {
		dtc_written(t, set, slot);
	}
	bio_put(bio);
	dtc_set_wake(set);
	spin_unlock_irqrestore(&set->lock, flags);
}

/* A slot that is older than the last drain is what a flush may wait for. */
static blk_opf_t dtc_urgency(const struct dtc *t, const struct dtc_slot *slot)
{
	return slot->stamp == atomic_read(&t->stamp) ? 0 : REQ_SYNC | REQ_IDLE;
}

static void dtc_write_back(struct dtc *t, struct dtc_slot *slot)
{
	void *data = dtc_slot_data(t, slot);
	struct dtc_wb *wb;
	struct bio *bio;

	bio = bio_alloc_bioset(t->below->bdev, 1, REQ_OP_WRITE | dtc_urgency(t, slot), GFP_NOIO, &t->bios);
	wb = container_of(bio, struct dtc_wb, bio);
	wb->t = t;
	wb->slot = slot;
	wb->began = dtc_now(t);
	bio->bi_iter.bi_sector = slot->block << t->block_shift;
	bio->bi_end_io = dtc_bio_done;
	__bio_add_page(bio, vmalloc_to_page(data), t->params.block_size, offset_in_page(data));
	submit_bio(bio);
}

/* May go down, and nobody sees to it yet. */
static bool dtc_due(const struct dtc_slot *slot)
{
	return slot->wanted && slot->state == DTC_VALID && !slot->clean;
}

/* The first that is to go; evicting from now on. */
static struct dtc_slot *dtc_take(struct dtc *t, struct dtc_set *set, bool *more)
{
	struct dtc_slot *slot, *found = NULL;

	*more = false;
	spin_lock_irq(&set->lock);
	list_for_each_entry(slot, &set->queue, queue) {
		if (!dtc_due(slot))
			continue;
		if (found) {
			*more = true;
			break;
		}
		found = slot;
		slot->state = DTC_EVICTING;
		if (t->policy->left)
			t->policy->left(t, slot);
	}
	spin_unlock_irq(&set->lock);
	return found;
}

/**
 * dtc_evict() - write what is wanted of a set
 * @t: the target
 * @set: one that was on the workers' list
 *
 * Its writers may be as fast as the worker is, so there is an end to it: other sets wait.
 */
void dtc_evict(struct dtc *t, struct dtc_set *set)
{
	struct dtc_slot *slot;
	bool more = true;
	u32 turn;

	for (turn = 0; turn < DTC_TURN && more; turn++) {
		slot = dtc_take(t, set, &more);
		if (slot)
			dtc_write_back(t, slot);
	}
	if (more)
		dtc_ready(t, set);
}

/* Says once that the device fails, and once that it no longer does. */
static void dtc_health(struct dtc *t, bool failed)
{
	if (failed && !t->failing) {
		WRITE_ONCE(t->failing, true);
		smp_mb();	/* pairs with dtc_forgive(): this try may have been the one that succeeds */
		if (!atomic_read(&t->troubled))
			queue_delayed_work(t->evictors, &t->retry, 0);
		DMERR("%s: %pg fails: what it refuses stays in the cache and is tried again; flushes fail meanwhile",
		      dm_table_device_name(t->ti->table), t->below->bdev);
		dm_table_event(t->ti->table);
		dtc_slot_line(t);
	} else if (t->failing && !atomic_read(&t->troubled)) {
		WRITE_ONCE(t->failing, false);
		DMINFO("%s: %pg takes writes again", dm_table_device_name(t->ti->table), t->below->bdev);
		dm_table_event(t->ti->table);
	}
}

static bool dtc_retry_set(struct dtc *t, struct dtc_set *set)
{
	struct dtc_slot *slot;
	bool failed = false;

	spin_lock_irq(&set->lock);
	list_for_each_entry(slot, &set->queue, queue) {
		if (!slot->tries)
			continue;
		failed |= slot->tries == DTC_TRIES;
		dtc_want(t, set, slot);
	}
	spin_unlock_irq(&set->lock);
	return failed;
}

/* If all that flushes have failed for is there now: is it durable, too? */
static void dtc_flush_again(struct dtc *t)
{
	u32 stamp = atomic_read(&t->stamp);

	if (!READ_ONCE(t->flush_failed))
		return;
	if (atomic_read(&t->troubled))
		dtc_retry_later(t);
	else
		dtc_flush_ended(t, stamp, blkdev_issue_flush(t->below->bdev));
}

static void dtc_retry(struct work_struct *work)
{
	struct dtc *t = container_of(to_delayed_work(work), struct dtc, retry);
	bool failed = false;
	u32 nr;

	if (READ_ONCE(t->quiet))	/* whoever suspends sees to an end of all that is below */
		return;
	for_each_set_bit(nr, t->occupied, dtc_nr_sets(t))
		failed |= dtc_retry_set(t, &t->sets[nr]);
	dtc_flush_again(t);
	dtc_health(t, failed);
}

/* A flush has failed. From interrupts, too. */
void dtc_retry_later(struct dtc *t)
{
	if (!READ_ONCE(t->quiet))
		queue_delayed_work(t->evictors, &t->retry, DTC_RETRY_LATER);
}

int dtc_evict_init(struct dtc *t)
{
	INIT_DELAYED_WORK(&t->retry, dtc_retry);
	return bioset_init(&t->bios, DTC_BIOS, offsetof(struct dtc_wb, bio), BIOSET_NEED_BVECS);
}

void dtc_evict_destroy(struct dtc *t)
{
	bioset_exit(&t->bios);
}
