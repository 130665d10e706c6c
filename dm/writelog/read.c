// SPDX-License-Identifier: GPL-2.0-only
/*
 * Reads: logged blocks are copied from the log, other blocks are read from the origin.
 *
 * A call accepts either blocks that the log has, or blocks that it lacks. The rest of the bio comes
 * back as another bio. A read never waits here, and takes no lock. The accepted length is set before
 * anything is copied: before 6.12.117, device-mapper can't shorten a bio that was advanced.
 *
 * A block that isn't in the index at its lookup may be read from the origin at any later time. If it
 * was written back, the origin has it. A write of the block that begins now is concurrent with this
 * read.
 */
#include <linux/highmem.h>
#include <linux/uio.h>

#include "lookup.h"
#include "writelog.h"

/* Blocks that are contiguous in the log, too; or blocks of zeros. */
struct dwl_hit {
	u64 value;			/* index value of the first block */
	u32 blocks;
};

#define DWL_BATCH_HITS	16

struct dwl_batch {
	struct dwl_hit hits[DWL_BATCH_HITS];
	u32 nr;
};

/* The index value of a block; 0: the log doesn't have it. */
static u64 dwl_find_block(struct dwl_lookup *lookup, u64 block)
{
	u64 value = dwl_look_up(lookup, block);

	return value & DWL_DISCARDED ? 0 : value;
}

/* Finds the leading blocks that the log has. Returns their number. */
static u32 dwl_find_hits(struct dwl_lookup *lookup, u64 block, u64 end, struct dwl_batch *batch)
{
	struct dwl_hit *hit = NULL;
	u64 first = block, next = 0, value;

	batch->nr = 0;
	for (; block < end; block++) {
		value = dwl_find_block(lookup, block);
		if (!value)
			break;
		if (!hit || value != next) {
			if (batch->nr == DWL_BATCH_HITS)
				break;
			hit = &batch->hits[batch->nr++];
			*hit = (struct dwl_hit){ .value = value };
		}
		hit->blocks++;
		next = dwl_value_behind(value, 1 << lookup->w->block_shift);
	}
	return block - first;
}

/* Returns the number of leading blocks that the log lacks. */
static u32 dwl_find_misses(struct dwl_lookup *lookup, u64 block, u64 end)
{
	u64 first = block;

	while (block < end && !dwl_find_block(lookup, block))
		block = lookup->region ? block + 1 : min(end, (lookup->number + 1) << DWL_REGION_SHIFT);
	return block - first;
}

/* Copies from the log (NULL: zeros) to the bio, and advances the bio. */
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

/* Copies the rest of the bio, all of it in the log. */
static int dwl_read_batch(struct dwl *w, struct bio *bio, const struct dwl_batch *batch)
{
	u32 i;

	for (i = 0; i < batch->nr; i++) {
		u64 value = batch->hits[i].value;
		const u8 *from = value & DWL_ZERO ? NULL : dwl_data(w, value);
		u32 bytes = batch->hits[i].blocks << (w->block_shift + WL_SECTOR_SHIFT);

		if (!(value & DWL_POISON) && !dwl_copy(bio, from, bytes))
			continue;
		DMERR_LIMIT("%pg: data of sector %llu of the origin are lost: damaged in the log",
			    w->log->bdev, (u64)bio->bi_iter.bi_sector);
		dwl_count(w, DWL_LOST_READS, 1);
		return -EIO;
	}
	return 0;
}

/* True if the log has the bio's first blocks: the bio is shortened to these, and read. */
static bool dwl_read_log(struct dwl *w, struct bio *bio, u32 *misses)
{
	u64 block = bio->bi_iter.bi_sector >> w->block_shift, end = bio_end_sector(bio) >> w->block_shift;
	struct dwl_lookup lookup = { .w = w, .number = U64_MAX };
	struct dwl_batch batch __uninitialized;
	int idx = srcu_read_lock(&w->srcu);
	u32 hits;

	hits = dwl_find_hits(&lookup, block, end, &batch);
	if (hits) {
		if (hits < end - block)
			dm_accept_partial_bio(bio, hits << w->block_shift);
		dwl_count(w, DWL_READ_SECTORS, hits << w->block_shift);
		dwl_count(w, DWL_READ_HIT_SECTORS, hits << w->block_shift);
		bio->bi_status = errno_to_blk_status(dwl_read_batch(w, bio, &batch));
	} else {
		*misses = dwl_find_misses(&lookup, block, end) << w->block_shift;
	}
	srcu_read_unlock(&w->srcu, idx);
	return hits;
}

/*
 * Starts the counters near the limit of 32 bits, as jiffies do: a sum in a type that is too narrow
 * fails soon.
 */
void dwl_reads_init(struct dwl *w)
{
	per_cpu_ptr(w->stats, cpumask_first(cpu_possible_mask))->reads_in_flight += S32_MAX;
	per_cpu_ptr(w->stats, cpumask_last(cpu_possible_mask))->reads_in_flight -= S32_MAX;
}

/*
 * The number of reads at the origin. A read may begin on one CPU and end on another, so only the sum
 * counts.
 */
s64 dwl_reads_in_flight(const struct dwl *w)
{
	s64 n = 0;
	int cpu;

	for_each_possible_cpu(cpu)
		n += READ_ONCE(per_cpu_ptr(w->stats, cpu)->reads_in_flight);
	return n;
}

/**
 * dwl_read() - map a read
 * @w: the target
 * @bio: positions are the origin's
 *
 * Context: Task in map.
 * Return: DM_MAPIO_SUBMITTED or DM_MAPIO_REMAPPED.
 */
int dwl_read(struct dwl *w, struct bio *bio)
{
	struct dwl_bio *db = dwl_bio_data(bio);
	u32 misses = bio_sectors(bio);
	u64 start_ns = dwl_now(w);

	dwl_count(w, DWL_READS, 1);
	if (atomic_long_read(&w->nr_regions) && dwl_read_log(w, bio, &misses)) {
		dwl_latency(w, DWL_PHASE_READ, start_ns);
		bio_endio(bio);
		return DM_MAPIO_SUBMITTED;
	}
	if (misses < bio_sectors(bio))
		dm_accept_partial_bio(bio, misses);
	dwl_count(w, DWL_READ_SECTORS, misses);
	db->at_origin = true;
	db->start_ns = start_ns;
	this_cpu_inc(w->stats->reads_in_flight);
	bio_set_dev(bio, w->origin->bdev);
	return DM_MAPIO_REMAPPED;
}
