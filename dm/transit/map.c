// SPDX-License-Identifier: GPL-2.0-only
/*
 * The entry from device-mapper: map dispatches a bio by its operation, end_io completes those sent to
 * the device.
 *
 * A bio with a flush and data, such as a journal's commit, arrives as two bios. device-mapper (6.12)
 * sends the data even when the flush has failed, and the data's bio doesn't show the failure. So once a
 * flush has failed, FUA writes fail until a later flush succeeds. Such a flush comes from above, or
 * from retry.c, which tries one from time to time. Data after a flush but without FUA can't be told
 * from other writes.
 *
 * Uses write.c, read.c, discard.c, drain.c, range.c, bio.c, error.c.
 */
#include <linux/highmem.h>

#include "transit.h"

static int dtc_map_flush(struct dtc *t, struct bio *bio)
{
	struct dtc_bio *db = dtc_bio_data(bio);

	db->kind = DTC_BIO_FLUSH;
	db->start_ns = dtc_now(t);
	db->stamp = atomic_read(&t->stamp);
	dtc_count(t, DTC_FLUSHES, 1);
	if (dtc_drain(t, false))
		return dtc_ended(bio, BLK_STS_IOERR);
	return dtc_remap(t, bio);
}

/**
 * dtc_map() - map a bio
 * @ti: the target
 * @bio: device-mapper's clone; a read or write lies within one chunk
 *
 * Context: Task. Sleeps.
 * Return: DM_MAPIO_SUBMITTED or DM_MAPIO_REMAPPED.
 */
int dtc_map(struct dm_target *ti, struct bio *bio)
{
	struct dtc *t = ti->private;

	dtc_bio_data(bio)->kind = DTC_BIO_OTHER;
	bio->bi_iter.bi_sector = dm_target_offset(ti, bio->bi_iter.bi_sector);
	if (!t->nr_slots)
		return dtc_remap(t, bio);
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
		return dtc_discard(t, bio);
	default:
		return dtc_ended(bio, BLK_STS_NOTSUPP);
	}
}

int dtc_end_io(struct dm_target *ti, struct bio *bio, blk_status_t *status)
{
	struct dtc_bio *db = dtc_bio_data(bio);
	struct dtc *t = ti->private;

	switch (db->kind) {
	case DTC_BIO_BYPASS:
		dtc_bypass_done(t, bio, *status);
		break;
	case DTC_BIO_DISCARD:
		dtc_discards_remove(t, &db->range);
		break;
	case DTC_BIO_READ:
		dtc_lap(t, DTC_PHASE_READ, db->start_ns);
		break;
	case DTC_BIO_FLUSH:
		dtc_lap(t, DTC_PHASE_FLUSH, db->start_ns);
		if (*status)
			dtc_count(t, DTC_FAILED_FLUSHES, 1);
		dtc_flush_ended(t, db->stamp, *status);
		break;
	}
	return DM_ENDIO_DONE;
}
