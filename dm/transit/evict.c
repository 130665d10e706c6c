// SPDX-License-Identifier: GPL-2.0-only
/*
 * Eviction: writing slots to the device.
 *
 * A worker (worker.c) takes the wanted slots of a set in the order in which they were written. Each
 * slot is written by a bio of its own. After a success the slot becomes free, or stays as a clean copy
 * if the policy keeps clean blocks. After a failure the slot is valid again and is retried (error.c,
 * retry.c).
 *
 * Uses set.c, error.c, ready.c. Used by worker.c.
 */
#include "policy.h"
#include "trace.h"

/* Maximum number of blocks written from a set before the worker turns to other sets. */
#define DTC_SET_BATCH	16
/* Bios in the mempool, for when memory is short. */
#define DTC_MIN_BIOS	64

struct dtc_wb {
	struct dtc *t;
	struct dtc_slot *slot;
	u64 start_ns;
	struct bio bio;			/* last: its inline bio_vec follows */
};

/* The device has the block. The slot is freed, unless the policy keeps clean copies. */
static void dtc_write_done(struct dtc *t, struct dtc_set *set, struct dtc_slot *slot)
{
	lockdep_assert_held(&set->lock);
	dtc_count(t, DTC_EVICTED, 1);
	if (!t->policy->keeps_clean) {
		dtc_set_remove(t, set, slot);
		return;
	}
	dtc_clear_retries(t, slot);
	slot->state = DTC_VALID;
	slot->wanted = false;
	slot->clean = true;
	dtc_set_dirty(t, set, -1);
	t->policy->cleaned(t, slot);
	/* After cleaned(): a writer that began to wait earlier hasn't seen this clean slot. */
	if (READ_ONCE(t->free.waiting)) {
		t->policy->removed(t, slot);
		dtc_set_remove(t, set, slot);
	}
}

static void dtc_bio_done(struct bio *bio)
{
	struct dtc_wb *wb = container_of(bio, struct dtc_wb, bio);
	struct dtc_slot *slot = wb->slot;
	struct dtc *t = wb->t;
	struct dtc_set *set = dtc_set_of(t, slot->block);
	unsigned long flags;

	dtc_lap(t, DTC_PHASE_EVICTION, wb->start_ns);
	trace_dtc_evicted(t, slot->block, bio->bi_status);
	spin_lock_irqsave(&set->lock, flags);
	if (unlikely(bio->bi_status)) {
		dtc_write_error(t, slot, bio->bi_status);
		if (slot->wanted)
			dtc_ready_add(t, set);
	} else {
		dtc_write_done(t, set, slot);
	}
	bio_put(bio);
	dtc_set_wake(set);
	spin_unlock_irqrestore(&set->lock, flags);
}

/* A flush may wait for a slot older than the last drain: its write gets priority. */
static blk_opf_t dtc_urgency(const struct dtc *t, const struct dtc_slot *slot)
{
	return slot->stamp == atomic_read(&t->stamp) ? 0 : REQ_SYNC | REQ_IDLE;
}

static void dtc_write_back(struct dtc *t, struct dtc_slot *slot)
{
	void *data = dtc_slot_data(t, slot);
	struct dtc_wb *wb;
	struct bio *bio;

	bio = bio_alloc_bioset(t->lower->bdev, 1, REQ_OP_WRITE | dtc_urgency(t, slot), GFP_NOIO, &t->bios);
	wb = container_of(bio, struct dtc_wb, bio);
	wb->t = t;
	wb->slot = slot;
	wb->start_ns = dtc_now(t);
	bio->bi_iter.bi_sector = slot->block << t->block_shift;
	bio->bi_end_io = dtc_bio_done;
	__bio_add_page(bio, vmalloc_to_page(data), t->params.block_size, offset_in_page(data));
	submit_bio(bio);
}

/* True if the slot may be written now, and no other worker has taken it. */
static bool dtc_evictable(const struct dtc_slot *slot)
{
	return slot->wanted && slot->state == DTC_VALID && !slot->clean;
}

/* Takes the first slot to evict; its state is evicting from now on. *@more: the set has another one. */
static struct dtc_slot *dtc_take(struct dtc *t, struct dtc_set *set, bool *more)
{
	struct dtc_slot *slot, *found = NULL;

	*more = false;
	spin_lock_irq(&set->lock);
	list_for_each_entry(slot, &set->queue, queue) {
		if (!dtc_evictable(slot))
			continue;
		if (found) {
			*more = true;
			break;
		}
		found = slot;
		slot->state = DTC_EVICTING;
		if (t->policy->removed)
			t->policy->removed(t, slot);
	}
	spin_unlock_irq(&set->lock);
	return found;
}

/**
 * dtc_evict() - write the wanted slots of a set
 * @t: the target
 * @set: taken from the ready list
 *
 * Writers may refill the set as fast as the worker empties it. So the worker stops after DTC_SET_BATCH
 * blocks and puts the set back on the ready list: other sets wait.
 *
 * Context: Worker. Sleeps.
 */
void dtc_evict(struct dtc *t, struct dtc_set *set)
{
	struct dtc_slot *slot;
	bool more = true;
	u32 turn;

	for (turn = 0; turn < DTC_SET_BATCH && more; turn++) {
		slot = dtc_take(t, set, &more);
		if (slot)
			dtc_write_back(t, slot);
	}
	if (more)
		dtc_ready_add(t, set);
}

int dtc_evict_init(struct dtc *t)
{
	return bioset_init(&t->bios, DTC_MIN_BIOS, offsetof(struct dtc_wb, bio), BIOSET_NEED_BVECS);
}

void dtc_evict_destroy(struct dtc *t)
{
	bioset_exit(&t->bios);
}
