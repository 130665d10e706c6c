// SPDX-License-Identifier: GPL-2.0-only
/*
 * The index: where the log holds the newest version of each block.
 *
 * The index is a hash table of fixed size, of regions of 32 blocks. A lookup takes no lock (srcu); a
 * store takes the region's lock. A writer gets a reference to each region it will store to before its
 * data is appended. So no write fails, or waits for memory, once it is durable. A region without blocks
 * and references is freed.
 *
 * A writer that gets no memory puts all its references, waits until no other writer uses the reserve,
 * and takes regions from the reserve. The reserve is larger than the need of one writer. If even the
 * reserve is empty, writeback helps: it needs no memory, and it empties regions that have no
 * references.
 *
 * A discard stores nothing. But a writer with a reference may have an older sequence number than the
 * discard, and store later. So each discarded block of a region with references keeps the discard's
 * order until the last reference is put.
 *
 * A region is removed from its bucket under the region's lock. A task that finds the region dead under
 * the lock looks again, and doesn't find it. The memory is freed after srcu's grace period.
 */
#include <linux/hash.h>
#include <linux/rculist.h>
#include <linux/vmalloc.h>

#include "space.h"
#include "writelog.h"

#define DWL_RESERVED_REGIONS	(2 * DWL_SEGMENT_REGIONS)
/* Maximum size of the index, in percent of the machine's memory. */
#define DWL_INDEX_PERCENT	12

#define DWL_BUCKET_LOCKS	256

/* In a cache line of its own: each writer that adds a region takes one. */
struct dwl_bucket_lock {
	spinlock_t lock;	/* of many buckets */
} ____cacheline_aligned_in_smp;

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

/* There are as many buckets as full regions fit in the log. */
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
		spin_lock_init(&w->index.locks[i].lock);
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

/* Frees the index, which has no users any more. */
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
	srcu_barrier(&w->srcu);		/* for regions removed before */
	mempool_exit(&w->index.reserve);
}

static struct hlist_head *dwl_bucket(const struct dwl *w, u64 number)
{
	return &w->index.buckets[hash_64(number, w->index.bits)];
}

static spinlock_t *dwl_bucket_lock(const struct dwl *w, u64 number)
{
	return &w->index.locks[hash_64(number, w->index.bits) % DWL_BUCKET_LOCKS].lock;
}

/* Context: In w->srcu. */
struct dwl_region *dwl_index_find(const struct dwl *w, u64 number)
{
	struct dwl_region *region;

	hlist_for_each_entry_srcu(region, dwl_bucket(w, number), node, srcu_read_lock_held(&w->srcu))
		if (region->number == number)
			return region;
	return NULL;
}

/*
 * Adds a region. ERR_PTR(-EAGAIN): another task has just added it. NULL: no memory. With GFP_NOIO the
 * memory comes from the reserve, which may sleep.
 */
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
	region->refs = 1;
	/* Before the region can be found: a reader that sees 0 regions doesn't look for one. */
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
	/* Writers that are throttled already don't take the lock that they share. */
	if (nr >= w->max_regions && !READ_ONCE(w->space.throttled))
		dwl_space_update(w);
	return region;
}

/* Context: Under the region's lock. */
static void dwl_block_set(struct dwl_region *region, u32 i, u64 value)
{
	u64 was = region->block[i];

	lockdep_assert_held(&region->lock);
	region->live += !!value - !!was;
	region->discarded += !!(value & DWL_DISCARDED) - !!(was & DWL_DISCARDED);
	WRITE_ONCE(region->block[i], value);
}

/* Clears the discarded blocks: the region has no references, so no writer will store an older version. */
static void dwl_region_clear_discards(struct dwl_region *region)
{
	u32 i;

	lockdep_assert_held(&region->lock);
	for (i = 0; region->discarded; i++)
		if (region->block[i] & DWL_DISCARDED)
			dwl_block_set(region, i, 0);
}

/*
 * Unlocks the region. A region without blocks and references is removed from its bucket under the lock,
 * and freed after that.
 */
static void dwl_region_unlock(struct dwl *w, struct dwl_region *region)
	__releases(&region->lock)
{
	bool unused;

	lockdep_assert_held(&region->lock);
	if (!region->refs)
		dwl_region_clear_discards(region);
	unused = !region->live && !region->refs && !region->dead;
	if (likely(!unused)) {
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
 * dwl_region_get() - get a reference to a region, for a later store
 * @w: the target
 * @number: of the region
 * @gfp: flags of an allocation that may fail, or GFP_NOIO: from the reserve, without failing
 *
 * Context: Task, no spinlocks held. Sleeps unless @gfp says otherwise.
 * Return: the region; NULL: there is no memory.
 */
struct dwl_region *dwl_region_get(struct dwl *w, u64 number, gfp_t gfp)
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
				region->refs++;
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

void dwl_region_put(struct dwl *w, struct dwl_region *region)
{
	spin_lock(&region->lock);
	region->refs--;
	dwl_region_unlock(w, region);
}

/* The index value of an entry's block. */
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

/* Stores the blocks from @block up to @stop, all of one region. Context: Under the region's lock. */
static void dwl_region_store(struct dwl *w, struct dwl_region *region, const struct wl_entry *entry,
			     u64 block, u64 stop)
{
	u64 value = dwl_index_value(w, entry, block);
	u32 step = entry->op == WL_OP_ZEROES ? 0 : w->params.block_size / WL_DATA_ALIGN;

	lockdep_assert_held(&region->lock);
	for (; block < stop; block++, value += step) {
		u32 i = block & (DWL_REGION_BLOCKS - 1);

		if (!region->block[i] || dwl_value_order(w, region->block[i]) < entry->order)
			dwl_block_set(region, i, value);
	}
}

/**
 * dwl_index_store() - let readers find a durable entry
 * @w: the target
 * @regions: regions of the entry's segment, with references; NULL where the reference was put
 * @first_region: number of the first region
 * @put_to: the segment's end; regions with no sectors between the entry's end and this are put; 0: none
 * @entry: a write or zeroes
 *
 * Context: Task that holds a slot, or replay.
 */
void dwl_index_store(struct dwl *w, struct dwl_region **regions, u64 first_region, u64 put_to,
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
		if (put_to && (stop == region_end || stop << w->block_shift == put_to)) {
			regions[number - first_region] = NULL;
			region->refs--;
		}
		dwl_region_unlock(w, region);
		block = stop;
	}
}

/* For replay: marks a block whose newest version is lost. */
void dwl_index_poison(struct dwl *w, struct dwl_region *region, u32 block, u64 order)
{
	spin_lock(&region->lock);
	if (dwl_value_order(w, region->block[block]) < order)
		dwl_block_set(region, block, DWL_POISON);
	spin_unlock(&region->lock);
}

/* Returns the new value of a block, given the present one. Context: Under the region's lock. */
typedef u64 (*dwl_change_fn)(struct dwl *w, const struct dwl_region *region, u64 value, u64 block,
			     const void *arg);

/* Calls @change for each block in the range whose region exists. */
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

	lockdep_assert_held(&region->lock);
	if (value && dwl_value_order(w, value) >= entry->order)
		return value;
	return region->refs ? DWL_DISCARDED | (entry->order & DWL_DISCARD_ORDER) : 0;
}

/* A discard is durable: earlier versions in the range no longer count. */
void dwl_index_discard(struct dwl *w, const struct wl_entry *entry)
{
	dwl_index_for_range(w, entry->sector, entry->nr_sectors, dwl_after_discard, entry);
}

/* The index value of an extent's block. */
static u64 dwl_extent_value(const struct dwl *w, const struct dwl_extent *extent, u64 block)
{
	return dwl_value_behind(extent->value, (block << w->block_shift) - extent->sector);
}

static u64 dwl_after_writeback(struct dwl *w, const struct dwl_region *region, u64 value, u64 block,
			       const void *extent)
{
	lockdep_assert_held(&region->lock);
	return value == dwl_extent_value(w, extent, block) ? 0 : value;
}

/* An extent is durable on the origin: the index forgets those blocks that have no newer version. */
void dwl_index_clear(struct dwl *w, const struct dwl_extent *extent)
{
	dwl_index_for_range(w, extent->sector, extent->sectors, dwl_after_writeback, extent);
}

static u64 dwl_after_loss(struct dwl *w, const struct dwl_region *region, u64 value, u64 block,
			  const void *extent)
{
	lockdep_assert_held(&region->lock);
	return value == dwl_extent_value(w, extent, block) ? DWL_POISON : value;
}

/* An extent is unreadable: marks those blocks as lost that have no newer version. */
void dwl_index_mark_lost(struct dwl *w, const struct dwl_extent *extent)
{
	dwl_index_for_range(w, extent->sector, extent->sectors, dwl_after_loss, extent);
}
