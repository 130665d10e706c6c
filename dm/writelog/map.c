// SPDX-License-Identifier: GPL-2.0-only
/*
 * The entry from device-mapper.
 *
 * The device has no volatile write cache: what has completed is durable. So the block layer drops
 * flushes and FUA, and none arrive here. In cleaner mode nothing is logged any more: direct.c
 *
 * A writer that has passed space.c checks again when it holds its slot. If writers are blocked, or go
 * to the origin now, the writer starts over.
 */
#include "space.h"
#include "writelog.h"

static int dwl_ended(struct bio *bio, int err)
{
	if (err == -ECANCELED)
		return DM_MAPIO_REQUEUE;
	if (err == -EAGAIN) {
		bio_wouldblock_error(bio);
	} else {
		bio->bi_status = errno_to_blk_status(err);
		bio_endio(bio);
	}
	return DM_MAPIO_SUBMITTED;
}

/*
 * Passes a discard on to the origin after it was logged. The content after a discard is undefined, so
 * blocks covered by the fingerprint are left out: fingerprint.c
 */
static int dwl_discard_origin(struct dwl *w, struct bio *bio)
{
	u64 area = (u64)WL_FINGERPRINT_BLOCKS * WL_PAGE_SIZE >> SECTOR_SHIFT, sector = bio->bi_iter.bi_sector;

	if (bio_end_sector(bio) <= area)
		return dwl_ended(bio, 0);
	if (sector < area)
		bio_advance(bio, (area - sector) << SECTOR_SHIFT);
	bio_set_dev(bio, w->origin->bdev);
	return DM_MAPIO_REMAPPED;
}

static enum wl_op dwl_op(const struct bio *bio)
{
	switch (bio_op(bio)) {
	case REQ_OP_DISCARD:
		return WL_OP_DISCARD;
	case REQ_OP_WRITE_ZEROES:
		return WL_OP_ZEROES;
	default:
		return WL_OP_WRITE;
	}
}

/* Appends the bio in segments, a discard at once. Continues at @iter, so that the call can be repeated. */
static int dwl_log(struct dwl *w, struct bio *bio, struct bvec_iter *iter, u64 *sector)
{
	u64 end = bio_end_sector(bio);
	enum wl_op op = dwl_op(bio);
	int err = 0;

	while (*sector < end && !err) {
		u64 stop = end;

		if (op != WL_OP_DISCARD)
			stop = min(end, round_down(*sector, DWL_SEGMENT) + DWL_SEGMENT);
		err = dwl_append(w, op, sector, stop, bio, iter);
	}
	return err;
}

static void dwl_count_write(struct dwl *w, struct bio *bio)
{
	switch (bio_op(bio)) {
	case REQ_OP_DISCARD:
		dwl_count(w, DWL_DISCARDS, 1);
		break;
	case REQ_OP_WRITE_ZEROES:
		dwl_count(w, DWL_ZEROES, 1);
		break;
	default:
		dwl_count(w, DWL_WRITES, 1);
		dwl_count(w, DWL_WRITE_SECTORS, bio_sectors(bio));
	}
}

/* Bytes that the bio takes in the log. For zeroes, which take only a header there, bytes in the index. */
static u64 dwl_bytes(const struct dwl *w, const struct bio *bio)
{
	if (bio_op(bio) == REQ_OP_WRITE)
		return bio->bi_iter.bi_size;
	if (bio_op(bio) == REQ_OP_DISCARD)
		return WL_LINE;
	return ((bio_sectors(bio) >> w->block_shift >> DWL_REGION_SHIFT) + 1) * sizeof(struct dwl_region);
}

static int dwl_write(struct dwl *w, struct bio *bio)
{
	u64 bytes = dwl_bytes(w, bio);
	struct bvec_iter iter = bio->bi_iter;
	u64 sector = iter.bi_sector, start_ns = dwl_now(w);
	int err;

	do {
		err = dwl_space_enter(w, bytes, bio->bi_opf & REQ_NOWAIT);
		if (err)
			return dwl_ended(bio, err);
		if (unlikely(READ_ONCE(w->mode) == DWL_CLEANER)) {
			err = dwl_write_direct(w, bio);
			return err ? dwl_ended(bio, err) : DM_MAPIO_REMAPPED;
		}
		err = dwl_log(w, bio, &iter, &sector);
	} while (err == -ERESTART);
	if (!err)
		dwl_count_write(w, bio);
	dwl_latency(w, DWL_PHASE_WRITE, start_ns);
	if (!err && bio_op(bio) == REQ_OP_DISCARD)
		return dwl_discard_origin(w, bio);
	return dwl_ended(bio, err);
}

/**
 * dwl_map() - map a bio
 * @ti: the target
 * @bio: device-mapper's clone; if it has data, it lies within one segment
 *
 * Context: Task. Sleeps unless REQ_NOWAIT.
 * Return: DM_MAPIO_SUBMITTED or DM_MAPIO_REMAPPED; before a suspend without flush also DM_MAPIO_REQUEUE.
 */
int dwl_map(struct dm_target *ti, struct bio *bio)
{
	struct dwl *w = ti->private;
	struct dwl_bio *db = dwl_bio_data(bio);
	u32 mask = (1 << w->block_shift) - 1;

	db->at_origin = false;
	db->direct_sectors = 0;
	bio->bi_iter.bi_sector = dm_target_offset(ti, bio->bi_iter.bi_sector);
	if (unlikely((bio->bi_iter.bi_sector | bio_sectors(bio)) & mask))
		return dwl_ended(bio, -EINVAL);
	switch (bio_op(bio)) {
	case REQ_OP_READ:
		return dwl_read(w, bio);
	case REQ_OP_WRITE:
	case REQ_OP_DISCARD:
	case REQ_OP_WRITE_ZEROES:
		return dwl_write(w, bio);
	default:
		return dwl_ended(bio, -EOPNOTSUPP);
	}
}

int dwl_end_io(struct dm_target *ti, struct bio *bio, blk_status_t *status)
{
	struct dwl *w = ti->private;
	struct dwl_bio *db = dwl_bio_data(bio);

	if (unlikely(db->direct_sectors) && dwl_direct_done(w, bio, *status))
		return DM_ENDIO_INCOMPLETE;
	if (db->at_origin) {
		this_cpu_dec(w->stats->reads_in_flight);
		dwl_latency(w, DWL_PHASE_ORIGIN_READ, db->start_ns);
	}
	return DM_ENDIO_DONE;
}
