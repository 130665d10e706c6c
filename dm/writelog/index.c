// SPDX-License-Identifier: GPL-2.0-only
/*
 * The index: where the newest version of each block is that the log holds.
 *
 * A hash table, of fixed size, of regions of 32 blocks. Look-ups take no lock
 * (srcu); a store takes that of the region. A region that a writer will store
 * to is pinned, and so exists, before its data are appended: no write fails, or
 * waits for memory, once it is durable. A region without blocks or pins goes.
 *
 * A writer who gets no memory gives all his pins up, waits until he is the only one,
 * and takes from a reserve that is larger than what he needs. What that lacks, too,
 * writeback brings, which needs no memory: it empties regions that nobody has pinned.
 *
 * A discard stores nothing. But who has pinned a region may have an older sequence
 * number, and store later: for him, each block of it that is discarded meanwhile
 * keeps the discard's order until nobody has it pinned.
 *
 * A region is taken out of its bucket under its lock, so who finds it dead
 * under the lock looks again and does not find it. Its memory is freed after
 * srcu's grace period.
 */
#include <linux/hash.h>
#include <linux/rculist.h>
#include <linux/vmalloc.h>

#include "writelog.h"

#define DWL_RESERVED_REGIONS	(2 * DWL_PORTION_REGIONS)
/* Of the machine's memory, in percent: what the index may grow to. */
#define DWL_INDEX_PERCENT	12

static struct kmem_cache *dwl_region_cache;

int dwl_index_module_init(void)
{
	dwl_region_cache = KMEM_CACHE(dwl_region, 0);
	return dwl_region_cache ? 0 : -ENOMEM;
}

void dwl_index_module_exit(void)
{
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
	w->max_regions = min(log_bytes / 2048,
			     mult_frac((u64)totalram_pages() << PAGE_SHIFT, DWL_INDEX_PERCENT, 100) /
			     sizeof(struct dwl_region));
	mutex_init(&w->index.short_of_memory);
	return mempool_init_slab_pool(&w->index.reserve, DWL_RESERVED_REGIONS, dwl_region_cache);
}

static void dwl_region_free(struct rcu_head *rcu)
{
	struct dwl_region *region = container_of(rcu, struct dwl_region, rcu);

	mempool_free(region, region->pool);
}

/* Nobody uses the index any more. */
void dwl_index_destroy(struct dwl *w)
{
	u64 i;

	for (i = 0; w->index.buckets && i < 1UL << w->index.bits; i++) {
		struct dwl_region *region;
		struct hlist_node *next;

		if (!(i & 0xffff))
			cond_resched();
		hlist_for_each_entry_safe(region, next, &w->index.buckets[i], node)
			mempool_free(region, &w->index.reserve);
	}
	kvfree(w->index.buckets);
	kvfree(w->index.locks);
	w->index.buckets = NULL;
	w->index.locks = NULL;
	atomic_long_set(&w->nr_regions, 0);
	srcu_barrier(&w->srcu);		/* of regions taken out before */
	mempool_exit(&w->index.reserve);
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

/* -EAGAIN: somebody else just has; NULL: no memory. From the reserve, who may wait for it. */
static struct dwl_region *dwl_region_add(struct dwl *w, u64 number, gfp_t gfp)
{
	struct hlist_head *bucket = dwl_bucket(w, number);
	struct dwl_region *region, *other;
	long nr;

	if (gfp & (__GFP_NORETRY | __GFP_RETRY_MAYFAIL))
		region = kmem_cache_alloc(dwl_region_cache, gfp);
	else
		region = mempool_alloc(&w->index.reserve, gfp);
	if (!region)
		return NULL;
	memset(region, 0, sizeof(*region));
	spin_lock_init(&region->lock);
	region->number = number;
	region->pool = &w->index.reserve;
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
		mempool_free(region, &w->index.reserve);
		return ERR_PTR(-EAGAIN);
	}
	if (nr >= w->max_regions)
		dwl_space_update(w);
	return region;
}

/* Caller holds the region's lock. */
static void dwl_block_set(struct dwl_region *region, u32 i, u64 value)
{
	u64 was = region->block[i];

	region->live += !!value - !!was;
	region->discarded += !!(value & DWL_DISCARDED) - !!(was & DWL_DISCARDED);
	WRITE_ONCE(region->block[i], value);
}

/* Nobody has it pinned: nobody will store what was discarded. */
static void dwl_region_forget_discards(struct dwl_region *region)
{
	u32 i;

	for (i = 0; region->discarded; i++)
		if (region->block[i] & DWL_DISCARDED)
			dwl_block_set(region, i, 0);
}

/*
 * Unlocks the region. If it has no use any more it goes: out of its bucket
 * while the lock is held, given back when it no longer is.
 */
static void dwl_region_unlock(struct dwl *w, struct dwl_region *region)
	__releases(&region->lock)
{
	bool goes;

	if (!region->pins)
		dwl_region_forget_discards(region);
	goes = !region->live && !region->pins && !region->dead;
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
 * @gfp: how to get memory; one that may fail, or GFP_NOIO: from the reserve
 *
 * Return: the region; NULL: there is no memory.
 */
struct dwl_region *dwl_index_pin(struct dwl *w, u64 number, gfp_t gfp)
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
			region = dwl_region_add(w, number, gfp);
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
	if (value & DWL_DISCARDED)
		return value & DWL_DISCARD_ORDER;
	return wl_order(dwl_gen_of(w, value)->id, value >> DWL_SEQ_SHIFT & WL_MAX_SEQ);
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

/* What a block of a region is to be, given what it is. Called with the region's lock. */
typedef u64 (*dwl_change_fn)(struct dwl *w, const struct dwl_region *region, u64 value, u64 block,
			     const void *arg);

/* Calls @change for each block of the range whose region there is. */
static void dwl_index_for_range(struct dwl *w, u64 sector, u64 sectors, dwl_change_fn change,
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

			dwl_block_set(region, i, change(w, region, region->block[i], block, arg));
		}
		dwl_region_unlock(w, region);
	}
	srcu_read_unlock(&w->srcu, idx);
}

static u64 dwl_after_discard(struct dwl *w, const struct dwl_region *region, u64 value, u64 block,
			     const void *arg)
{
	const struct wl_entry *entry = arg;

	if (value && dwl_value_order(w, value) >= entry->order)
		return value;
	return region->pins ? DWL_DISCARDED | (entry->order & DWL_DISCARD_ORDER) : 0;
}

/* A discard is durable: what the log holds of the range counts no more. */
void dwl_index_drop(struct dwl *w, const struct wl_entry *entry)
{
	dwl_index_for_range(w, entry->sector, entry->nr_sectors, dwl_after_discard, entry);
}

/* What the index holds for a block of a piece, if that is the newest. */
static u64 dwl_piece_value(const struct dwl *w, const struct dwl_piece *piece, u64 block)
{
	return dwl_value_behind(piece->value, (block << w->block_shift) - piece->sector);
}

static u64 dwl_after_writeback(struct dwl *w, const struct dwl_region *region, u64 value, u64 block,
			       const void *piece)
{
	return value == dwl_piece_value(w, piece, block) ? 0 : value;
}

/* A piece is durable on the origin: what of it is still the newest is there. */
void dwl_index_clear(struct dwl *w, const struct dwl_piece *piece)
{
	dwl_index_for_range(w, piece->sector, piece->sectors, dwl_after_writeback, piece);
}

static u64 dwl_after_loss(struct dwl *w, const struct dwl_region *region, u64 value, u64 block,
			  const void *piece)
{
	return value == dwl_piece_value(w, piece, block) ? DWL_POISON : value;
}

/* A piece can't be read: what of it is the newest is lost. */
void dwl_index_lose(struct dwl *w, const struct dwl_piece *piece)
{
	dwl_index_for_range(w, piece->sector, piece->sectors, dwl_after_loss, piece);
}
