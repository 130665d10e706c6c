// SPDX-License-Identifier: GPL-2.0-only
/*
 * Reads: blocks that have a slot are copied from there, also while it is being
 * evicted; the others are the device's, and are not brought in.
 *
 * A bio is taken in turns, as device-mapper allows: blocks that have slots, then
 * some that have none, with which it goes below; what follows comes as another bio.
 * A block that has no slot when it is looked for may be read from the device at any
 * time after that: who writes it now does so at the same time as this read.
 */
#include "policy.h"

/* How many blocks, from here on, have no slot. With the set's lock held. */
static u32 dtc_missing(struct dtc *t, struct dtc_set *set, struct bio *bio)
{
	u64 block = dtc_first_block(t, bio);
	u32 n, blocks = dtc_nr_blocks(t, bio);

	if (list_empty(&set->queue))
		return blocks;
	for (n = 0; n < blocks && !dtc_set_find(set, block + n); n++)
		;
	return n;
}

/* The slot that has a block, once it is written to no more. */
static struct dtc_slot *dtc_readable(struct dtc_set *set, u64 block)
{
	struct dtc_slot *slot;

	wait_event_lock_irq(set->wait, !(slot = dtc_set_find(set, block)) || slot->state != DTC_PENDING,
			    set->lock);
	return slot;
}

/* Copies what has a slot at the bio's beginning; returns how many blocks after that have none. */
static u32 dtc_read_slots(struct dtc *t, struct dtc_set *set, struct bio *bio)
{
	struct dtc_slot *slot;
	u32 missing = 0;

	spin_lock_irq(&set->lock);
	while (bio->bi_iter.bi_size) {
		missing = dtc_missing(t, set, bio);
		if (missing)
			break;
		slot = dtc_readable(set, dtc_first_block(t, bio));
		if (!slot)
			continue;
		slot->readers++;
		if (t->policy->read && slot->state == DTC_VALID)
			t->policy->read(t, slot);
		spin_unlock_irq(&set->lock);
		dtc_copy_block(t, bio, slot, true);
		dtc_count(t, DTC_READ_HITS, 1);
		spin_lock_irq(&set->lock);
		dtc_set_unpin(t, set, slot);
	}
	spin_unlock_irq(&set->lock);
	return missing;
}

/**
 * dtc_read() - map a read
 * @t: the target
 * @bio: positions are the device's
 */
int dtc_read(struct dtc *t, struct bio *bio)
{
	struct dtc_set *set = dtc_set_of(t, dtc_first_block(t, bio));
	u32 missing, blocks = dtc_nr_blocks(t, bio);
	struct dtc_bio *db = dtc_bio(bio);

	db->kind = DTC_BIO_READ;
	db->began = dtc_now(t);
	missing = dtc_read_slots(t, set, bio);
	dtc_count(t, DTC_READ_BLOCKS, blocks - (dtc_nr_blocks(t, bio) - missing));
	if (!missing)
		return dtc_ended(bio, BLK_STS_OK);
	if (missing < dtc_nr_blocks(t, bio))
		dm_accept_partial_bio(bio, missing << t->block_shift);
	return dtc_below(t, bio);
}
