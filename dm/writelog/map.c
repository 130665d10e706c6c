// SPDX-License-Identifier: GPL-2.0-only
/*
 * Where bios come in.
 *
 * The device has no write cache: what has completed is durable. So the block
 * layer itself drops flushes and FUA, and none come here. Only in cleaner mode,
 * when nothing is logged any more, writes go to the origin, each with FUA.
 *
 * A writer that has come past the gate (space.c) looks again when it holds its
 * slot: if writers are held up, or go to the origin, it comes back here.
 */
#include "writelog.h"

static int dwl_ended(struct bio *bio, int err)
{
	if (err == -EAGAIN) {
		bio_wouldblock_error(bio);
	} else {
		bio->bi_status = errno_to_blk_status(err);
		bio_endio(bio);
	}
	return DM_MAPIO_SUBMITTED;
}

static int dwl_below(struct dwl *w, struct bio *bio)
{
	bio_set_dev(bio, w->origin->bdev);
	return DM_MAPIO_REMAPPED;
}

/*
 * A write that isn't logged is durable, too, when it completes. The index has only blocks that are
 * lost, if any: what is written now is in their place.
 */
static int dwl_write_below(struct dwl *w, struct bio *bio)
{
	struct wl_entry entry = {
		.sector = bio->bi_iter.bi_sector, .nr_sectors = bio_sectors(bio), .order = U64_MAX,
	};

	switch (bio_op(bio)) {
	case REQ_OP_WRITE:
		bio->bi_opf |= REQ_FUA;
		dwl_count(w, DWL_DIRECT_WRITES, 1);
		break;
	case REQ_OP_WRITE_ZEROES:	/* can't have FUA; who asked for it writes zeros then */
		return dwl_ended(bio, -EOPNOTSUPP);
	default:
		break;
	}
	dwl_index_drop(w, &entry);
	return dwl_below(w, bio);
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

/* In portions, unless it is a discard. From @iter on, so it can be called again. */
static int dwl_log(struct dwl *w, struct bio *bio, struct bvec_iter *iter, u64 *sector)
{
	u64 end = bio_end_sector(bio);
	enum wl_op op = dwl_op(bio);
	int err = 0;

	while (*sector < end && !err) {
		u64 stop = end;

		if (op != WL_OP_DISCARD)
			stop = min(end, round_down(*sector, DWL_PORTION) + DWL_PORTION);
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

/* What it takes of the log; for zeros, which take but a header there, what they take in the index. */
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
	u64 sector = iter.bi_sector, began = dwl_now(w);
	int err;

	do {
		err = dwl_space_enter(w, bytes, bio->bi_opf & REQ_NOWAIT);
		if (err)
			return dwl_ended(bio, err);
		if (unlikely(READ_ONCE(w->mode) == DWL_CLEANER))
			return dwl_write_below(w, bio);
		err = dwl_log(w, bio, &iter, &sector);
	} while (err == -ERESTART);
	if (!err)
		dwl_count_write(w, bio);
	dwl_latency(w, DWL_PHASE_WRITE, began);
	/* The origin may have use for it; it is done when the origin says so. */
	if (!err && bio_op(bio) == REQ_OP_DISCARD)
		return dwl_below(w, bio);
	return dwl_ended(bio, err);
}

/**
 * dwl_map() - take a bio
 * @ti: the target
 * @bio: device-mapper's clone; it begins and ends within a portion if it has data
 */
int dwl_map(struct dm_target *ti, struct bio *bio)
{
	struct dwl *w = ti->private;
	struct dwl_bio *db = dwl_bio(bio);
	u32 mask = (1 << w->block_shift) - 1;

	db->below = false;
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
	struct dwl_bio *db = dwl_bio(bio);

	if (db->below) {
		this_cpu_dec(w->stats->reads_below);
		dwl_latency(w, DWL_PHASE_ORIGIN_READ, db->began);
	}
	return DM_ENDIO_DONE;
}
