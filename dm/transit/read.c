// SPDX-License-Identifier: GPL-2.0-only
/*
 * Reads: blocks that have a slot are copied from the slot, during its eviction too. Other blocks are
 * read from the device and are not cached.
 *
 * device-mapper lets a target accept a part of a bio. Each call accepts either blocks that have slots,
 * or blocks that have none; the latter go to the device. The rest of the bio comes back as another bio.
 * dm_accept_partial_bio() is called before the bio advances: before 6.12.117 device-mapper computes a
 * wrong rest otherwise.
 *
 * All slots of a call get a reader at once, so that none is freed before it is copied. A block without
 * a slot may be read from the device at any later time. A write of the block that begins now is
 * concurrent with this read.
 *
 * Uses set.c and bio.c. Used by map.c.
 */
#include "policy.h"

/* Returns the number of leading blocks that have no slot. */
static u32 dtc_missing(struct dtc *t, struct dtc_set *set, struct bio *bio)
{
	u64 block = dtc_first_block(t, bio);
	u32 n, blocks = dtc_nr_blocks(t, bio);

	lockdep_assert_held(&set->lock);
	if (list_empty(&set->queue))
		return blocks;
	for (n = 0; n < blocks && !dtc_set_find(set, block + n); n++)
		;
	return n;
}

/* True if the slot admits one more reader. */
static bool dtc_readable(const struct dtc_slot *slot)
{
	return slot->state == DTC_EVICTING || (slot->state == DTC_VALID && !slot->writers_waiting);
}

/*
 * Adds a reader to the slots of the bio's leading blocks. If the first block has no slot, *@missing is
 * the number of leading blocks without one. A task that waits here is no slot's reader, so no other
 * task waits for it.
 */
static u32 dtc_get_slots(struct dtc *t, struct dtc_set *set, struct bio *bio, struct dtc_slot **slots,
			 u32 *missing)
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
		dtc_set_put_reader(t, set, slots[i]);
	spin_unlock_irq(&set->lock);
	dtc_count(t, DTC_READ_HITS, nr);
}

/**
 * dtc_read() - map a read
 * @t: the target
 * @bio: positions are the device's
 *
 * Context: Task in map. Sleeps.
 * Return: DM_MAPIO_SUBMITTED or DM_MAPIO_REMAPPED.
 */
int dtc_read(struct dtc *t, struct bio *bio)
{
	struct dtc_set *set = dtc_set_of(t, dtc_first_block(t, bio));
	struct dtc_slot *slots[1 << DTC_CHUNK_SHIFT];
	struct dtc_bio *db = dtc_bio_data(bio);
	u32 found, missing;

	db->kind = DTC_BIO_READ;
	db->start_ns = dtc_now(t);
	found = dtc_get_slots(t, set, bio, slots, &missing);
	dtc_count(t, DTC_READ_BLOCKS, found + missing);
	if (found + missing < dtc_nr_blocks(t, bio))
		dm_accept_partial_bio(bio, (found + missing) << t->block_shift);
	if (!found)
		return dtc_remap(t, bio);
	dtc_read_slots(t, set, bio, slots, found);
	return dtc_ended(bio, BLK_STS_OK);
}
