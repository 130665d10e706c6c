// SPDX-License-Identifier: GPL-2.0-only
/*
 * Writes: each block goes to the slot that already holds the block, or to a free slot.
 *
 * If no slot is free, the policy decides: the writer waits for a slot, or the rest of the bio bypasses
 * the cache. FUA writes always bypass the cache.
 *
 * During a bypass the range is in set->ranges until the bio completes, and slots that hold older
 * versions are evicting. Readers still read those versions. If the write succeeds the slots become
 * free. If it fails the slots are valid again, unless they were clean.
 *
 * Uses set.c, slot.c, ready.c, bio.c. Used by map.c.
 */
#include "policy.h"
#include "trace.h"

/* The writer owns the slot until dtc_mark_valid(). */
static void dtc_mark_pending(struct dtc *t, struct dtc_set *set, struct dtc_slot *slot, u64 block)
{
	lockdep_assert_held(&set->lock);
	if (slot->state == DTC_FREE || slot->clean) {
		dtc_set_dirty(t, set, 1);
		slot->stamp = atomic_read(&t->stamp);
		slot->clean = false;
	}
	/* An overwritten dirty slot keeps its stamp: a flush may wait for the version that is replaced. */
	slot->block = block;
	slot->state = DTC_PENDING;
	list_move_tail(&slot->queue, &set->queue);
}

static void dtc_mark_valid(struct dtc *t, struct dtc_set *set, struct dtc_slot *slot)
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
		dtc_ready_add(t, set);
	if (unlikely(READ_ONCE(t->free.waiting))) {
		t->policy->make_space(t);
		dtc_expedite(t);
	}
}

/*
 * Returns the slot to write the block to, owned by the caller until dtc_mark_valid(). NULL: there is
 * none.
 */
static struct dtc_slot *dtc_slot_for_write(struct dtc *t, struct dtc_set *set, u64 block, bool *hit,
					   bool *stalled)
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
			/* This writer doesn't wait, but later writers need space. */
			t->policy->make_space(t);
			return NULL;
		}
		*stalled = true;
		spare = dtc_slot_wait(t);
		if (!spare)
			return NULL;
	}
	if (!slot)
		swap(slot, spare);
	dtc_mark_pending(t, set, slot, block);
	if (spare)		/* another writer has put the block in a slot meanwhile */
		dtc_slot_put(t, spare);
	spin_unlock_irq(&set->lock);
	return slot;
}

/* Stores the bio's next block. False: no slot is available. */
static bool dtc_write_block(struct dtc *t, struct bio *bio)
{
	u64 block = dtc_first_block(t, bio), lap = dtc_now(t);
	struct dtc_set *set = dtc_set_of(t, block);
	bool stalled = false, hit;
	struct dtc_slot *slot;

	slot = dtc_slot_for_write(t, set, block, &hit, &stalled);
	if (!slot)
		return false;
	if (!stalled)
		lap = dtc_lap(t, DTC_PHASE_METADATA, lap);
	dtc_copy_block(t, bio, slot, false);
	lap = dtc_lap(t, stalled ? DTC_PHASE_EVICT_AND_WRITE : DTC_PHASE_CACHE_WRITE, lap);
	trace_dtc_store(t, block, hit, stalled);
	dtc_mark_valid(t, set, slot);
	dtc_lap(t, DTC_PHASE_ENQUEUE, lap);
	dtc_count(t, DTC_WRITE_BLOCKS, 1);
	if (hit)
		dtc_count(t, DTC_WRITE_HITS, 1);
	if (stalled)
		dtc_count(t, DTC_STALLED, 1);
	return true;
}

/* Sends the rest of the bio to the device unchanged. */
static int dtc_bypass(struct dtc *t, struct bio *bio)
{
	struct dtc_bio *db = dtc_bio_data(bio);
	u32 blocks = dtc_nr_blocks(t, bio);
	struct dtc_slot *slot;

	db->kind = DTC_BIO_BYPASS;
	db->range.first = dtc_first_block(t, bio);
	db->range.last = db->range.first + blocks - 1;
	db->set = dtc_set_of(t, db->range.first);
	dtc_set_lock_range(t, db->set, &db->range);
	list_for_each_entry(slot, &db->set->queue, queue) {
		if (!dtc_slot_in_range(&db->range, slot))
			continue;
		slot->state = DTC_EVICTING;
		if (t->policy->removed)
			t->policy->removed(t, slot);
	}
	spin_unlock_irq(&db->set->lock);
	dtc_count(t, DTC_WRITE_BLOCKS, blocks);
	dtc_count(t, bio->bi_opf & REQ_FUA ? DTC_FUA : DTC_BYPASSED, blocks);
	trace_dtc_past(t, db->range.first, blocks, bio->bi_opf & REQ_FUA);
	return dtc_remap(t, bio);
}

/*
 * The device has refused the new version, so a dirty slot holds the newest one again. A clean slot is
 * freed: after the error, the device's content is unknown. Returns whether the slot is wanted.
 */
static bool dtc_bypass_failed(struct dtc *t, struct dtc_set *set, struct dtc_slot *slot)
{
	lockdep_assert_held(&set->lock);
	if (slot->clean) {
		dtc_set_remove(t, set, slot);
		return false;
	}
	slot->state = DTC_VALID;
	if (t->policy->stored)
		t->policy->stored(t, slot);
	/*
	 * A writer that began to wait meanwhile has relied on this slot becoming free, or hasn't seen
	 * it.
	 */
	if (READ_ONCE(t->free.waiting))
		slot->wanted = true;
	return slot->wanted;
}

/**
 * dtc_bypass_done() - a bio that bypassed the cache has completed
 * @t: the target
 * @bio: the bio
 * @status: its result
 *
 * Context: Any, interrupts too.
 */
void dtc_bypass_done(struct dtc *t, struct bio *bio, blk_status_t status)
{
	struct dtc_slot *slot, *next;
	struct dtc_bio *db = dtc_bio_data(bio);
	struct dtc_set *set = db->set;
	bool wanted = false;
	unsigned long flags;

	spin_lock_irqsave(&set->lock, flags);
	hlist_del(&db->range.node);
	list_for_each_entry_safe(slot, next, &set->queue, queue) {
		if (!dtc_slot_in_range(&db->range, slot))
			continue;
		if (status)
			wanted |= dtc_bypass_failed(t, set, slot);
		else
			dtc_set_remove(t, set, slot);
	}
	dtc_set_wake(set);
	spin_unlock_irqrestore(&set->lock, flags);
	if (wanted)
		dtc_ready_add(t, set);
	dtc_lap(t, DTC_PHASE_BYPASS, db->start_ns);
}

/**
 * dtc_write() - map a write
 * @t: the target
 * @bio: positions are the device's
 *
 * Context: Task in map. Sleeps.
 * Return: DM_MAPIO_SUBMITTED or DM_MAPIO_REMAPPED.
 */
int dtc_write(struct dtc *t, struct bio *bio)
{
	u64 start_ns = dtc_now(t);

	/* The flush that this FUA write follows may have failed: map.c. */
	if (unlikely(bio->bi_opf & REQ_FUA && READ_ONCE(t->flush_failed)))
		return dtc_ended(bio, BLK_STS_IOERR);
	while (!(bio->bi_opf & REQ_FUA) && bio->bi_iter.bi_size && dtc_write_block(t, bio))
		;
	dtc_lap(t, DTC_PHASE_WRITE, start_ns);
	if (!bio->bi_iter.bi_size)
		return dtc_ended(bio, BLK_STS_OK);
	dtc_bio_data(bio)->start_ns = dtc_now(t);
	return dtc_bypass(t, bio);
}
