// SPDX-License-Identifier: GPL-2.0-only
/*
 * The index: where the newest version of each block is that the log holds.
 *
 * A hash table, of fixed size, of regions of 32 blocks. Look-ups take no lock
 * (srcu); a store takes that of the region. A region that a writer will store
 * to is pinned, and so exists, before its data are appended: no write fails, or
 * waits for memory, once it is durable. A region without blocks or pins goes.
 *
 * A region is taken out of its bucket under its lock, so who finds it dead
 * under the lock looks again and does not find it. Its memory is freed after
 * srcu's grace period.
 */
#include <linux/hash.h>
#include <linux/rculist.h>
#include <linux/vmalloc.h>

#include "writelog.h"

#define DWL_RESERVED_REGIONS	(8 * DWL_PORTION_REGIONS)

static struct kmem_cache *dwl_region_cache;
static mempool_t *dwl_region_pool;	/* a writer can go on when memory is short */

int dwl_index_module_init(void)
{
	dwl_region_cache = KMEM_CACHE(dwl_region, 0);
	if (!dwl_region_cache)
		return -ENOMEM;
	dwl_region_pool = mempool_create_slab_pool(DWL_RESERVED_REGIONS, dwl_region_cache);
	if (!dwl_region_pool) {
		kmem_cache_destroy(dwl_region_cache);
		return -ENOMEM;
	}
	return 0;
}

void dwl_index_module_exit(void)
{
	mempool_destroy(dwl_region_pool);
	kmem_cache_destroy(dwl_region_cache);
}

/* As many buckets as the log holds regions that are full. */
int dwl_index_init(struct dwl *w)
{
	u64 region_bytes = (u64)DWL_REGION_BLOCKS << (w->block_shift + WL_SECTOR_SHIFT);
	u64 log_bytes = w->gen_bytes * w->wl.nr_gens;
	u32 i;

	w->index.bits = clamp(ilog2(div64_u64(log_bytes, region_bytes) | 1) + 1, 8, 28);
	w->index.buckets = kvcalloc(1UL << w->index.bits, sizeof(*w->index.buckets), GFP_KERNEL);
	w->index.locks = kvcalloc(DWL_BUCKET_LOCKS, sizeof(*w->index.locks), GFP_KERNEL);
	if (!w->index.buckets || !w->index.locks)
		return -ENOMEM;
	for (i = 0; i < DWL_BUCKET_LOCKS; i++)
		spin_lock_init(&w->index.locks[i]);
	w->max_regions = log_bytes / 2048;
	return 0;
}

static void dwl_region_free(struct rcu_head *rcu)
{
	mempool_free(container_of(rcu, struct dwl_region, rcu), dwl_region_pool);
}

/* Nobody uses the index any more. */
void dwl_index_destroy(struct dwl *w)
{
	u64 i;

	for (i = 0; w->index.buckets && i < 1UL << w->index.bits; i++) {
		struct dwl_region *region;
		struct hlist_node *next;

		hlist_for_each_entry_safe(region, next, &w->index.buckets[i], node)
			mempool_free(region, dwl_region_pool);
	}
	kvfree(w->index.buckets);
	kvfree(w->index.locks);
	w->index.buckets = NULL;
	w->index.locks = NULL;
	srcu_barrier(&w->srcu);		/* of regions taken out before */
}

static struct hlist_head *dwl_bucket(const struct dwl *w, u64 number)
{
	return &w->index.buckets[hash_64(number, w->index.bits)];
}

static spinlock_t *dwl_bucket_lock(const struct dwl *w, u64 number)
{
	return &w->index.locks[hash_64(number, w->index.bits) % DWL_BUCKET_LOCKS];
}

/* Caller is inside srcu. */
struct dwl_region *dwl_index_find(const struct dwl *w, u64 number)
{
	struct dwl_region *region;

	hlist_for_each_entry_srcu(region, dwl_bucket(w, number), node, srcu_read_lock_held(&w->srcu))
		if (region->number == number)
			return region;
	return NULL;
}

/* -EAGAIN: somebody else just has; NULL: no memory. */
static struct dwl_region *dwl_region_add(struct dwl *w, u64 number, bool nowait)
{
	struct hlist_head *bucket = dwl_bucket(w, number);
	struct dwl_region *region, *other;
	long nr;

	region = mempool_alloc(dwl_region_pool, nowait ? GFP_NOWAIT : GFP_NOIO);
	if (!region)
		return NULL;
	memset(region, 0, sizeof(*region));
	spin_lock_init(&region->lock);
	region->number = number;
	region->pins = 1;
	/* Before anybody can find it: who sees that there is no region looks for none. */
	nr = atomic_long_inc_return(&w->nr_regions);
	spin_lock(dwl_bucket_lock(w, number));
	hlist_for_each_entry(other, bucket, node)
		if (other->number == number)
			break;
	if (!other)
		hlist_add_head_rcu(&region->node, bucket);
	spin_unlock(dwl_bucket_lock(w, number));
	if (other) {
		atomic_long_dec(&w->nr_regions);
		mempool_free(region, dwl_region_pool);
		return ERR_PTR(-EAGAIN);
	}
	if (nr >= w->max_regions)
		dwl_space_update(w);
	return region;
}

/*
 * Unlocks the region. If it has no use any more it goes: out of its bucket
 * while the lock is held, given back when it no longer is.
 */
static void dwl_region_unlock(struct dwl *w, struct dwl_region *region)
	__releases(&region->lock)
{
	bool goes = !region->live && !region->pins && !region->dead;

	if (likely(!goes)) {
		spin_unlock(&region->lock);
		return;
	}
	region->dead = true;
	spin_lock(dwl_bucket_lock(w, region->number));
	hlist_del_rcu(&region->node);
	spin_unlock(dwl_bucket_lock(w, region->number));
	spin_unlock(&region->lock);
	atomic_long_dec(&w->nr_regions);
	call_srcu(&w->srcu, &region->rcu, dwl_region_free);
}

/**
 * dwl_index_pin() - have a region ready to store to
 * @w: the target
 * @number: of the region
 * @nowait: don't wait for memory
 *
 * Return: the region; NULL: it would have to wait.
 */
struct dwl_region *dwl_index_pin(struct dwl *w, u64 number, bool nowait)
{
	struct dwl_region *region;
	int idx;

	for (;;) {
		idx = srcu_read_lock(&w->srcu);
		region = dwl_index_find(w, number);
		if (region) {
			bool dead;

			spin_lock(&region->lock);
			dead = region->dead;
			if (!dead)
				region->pins++;
			spin_unlock(&region->lock);
			if (dead)
				region = NULL;
		}
		srcu_read_unlock(&w->srcu, idx);
		if (!region)
			region = dwl_region_add(w, number, nowait);
		if (!IS_ERR(region))
			return region;
	}
}

void dwl_index_unpin(struct dwl *w, struct dwl_region *region)
{
	spin_lock(&region->lock);
	region->pins--;
	dwl_region_unlock(w, region);
}

/* What the index holds for a block of an entry, if that is the newest. */
u64 dwl_index_value(const struct dwl *w, const struct wl_entry *entry, u64 block)
{
	u64 seq = (entry->order & WL_MAX_SEQ) << DWL_SEQ_SHIFT, at;

	if (entry->op == WL_OP_ZEROES) {
		at = w->wl.data - w->wl.base + entry->gen * w->gen_bytes +
		     (u64)entry->chunk * w->wl.chunk_size;
		return DWL_ZERO | seq | at / WL_DATA_ALIGN;
	}
	at = entry->data + (((block << w->block_shift) - entry->sector) << WL_SECTOR_SHIFT);
	return seq | at / WL_DATA_ALIGN;
}

static u64 dwl_value_order(const struct dwl *w, u64 value)
{
	if (!value || value & DWL_POISON)
		return 0;
	return wl_order(dwl_gen_of(w, value)->id, value >> DWL_SEQ_SHIFT & WL_MAX_SEQ);
}

/* Caller holds the region's lock. */
static void dwl_block_set(struct dwl_region *region, u32 i, u64 value)
{
	region->live += !!value - !!region->block[i];
	WRITE_ONCE(region->block[i], value);
}

/* The blocks from @block on, up to @stop: all in one region, whose lock the caller holds. */
static void dwl_region_store(struct dwl *w, struct dwl_region *region, const struct wl_entry *entry,
			     u64 block, u64 stop)
{
	u64 value = dwl_index_value(w, entry, block);
	u32 step = entry->op == WL_OP_ZEROES ? 0 : w->params.block_size / WL_DATA_ALIGN;

	for (; block < stop; block++, value += step) {
		u32 i = block & (DWL_REGION_BLOCKS - 1);

		if (!region->block[i] || dwl_value_order(w, region->block[i]) < entry->order)
			dwl_block_set(region, i, value);
	}
}

/**
 * dwl_index_store() - an entry is durable: readers may find it
 * @w: the target
 * @regions: the regions of the portion that it is in, pinned; NULL when they
 *	     no longer are
 * @first_region: number of the first
 * @unpin_to: end of the portion; regions with nothing between the entry and this
 *	      are unpinned; 0: none is
 * @entry: a write or zeros
 */
void dwl_index_store(struct dwl *w, struct dwl_region **regions, u64 first_region, u64 unpin_to,
		     const struct wl_entry *entry)
{
	u64 block = entry->sector >> w->block_shift;
	u64 end = block + (entry->nr_sectors >> w->block_shift);

	while (block < end) {
		u64 number = block >> DWL_REGION_SHIFT;
		u64 region_end = (number + 1) << DWL_REGION_SHIFT, stop = min(end, region_end);
		struct dwl_region *region = regions[number - first_region];

		spin_lock(&region->lock);
		dwl_region_store(w, region, entry, block, stop);
		if (unpin_to && (stop == region_end || stop << w->block_shift == unpin_to)) {
			regions[number - first_region] = NULL;
			region->pins--;
		}
		dwl_region_unlock(w, region);
		block = stop;
	}
}

/* At replay: what the newest version of a block was is lost. */
void dwl_index_poison(struct dwl *w, struct dwl_region *region, u32 block, u64 order)
{
	spin_lock(&region->lock);
	if (dwl_value_order(w, region->block[block]) < order)
		dwl_block_set(region, block, DWL_POISON);
	spin_unlock(&region->lock);
}

/* Calls @change for each block of the range that is in the index. */
static void dwl_index_for_range(struct dwl *w, u64 sector, u64 sectors,
				bool (*gone)(struct dwl *w, u64 value, u64 block, const void *arg),
				const void *arg)
{
	u64 block = sector >> w->block_shift;
	u64 end = block + (sectors >> w->block_shift);
	int idx = srcu_read_lock(&w->srcu);

	while (block < end && atomic_long_read(&w->nr_regions)) {
		u64 number = block >> DWL_REGION_SHIFT;
		u64 stop = min(end, (number + 1) << DWL_REGION_SHIFT);
		struct dwl_region *region = dwl_index_find(w, number);

		if (!region) {
			block = stop;
			cond_resched();
			continue;
		}
		spin_lock(&region->lock);
		for (; block < stop; block++) {
			u32 i = block & (DWL_REGION_BLOCKS - 1);

			if (region->block[i] && gone(w, region->block[i], block, arg))
				dwl_block_set(region, i, 0);
		}
		dwl_region_unlock(w, region);
	}
	srcu_read_unlock(&w->srcu, idx);
}

static bool dwl_is_older(struct dwl *w, u64 value, u64 block, const void *entry)
{
	return dwl_value_order(w, value) < ((const struct wl_entry *)entry)->order;
}

/* A discard is durable: what the log holds of the range counts no more. */
void dwl_index_drop(struct dwl *w, const struct wl_entry *entry)
{
	dwl_index_for_range(w, entry->sector, entry->nr_sectors, dwl_is_older, entry);
}

static bool dwl_is_of_piece(struct dwl *w, u64 value, u64 block, const void *arg)
{
	const struct dwl_piece *piece = arg;
	u64 offset = (block << w->block_shift) - piece->sector;

	if (piece->value & DWL_ZERO)
		return value == piece->value;
	return value == piece->value + (offset << WL_SECTOR_SHIFT) / WL_DATA_ALIGN;
}

/* A piece is durable on the origin: what of it is still the newest is there. */
void dwl_index_clear(struct dwl *w, const struct dwl_piece *piece)
{
	dwl_index_for_range(w, piece->sector, piece->sectors, dwl_is_of_piece, piece);
}
