// SPDX-License-Identifier: GPL-2.0-only
/*
 * Writes: each block into the slot that it has, or into a free one. If there is
 * none, the policy says whether the writer waits in line or goes past the cache with
 * what is left of the bio. FUA always goes past it.
 *
 * Past the cache, the blocks are on record in their set until the bio is done, and
 * slots that hold older versions are evicting: they are read from meanwhile, and
 * when the device has the new version they are free. If it refuses that, they
 * are valid again, unless they were clean.
 */
#include "policy.h"
#include "trace.h"

/* The slot is the writer's until dtc_stored(). */
static void dtc_begin(struct dtc *t, struct dtc_set *set, struct dtc_slot *slot, u64 block)
{
	if (slot->state == DTC_FREE || slot->clean) {
		dtc_set_dirty(t, set, 1);
		slot->stamp = atomic_read(&t->stamp);
		slot->clean = false;
	}
	/* Else a flush may wait for the version that is replaced: its stamp stays. */
	slot->block = block;
	slot->state = DTC_PENDING;
	list_move_tail(&slot->queue, &set->queue);
}

static void dtc_stored(struct dtc *t, struct dtc_set *set, struct dtc_slot *slot)
{
	bool wanted;

	spin_lock_irq(&set->lock);
	slot->state = DTC_VALID;
	if (t->policy->stored)
		t->policy->stored(t, slot);
	wanted = slot->wanted;
	dtc_set_wake(set);
	spin_unlock_irq(&set->lock);
	if (wanted)
		dtc_ready(t, set);
	if (unlikely(READ_ONCE(t->free.waiting))) {
		t->policy->make_room(t);
		dtc_hurry(t);
	}
}

/* The slot that the block is written to, the caller's until dtc_stored(); NULL: there is none. */
static struct dtc_slot *dtc_claim(struct dtc *t, struct dtc_set *set, u64 block, bool *hit, bool *stalled)
{
	struct dtc_slot *slot, *spare = NULL;

	for (;;) {
		dtc_set_lock_idle(t, set, block, block);
		slot = dtc_set_find(set, block);
		*hit = slot;
		if (!slot && !spare)
			spare = dtc_slot_get(t);
		if (slot || spare)
			break;
		spin_unlock_irq(&set->lock);
		if (t->policy->may_bypass && t->policy->may_bypass(t))
			return NULL;
		if (READ_ONCE(t->failing)) {
			/* Not to wait for; for those who come later. */
			t->policy->make_room(t);
			return NULL;
		}
		*stalled = true;
		spare = dtc_slot_wait(t);
		if (!spare)
			return NULL;
	}
	if (!slot)
		swap(slot, spare);
	dtc_begin(t, set, slot, block);
	if (spare)		/* somebody else has put the block in a slot while we waited */
		dtc_slot_put(t, spare);
	spin_unlock_irq(&set->lock);
	return slot;
}

/* The bio's next block; false: there is no slot for it. */
static bool dtc_store(struct dtc *t, struct bio *bio)
{
	u64 block = dtc_first_block(t, bio), lap = dtc_now(t);
	struct dtc_set *set = dtc_set_of(t, block);
	bool stalled = false, hit;
	struct dtc_slot *slot;

	slot = dtc_claim(t, set, block, &hit, &stalled);
	if (!slot)
		return false;
	if (!stalled)
		lap = dtc_lap(t, DTC_PHASE_METADATA, lap);
	dtc_copy_block(t, bio, slot, false);
	lap = dtc_lap(t, stalled ? DTC_PHASE_EVICT_AND_WRITE : DTC_PHASE_CACHE_WRITE, lap);
	trace_dtc_store(t, block, hit, stalled);
	dtc_stored(t, set, slot);
	dtc_lap(t, DTC_PHASE_ENQUEUE, lap);
	dtc_count(t, DTC_WRITE_BLOCKS, 1);
	if (hit)
		dtc_count(t, DTC_WRITE_HITS, 1);
	if (stalled)
		dtc_count(t, DTC_STALLED, 1);
	return true;
}

/* What is left of the bio goes to the device as it is. */
static int dtc_past(struct dtc *t, struct bio *bio)
{
	struct dtc_bio *db = dtc_bio(bio);
	u32 blocks = dtc_nr_blocks(t, bio);
	struct dtc_slot *slot;

	db->kind = DTC_BIO_PAST;
	db->range.first = dtc_first_block(t, bio);
	db->range.last = db->range.first + blocks - 1;
	db->set = dtc_set_of(t, db->range.first);
	dtc_set_lock_range(t, db->set, &db->range);
	list_for_each_entry(slot, &db->set->queue, queue) {
		if (!dtc_in(&db->range, slot))
			continue;
		slot->state = DTC_EVICTING;
		if (t->policy->left)
			t->policy->left(t, slot);
	}
	spin_unlock_irq(&db->set->lock);
	dtc_count(t, DTC_WRITE_BLOCKS, blocks);
	dtc_count(t, bio->bi_opf & REQ_FUA ? DTC_FUA : DTC_BYPASSED, blocks);
	trace_dtc_past(t, db->range.first, blocks, bio->bi_opf & REQ_FUA);
	return dtc_below(t, bio);
}

/*
 * The device did not take the new version: the slot has the newest again. Not if it was a copy of what the
 * device had: who knows what that has now.
 */
static bool dtc_past_failed(struct dtc *t, struct dtc_set *set, struct dtc_slot *slot)
{
	if (slot->clean) {
		dtc_set_leave(t, set, slot);
		return false;
	}
	slot->state = DTC_VALID;
	if (t->policy->stored)
		t->policy->stored(t, slot);
	/* Who began to wait meanwhile counted on its getting free, or did not see it. */
	if (READ_ONCE(t->free.waiting))
		slot->wanted = true;
	return slot->wanted;
}

/* A bio that went past the cache is done. */
void dtc_past_done(struct dtc *t, struct bio *bio, blk_status_t status)
{
	struct dtc_slot *slot, *next;
	struct dtc_bio *db = dtc_bio(bio);
	struct dtc_set *set = db->set;
	bool wanted = false;
	unsigned long flags;

	spin_lock_irqsave(&set->lock, flags);
	hlist_del(&db->range.node);
	list_for_each_entry_safe(slot, next, &set->queue, queue) {
		if (!dtc_in(&db->range, slot))
			continue;
		if (status)
			wanted |= dtc_past_failed(t, set, slot);
		else
			dtc_set_leave(t, set, slot);
	}
	dtc_set_wake(set);
	spin_unlock_irqrestore(&set->lock, flags);
	if (wanted)
		dtc_ready(t, set);
	dtc_lap(t, DTC_PHASE_BYPASS, db->began);
}

/**
 * dtc_write() - map a write
 * @t: the target
 * @bio: positions are the device's
 */
int dtc_write(struct dtc *t, struct bio *bio)
{
	u64 began = dtc_now(t);

	/* The flush before it has failed, perhaps: map.c. */
	if (unlikely(bio->bi_opf & REQ_FUA && READ_ONCE(t->flush_failed)))
		return dtc_ended(bio, BLK_STS_IOERR);
	while (!(bio->bi_opf & REQ_FUA) && bio->bi_iter.bi_size && dtc_store(t, bio))
		;
	dtc_lap(t, DTC_PHASE_WRITE, began);
	if (!bio->bi_iter.bi_size)
		return dtc_ended(bio, BLK_STS_OK);
	dtc_bio(bio)->began = dtc_now(t);
	return dtc_past(t, bio);
}
