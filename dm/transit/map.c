// SPDX-License-Identifier: GPL-2.0-only
/*
 * Where bios come in, and where those that went below come back.
 *
 * A bio that asks for a flush and has data, such as a journal's commit, comes in two
 * parts, and device-mapper (6.12) sends the data even when the flush has failed, and
 * tells nobody. So once a flush has failed, FUA writes fail, until one that began later
 * succeeds: somebody's, or our own, tried from time to time (evict.c). Data with a flush
 * before them and without FUA can't be told from others.
 */
#include <linux/highmem.h>

#include "transit.h"

int dtc_ended(struct bio *bio, blk_status_t status)
{
	bio->bi_status = status;
	bio_endio(bio);
	return DM_MAPIO_SUBMITTED;
}

/* One block, between a slot and where the bio stands; the bio moves on. */
void dtc_copy_block(struct dtc *t, struct bio *bio, struct dtc_slot *slot, bool to_bio)
{
	void *data = dtc_slot_data(t, slot);
	u32 left = t->params.block_size;

	while (left) {
		struct bio_vec bv = bio_iter_iovec(bio, bio->bi_iter);
		u32 len = min(left, bv.bv_len);

		bv.bv_len = len;
		if (to_bio)
			memcpy_to_bvec(&bv, data);
		else
			memcpy_from_bvec(data, &bv);
		bio_advance(bio, len);
		data += len;
		left -= len;
	}
}

static int dtc_map_flush(struct dtc *t, struct bio *bio)
{
	struct dtc_bio *db = dtc_bio(bio);

	db->kind = DTC_BIO_FLUSH;
	db->began = dtc_now(t);
	db->stamp = atomic_read(&t->stamp);
	dtc_count(t, DTC_FLUSHES, 1);
	if (dtc_drain(t, false))
		return dtc_ended(bio, BLK_STS_IOERR);
	return dtc_below(t, bio);
}

/**
 * dtc_map() - take a bio
 * @ti: the target
 * @bio: device-mapper's clone; it lies within a chunk if it has data
 */
int dtc_map(struct dm_target *ti, struct bio *bio)
{
	struct dtc *t = ti->private;

	dtc_bio(bio)->kind = DTC_BIO_OTHER;
	bio->bi_iter.bi_sector = dm_target_offset(ti, bio->bi_iter.bi_sector);
	if (!t->nr_slots)
		return dtc_below(t, bio);
	if (time_before(READ_ONCE(t->last_bio), jiffies))
		WRITE_ONCE(t->last_bio, jiffies);
	if (bio->bi_opf & REQ_PREFLUSH)		/* device-mapper has split the data off */
		return dtc_map_flush(t, bio);
	if (unlikely((bio->bi_iter.bi_sector | bio_sectors(bio)) & ((1 << t->block_shift) - 1)))
		return dtc_ended(bio, BLK_STS_INVAL);
	switch (bio_op(bio)) {
	case REQ_OP_READ:
		return dtc_read(t, bio);
	case REQ_OP_WRITE:
		return dtc_write(t, bio);
	case REQ_OP_DISCARD:
	case REQ_OP_WRITE_ZEROES:
		return dtc_wide(t, bio);
	default:
		return dtc_ended(bio, BLK_STS_NOTSUPP);
	}
}

int dtc_end_io(struct dm_target *ti, struct bio *bio, blk_status_t *status)
{
	struct dtc_bio *db = dtc_bio(bio);
	struct dtc *t = ti->private;

	switch (db->kind) {
	case DTC_BIO_PAST:
		dtc_past_done(t, bio, *status);
		break;
	case DTC_BIO_WIDE:
		dtc_wide_done(t, bio);
		break;
	case DTC_BIO_READ:
		dtc_lap(t, DTC_PHASE_READ, db->began);
		break;
	case DTC_BIO_FLUSH:
		dtc_lap(t, DTC_PHASE_FLUSH, db->began);
		if (*status)
			dtc_count(t, DTC_FAILED_FLUSHES, 1);
		dtc_flush_ended(t, db->stamp, *status);
		break;
	}
	return DM_ENDIO_DONE;
}
