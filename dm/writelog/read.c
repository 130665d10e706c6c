// SPDX-License-Identifier: GPL-2.0-only
/*
 * Reads: what is in the log is copied from there, the rest is the origin's.
 *
 * A bio is taken in turns: blocks that the log has, or blocks that it hasn't;
 * what follows comes back as another bio. Nothing is waited for here, and nobody is
 * locked out. What a turn has is settled before anything of it is copied: the 6.12
 * kernels before 6.12.117 don't let a bio be shortened that has been advanced.
 *
 * A block that isn't in the index when it is looked up may be read from the
 * origin at any time after that: what was written back is there, and whoever
 * writes it now does so at the same time as this read.
 */
#include <linux/highmem.h>
#include <linux/uio.h>

#include "writelog.h"

/* Looks a region up when it enters it. */
struct dwl_look {
	struct dwl *w;
	u64 number;
	struct dwl_region *region;
};

/* Blocks that lie one behind the other in the log, too; or of zeros. */
struct dwl_extent {
	u64 value;			/* of the first in the index */
	u32 blocks;
};

#define DWL_TURN_EXTENTS	16

struct dwl_turn {
	struct dwl_extent extents[DWL_TURN_EXTENTS];
	u32 nr;
};

/* The newest version of a block; 0: the log has none. */
static u64 dwl_look_up(struct dwl_look *look, u64 block)
{
	u64 number = block >> DWL_REGION_SHIFT, value;

	if (number != look->number) {
		look->number = number;
		look->region = dwl_index_find(look->w, number);
	}
	value = look->region ? READ_ONCE(look->region->block[block & (DWL_REGION_BLOCKS - 1)]) : 0;
	return value & DWL_DISCARDED ? 0 : value;
}

/* The blocks from the first on that the log has; returns how many. */
static u32 dwl_find_hits(struct dwl_look *look, u64 block, u64 end, struct dwl_turn *turn)
{
	struct dwl_extent *extent = NULL;
	u64 first = block, next = 0, value;

	turn->nr = 0;
	for (; block < end; block++) {
		value = dwl_look_up(look, block);
		if (!value)
			break;
		if (!extent || value != next) {
			if (turn->nr == DWL_TURN_EXTENTS)
				break;
			extent = &turn->extents[turn->nr++];
			*extent = (struct dwl_extent){ .value = value };
		}
		extent->blocks++;
		next = dwl_value_behind(value, 1 << look->w->block_shift);
	}
	return block - first;
}

/* How many blocks, from the first on, the log doesn't have. */
static u32 dwl_find_misses(struct dwl_look *look, u64 block, u64 end)
{
	u64 first = block;

	while (block < end && !dwl_look_up(look, block))
		block = look->region ? block + 1 : min(end, (look->number + 1) << DWL_REGION_SHIFT);
	return block - first;
}

/* Next bytes of the bio, from the log; NULL: zeros. */
static int dwl_copy(struct bio *bio, const u8 *from, u32 bytes)
{
	while (bytes) {
		struct bio_vec bv = bio_iter_iovec(bio, bio->bi_iter);
		u32 len = min(bytes, bv.bv_len);
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
		bytes -= len;
	}
	return 0;
}

/* All that is left of the bio is in the log. */
static int dwl_read_turn(struct dwl *w, struct bio *bio, const struct dwl_turn *turn)
{
	u32 i;

	for (i = 0; i < turn->nr; i++) {
		u64 value = turn->extents[i].value;
		const u8 *from = value & DWL_ZERO ? NULL : dwl_data(w, value);
		u32 bytes = turn->extents[i].blocks << (w->block_shift + WL_SECTOR_SHIFT);

		if (!(value & DWL_POISON) && !dwl_copy(bio, from, bytes))
			continue;
		DMERR_LIMIT("%pg: data of sector %llu of the origin are lost: damaged in the log",
			    w->cache->bdev, (u64)bio->bi_iter.bi_sector);
		dwl_count(w, DWL_LOST_READS, 1);
		return -EIO;
	}
	return 0;
}

/* Does the log have something at the bio's beginning? Then the bio is shortened to that, and read. */
static bool dwl_read_log(struct dwl *w, struct bio *bio, u32 *misses)
{
	u64 block = bio->bi_iter.bi_sector >> w->block_shift, end = bio_end_sector(bio) >> w->block_shift;
	struct dwl_look look = { .w = w, .number = U64_MAX };
	struct dwl_turn turn __uninitialized;
	int idx = srcu_read_lock(&w->srcu);
	u32 hits;

	hits = dwl_find_hits(&look, block, end, &turn);
	if (hits) {
		if (hits < end - block)
			dm_accept_partial_bio(bio, hits << w->block_shift);
		dwl_count(w, DWL_READ_SECTORS, hits << w->block_shift);
		dwl_count(w, DWL_READ_HIT_SECTORS, hits << w->block_shift);
		bio->bi_status = errno_to_blk_status(dwl_read_turn(w, bio, &turn));
	} else {
		*misses = dwl_find_misses(&look, block, end) << w->block_shift;
	}
	srcu_read_unlock(&w->srcu, idx);
	return hits;
}

/**
 * dwl_read() - map a read
 * @w: the target
 * @bio: positions are the origin's
 */
int dwl_read(struct dwl *w, struct bio *bio)
{
	struct dwl_bio *db = dwl_bio(bio);
	u32 misses = bio_sectors(bio);
	u64 began = dwl_now(w);

	dwl_count(w, DWL_READS, 1);
	if (atomic_long_read(&w->nr_regions) && dwl_read_log(w, bio, &misses)) {
		dwl_latency(w, DWL_PHASE_READ, began);
		bio_endio(bio);
		return DM_MAPIO_SUBMITTED;
	}
	if (misses < bio_sectors(bio))
		dm_accept_partial_bio(bio, misses);
	dwl_count(w, DWL_READ_SECTORS, misses);
	db->below = true;
	db->began = began;
	this_cpu_inc(w->stats->reads_below);
	bio_set_dev(bio, w->origin->bdev);
	return DM_MAPIO_REMAPPED;
}
