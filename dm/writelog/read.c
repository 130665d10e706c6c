// SPDX-License-Identifier: GPL-2.0-only
/*
 * Reads: what is in the log is copied from there, the rest is the origin's.
 *
 * A bio is taken in turns: blocks that the log has, then blocks that it hasn't;
 * these the bio itself goes to the origin with, and what follows comes back as
 * another bio. Nothing is waited for here, and nobody is locked out.
 *
 * A block that isn't in the index when it is looked up may be read from the
 * origin at any time after that: what was written back is there, and whoever
 * writes it now does so at the same time as this read.
 */
#include <linux/highmem.h>
#include <linux/uio.h>

#include "writelog.h"

/* The newest version of a block; looks a region up when it enters it. */
struct dwl_look {
	struct dwl *w;
	u64 number;
	struct dwl_region *region;
};

static u64 dwl_look_up(struct dwl_look *look, u64 block)
{
	u64 number = block >> DWL_REGION_SHIFT;

	if (number != look->number) {
		look->number = number;
		look->region = dwl_index_find(look->w, number);
	}
	return look->region ? READ_ONCE(look->region->block[block & (DWL_REGION_BLOCKS - 1)]) : 0;
}

static int dwl_copy_block(struct dwl *w, struct bio *bio, u64 value)
{
	const u8 *from = value & DWL_ZERO ? NULL : dwl_data(w, value);
	u32 left = 1u << (w->block_shift + WL_SECTOR_SHIFT);

	while (left) {
		struct bio_vec bv = bio_iter_iovec(bio, bio->bi_iter);
		u32 len = min(left, bv.bv_len);
		void *to = bvec_kmap_local(&bv);
		unsigned long lost = 0;

		if (from) {
			lost = copy_mc_to_kernel(to, from, len);
			trace_forebay_pm_read(from, len);
			from += len;
		} else {
			memset(to, 0, len);
		}
		flush_dcache_page(bv.bv_page);
		kunmap_local(to);
		if (lost)
			return -EIO;
		bio_advance(bio, len);
		left -= len;
	}
	return 0;
}

/* The blocks at the bio's beginning that the log has. */
static int dwl_read_log(struct dwl *w, struct bio *bio, struct dwl_look *look)
{
	while (bio->bi_iter.bi_size) {
		u64 block = bio->bi_iter.bi_sector >> w->block_shift;
		u64 value = dwl_look_up(look, block);
		int err;

		if (!value)
			return 0;
		err = value & DWL_POISON ? -EIO : dwl_copy_block(w, bio, value);
		if (err) {
			DMERR_LIMIT("%pg: block at sector %llu of the origin is lost: damaged in the log",
				    w->cache->bdev, block << w->block_shift);
			dwl_count(w, DWL_MEDIUM_ERRORS, 1);
			return err;
		}
		dwl_count(w, DWL_READ_HIT_SECTORS, 1 << w->block_shift);
	}
	return 0;
}

/* How many sectors at the bio's beginning the log doesn't have. */
static u32 dwl_read_misses(struct dwl *w, struct bio *bio, struct dwl_look *look)
{
	u64 block = bio->bi_iter.bi_sector >> w->block_shift;
	u64 end = bio_end_sector(bio) >> w->block_shift, first = block;

	while (block < end && !dwl_look_up(look, block))
		block = look->region ? block + 1 : min(end, (look->number + 1) << DWL_REGION_SHIFT);
	return (block - first) << w->block_shift;
}

/**
 * dwl_read() - map a read
 * @w: the target
 * @bio: positions are the origin's
 */
int dwl_read(struct dwl *w, struct bio *bio)
{
	struct dwl_look look = { .w = w, .number = U64_MAX };
	struct dwl_bio *db = dwl_bio(bio);
	u32 misses = bio_sectors(bio);
	u64 began = dwl_now(w);
	int idx, err = 0;

	dwl_count(w, DWL_READS, 1);
	dwl_count(w, DWL_READ_SECTORS, bio_sectors(bio));
	if (atomic_long_read(&w->nr_regions)) {
		idx = srcu_read_lock(&w->srcu);
		err = dwl_read_log(w, bio, &look);
		misses = err ? 0 : dwl_read_misses(w, bio, &look);
		srcu_read_unlock(&w->srcu, idx);
	}
	if (!misses) {
		bio->bi_status = errno_to_blk_status(err);
		dwl_latency(w, DWL_PHASE_READ, began);
		bio_endio(bio);
		return DM_MAPIO_SUBMITTED;
	}
	if (misses < bio_sectors(bio)) {
		dwl_count(w, DWL_READ_SECTORS, -(u64)(bio_sectors(bio) - misses));
		dm_accept_partial_bio(bio, misses);
	}
	db->below = true;
	db->began = began;
	this_cpu_inc(w->stats->reads_below);
	bio_set_dev(bio, w->origin->bdev);
	return DM_MAPIO_REMAPPED;
}
