// SPDX-License-Identifier: GPL-2.0-only
/*
 * Reads: blocks that have a slot are copied from there, also while it is being
 * evicted; the others are the device's, and are not brought in.
 *
 * A bio is taken in turns, as device-mapper allows: either blocks that have slots, or
 * some that have none, with which it goes below; what follows comes as another bio.
 * That is said before the bio moves on: device-mapper before 6.12.117 gets the rest
 * wrong if it is said later.
 *
 * All slots of a turn are taken at once, so that none goes before it is copied.
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

/* May one more read it now? */
static bool dtc_readable(const struct dtc_slot *slot)
{
	return slot->state == DTC_EVICTING || (slot->state == DTC_VALID && !slot->awaited);
}

/*
 * Takes the slots that the bio's first blocks have; if the first has none, @missing says how
 * many don't. Who waits here has no slot yet, so nobody waits for him.
 */
static u32 dtc_pin(struct dtc *t, struct dtc_set *set, struct bio *bio, struct dtc_slot **slots, u32 *missing)
{
	u64 block = dtc_first_block(t, bio);
	u32 n, blocks = dtc_nr_blocks(t, bio);
	struct dtc_slot *slot;

	spin_lock_irq(&set->lock);
	wait_event_lock_irq(set->wait, !(slot = dtc_set_find(set, block)) || dtc_readable(slot), set->lock);
	for (n = 0; n < blocks; n++) {
		slot = dtc_set_find(set, block + n);
		if (!slot || !dtc_readable(slot))
			break;
		slot->readers++;
		if (t->policy->read && slot->state == DTC_VALID)
			t->policy->read(t, slot);
		slots[n] = slot;
	}
	*missing = n ? 0 : dtc_missing(t, set, bio);
	spin_unlock_irq(&set->lock);
	return n;
}

static void dtc_read_slots(struct dtc *t, struct dtc_set *set, struct bio *bio, struct dtc_slot **slots,
			   u32 nr)
{
	u32 i;

	for (i = 0; i < nr; i++)
		dtc_copy_block(t, bio, slots[i], true);
	spin_lock_irq(&set->lock);
	for (i = 0; i < nr; i++)
		dtc_set_unpin(t, set, slots[i]);
	spin_unlock_irq(&set->lock);
	dtc_count(t, DTC_READ_HITS, nr);
}

/**
 * dtc_read() - map a read
 * @t: the target
 * @bio: positions are the device's
 */
int dtc_read(struct dtc *t, struct bio *bio)
{
	struct dtc_set *set = dtc_set_of(t, dtc_first_block(t, bio));
	struct dtc_slot *slots[1 << DTC_CHUNK_SHIFT];
	struct dtc_bio *db = dtc_bio(bio);
	u32 found, missing;

	db->kind = DTC_BIO_READ;
	db->began = dtc_now(t);
	found = dtc_pin(t, set, bio, slots, &missing);
	dtc_count(t, DTC_READ_BLOCKS, found + missing);
	if (found + missing < dtc_nr_blocks(t, bio))
		dm_accept_partial_bio(bio, (found + missing) << t->block_shift);
	if (!found)
		return dtc_below(t, bio);
	dtc_read_slots(t, set, bio, slots, found);
	return dtc_ended(bio, BLK_STS_OK);
}
