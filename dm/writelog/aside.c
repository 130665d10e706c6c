// SPDX-License-Identifier: GPL-2.0-only
/*
 * Blocks that the origin refuses while it takes others are set aside: their generation is written back
 * without them, and nothing waits for them.
 *
 * When a bio fails, the worker writes the bio's blocks one by one, to find which are refused. If the
 * origin refuses more than dwl_max_aside() blocks, or fails for another reason (unreachable, full), the
 * search sets no block aside. The whole generation is then retried later.
 *
 * An origin may take seconds to refuse a block. So a search ends after DWL_ASIDE_BUDGET. It sets aside
 * what it has found, and fails as the bio did: writeback is reported as failing. The next search
 * continues where that one has ended.
 *
 * A block that is set aside is known by its number. It stays so until the origin has taken a version of
 * it, or the log has no version any more. Writeback leaves such blocks out of its batches. The worker
 * writes each alone, every DWL_ASIDE_RETRY, and before the block's generation is freed. Retries end
 * after DWL_ASIDE_BUDGET, too, and the next ones begin with the next block. After a search or retries,
 * the worker does other work for at least DWL_ASIDE_PAUSE times as long before it retries.
 *
 * The data of such a block stays in the log. Generations are freed in order, the oldest first. So
 * before the worker frees the block's generation, it appends the block again, to the current
 * generation, as an ordinary write. The format doesn't mark such a copy, and replay needn't know: after
 * a crash replay finds the old copy, the new one, or both. Both have the same bytes, and the later
 * order wins.
 *
 * The new order is later than that of all writes so far. The copy must not win over a newer version of
 * the block, neither in the index nor at replay. So the worker holds all slots while it looks into the
 * index and appends. A writer takes its order while it holds a slot, and keeps the slot until the index
 * has its entry. So while the worker holds all slots, the index knows every order given so far, and
 * later writes get a later order.
 *
 * A retry writes the newest version of a block, which may be in the current generation. A writer with an
 * earlier order may not have reached the index yet (neighbours.c has the rule). So the worker waits until
 * each slot has been free once after it has read the index, and tries the version that it has read.
 *
 * Writers leave the last free generation to the worker, so the worker always has space. After opening
 * that generation, the worker frees the old one at once.
 */
#include "trace.h"
#include "writeback.h"

#define DWL_NO_BLOCK		U64_MAX
/* No write of a single block begins later than this after the search or the retries began. */
#define DWL_ASIDE_BUDGET	HZ
#define DWL_ASIDE_PAUSE		8

/* A search for blocks that the origin refuses. */
struct dwl_search {
	u64 sector, end;		/* what is left of the failed bio */
	unsigned long start;		/* in jiffies */
	bool late;			/* the budget is used up */
	u32 nr;				/* entries of w->aside.blocks, found ones included */
};

/* True if the error concerns single blocks. */
static bool dwl_is_block_error(int err)
{
	return err == -EIO || err == -ENODATA || err == -EREMOTEIO || err == -EILSEQ;
}

/* All blocks set aside fit in a fraction of a generation. */
static u32 dwl_max_aside(const struct dwl *w)
{
	return min_t(u64, DWL_MAX_ASIDE, div_u64(w->gen_bytes, 4 * w->params.block_size));
}

bool dwl_is_aside(const struct dwl *w, u64 block)
{
	u32 i;

	for (i = 0; i < w->aside.nr; i++)
		if (w->aside.blocks[i].block == block)
			return true;
	return false;
}

/* The index value of a block; 0: the log has no readable version. */
static u64 dwl_aside_value(struct dwl *w, u64 block)
{
	int idx = srcu_read_lock(&w->srcu);
	struct dwl_region *region = dwl_index_find(w, block >> DWL_REGION_SHIFT);
	u64 value = region ? READ_ONCE(region->block[block & (DWL_REGION_BLOCKS - 1)]) : 0;

	srcu_read_unlock(&w->srcu, idx);
	return value & (DWL_DISCARDED | DWL_POISON) ? 0 : value;
}

/* True if the generation holds the newest version of the block. */
static bool dwl_aside_is_in(struct dwl *w, u64 block, const struct dwl_gen *gen)
{
	u64 value = dwl_aside_value(w, block);

	return value && dwl_gen_of(w, value) == gen;
}

/*
 * True if the generation holds blocks set aside. The generation is closed, so it gets no more of them.
 * Context: Worker.
 */
bool dwl_gen_has_aside(struct dwl *w, const struct dwl_gen *gen)
{
	u32 i;

	for (i = 0; i < w->aside.nr; i++)
		if (dwl_aside_is_in(w, w->aside.blocks[i].block, gen))
			return true;
	return false;
}

static struct dwl_extent dwl_aside_extent(const struct dwl *w, u64 block, u64 value)
{
	return (struct dwl_extent){ block << w->block_shift, value, 1 << w->block_shift };
}

/* Writes one block to the origin, as a batch of its own. */
static int dwl_try_block(struct dwl *w, u64 block, u64 value)
{
	struct dwl_extent extent = dwl_aside_extent(w, block, value), *extents = w->extents;
	u32 nr_extents = w->nr_extents;
	int err;

	w->extents = &extent;
	w->nr_extents = 1;
	w->batch_credit = 0;
	err = dwl_origin_write_extents(w, true);
	w->extents = extents;
	w->nr_extents = nr_extents;
	return err;
}

static bool dwl_aside_late(unsigned long start)
{
	return time_after(jiffies, start + DWL_ASIDE_BUDGET);
}

/* No retries for a while. Those that have just ended, or the search, began at @start. */
static void dwl_aside_pause(struct dwl *w, unsigned long start)
{
	w->aside.pause_end = jiffies + DWL_ASIDE_PAUSE * (jiffies - start);
}

/* Tries the extent's blocks that are in the failed bio. Adds refused ones at w->aside.blocks[s->nr]. */
static int dwl_find_in_extent(struct dwl *w, const struct dwl_extent *extent, struct dwl_search *s)
{
	u32 step = 1 << w->block_shift;
	u64 at;

	for (at = extent->sector; at < extent->sector + extent->sectors && !s->late; at += step) {
		int err;

		if (at + step <= s->sector || at >= s->end)
			continue;
		err = dwl_try_block(w, at >> w->block_shift,
				    dwl_value_behind(extent->value, at - extent->sector));
		if (err && (!dwl_is_block_error(err) || s->nr == dwl_max_aside(w)))
			return err;
		if (err)
			w->aside.blocks[s->nr++].block = at >> w->block_shift;
		s->late = dwl_aside_late(s->start);
		if (s->late)
			w->aside.search_from = at + step;
	}
	return 0;
}

/* Sets aside the first @nr entries of w->aside.blocks. */
static void dwl_aside_set(struct dwl *w, u32 nr, int err)
{
	u32 i;

	for (i = w->aside.nr; i < nr; i++)
		DMERR_LIMIT("%pg: origin %pg refuses sector %llu: error %d; its data stay in the log, the rest is written back",
			    w->log->bdev, w->origin->bdev, w->aside.blocks[i].block << w->block_shift, err);
	if (!w->aside.nr)
		w->aside.next = jiffies + DWL_ASIDE_RETRY;
	WRITE_ONCE(w->aside.nr, nr);
	dwl_count(w, DWL_ORIGIN_ERRORS, 1);
	dm_table_event(w->ti->table);
}

/**
 * dwl_aside_find() - after a failed batch, set aside the blocks that the origin refuses
 * @w: the target; w->extents are the batch
 * @err: the batch's error
 *
 * Context: Worker. Sleeps.
 * Return: 0: blocks were set aside, and the generation is to be collected again without them. Negative
 * errno: no block is refused, or too many, or the error is another one. Or the search took too long:
 * those found were set aside.
 */
int dwl_aside_find(struct dwl *w, int err)
{
	struct dwl_search s = {
		.sector = w->failed_sector, .end = w->failed_sector + w->failed_sectors,
		.start = jiffies, .nr = w->aside.nr,
	};
	int other = 0;
	u32 i;

	if (!dwl_is_block_error(err))
		return err;
	if (w->aside.search_from < s.end)
		s.sector = max(s.sector, w->aside.search_from);
	for (i = 0; i < w->nr_extents && !other && !s.late; i++) {
		other = dwl_find_in_extent(w, &w->extents[i], &s);
		cond_resched();
	}
	dwl_aside_pause(w, s.start);
	if (!s.late)
		w->aside.search_from = 0;
	if (other)
		return other;
	if (s.nr == w->aside.nr)
		return err;
	dwl_aside_set(w, s.nr, err);
	return s.late ? err : 0;
}

/* Removes entries that are DWL_NO_BLOCK. */
static void dwl_aside_compact(struct dwl *w)
{
	u32 i, nr = 0;

	for (i = 0; i < w->aside.nr; i++)
		if (w->aside.blocks[i].block != DWL_NO_BLOCK)
			w->aside.blocks[nr++] = w->aside.blocks[i];
	if (nr == w->aside.nr)
		return;
	WRITE_ONCE(w->aside.nr, nr);
	if (nr)
		return;
	DMINFO("%pg: nothing is left that origin %pg has refused", w->log->bdev, w->origin->bdev);
	dm_table_event(w->ti->table);
}

/* True if all are to be retried. Removes blocks that the log no longer has, discarded or damaged ones. */
bool dwl_aside_due(struct dwl *w)
{
	u32 i;

	for (i = 0; i < w->aside.nr; i++)
		if (!dwl_aside_value(w, w->aside.blocks[i].block))
			w->aside.blocks[i].block = DWL_NO_BLOCK;
	dwl_aside_compact(w);
	return w->aside.nr && time_after_eq(jiffies, w->aside.next) &&
	       time_after_eq(jiffies, w->aside.pause_end);
}

/* Flushes the origin. The blocks written before are durable then, and removed from the index. */
static int dwl_aside_written(struct dwl *w)
{
	u32 i;
	int err;

	dwl_origin_flush_begin(w);
	err = dwl_origin_flush_end(w);
	for (i = 0; i < w->aside.nr && !err; i++) {
		struct dwl_aside_block *aside = &w->aside.blocks[i];
		struct dwl_extent extent = dwl_aside_extent(w, aside->block, aside->written);

		if (!aside->written)
			continue;
		dwl_index_clear(w, &extent);
		aside->block = DWL_NO_BLOCK;
	}
	dwl_aside_compact(w);
	return err;
}

/* Writes a block again. Returns the version that the origin has taken; 0: none. */
static u64 dwl_aside_try_block(struct dwl *w, u64 block, u64 value, int *err)
{
	*err = dwl_try_block(w, block, value);
	if (!*err)
		return value;
	if (*err != -EINTR)
		dwl_count_error(w, *err);
	return 0;
}

/*
 * Notes the newest version of each block, as the one to be tried. On return the index has all versions
 * of the block up to that one.
 */
static void dwl_aside_choose(struct dwl *w)
{
	u32 i;

	for (i = 0; i < w->aside.nr; i++) {
		struct dwl_aside_block *aside = &w->aside.blocks[i];

		aside->version = dwl_aside_value(w, aside->block);
		aside->written = 0;
	}
	dwl_slots_wait(w, NULL);
}

/*
 * Retries the blocks in a generation, or all (NULL), as far as the time allows. Nothing else is in
 * flight to the origin.
 */
static int dwl_aside_try(struct dwl *w, const struct dwl_gen *gen)
{
	u32 i, nr = w->aside.nr, first = w->aside.retry_from;
	unsigned long start = jiffies;
	bool any = false;
	int err = 0;

	dwl_aside_choose(w);
	for (i = 0; i < nr && err != -EINTR && !dwl_aside_late(start); i++) {
		struct dwl_aside_block *aside = &w->aside.blocks[(first + i) % nr];

		if (!aside->version || (gen && dwl_gen_of(w, aside->version) != gen))
			continue;
		aside->written = dwl_aside_try_block(w, aside->block, aside->version, &err);
		any |= aside->written;
	}
	w->aside.retry_from = (first + i) % nr;
	dwl_aside_pause(w, start);
	if (err == -EINTR)
		return err;
	return any ? dwl_aside_written(w) : 0;
}

/*
 * Appends a block of an old generation again, copied through @page. -EUCLEAN: the medium has lost it;
 * -ESTALE: as before, and it was left out of the index; -EXFULL: the log has no space, which is none of
 * the origin's errors (-ENOSPC may be one). Context: The worker, with all slots held.
 */
static int dwl_move_block(struct dwl *w, u64 block, u64 value, void *page)
{
	u64 number = block >> DWL_REGION_SHIFT;
	enum wl_op op = value & DWL_ZERO ? WL_OP_ZEROES : WL_OP_WRITE;
	struct dwl_extent extent = dwl_aside_extent(w, block, value);
	u32 bytes = w->params.block_size;
	struct dwl_slot *slot = &w->slots[0];
	struct dwl_region *region;
	struct wl_entry entry;
	struct dwl_gen *gen;
	int space;

	lockdep_assert_held(&w->aside.lock);
	lockdep_assert_held(&slot->lock);
	if (op == WL_OP_WRITE && dwl_block_lost(w, &extent, page))
		return w->params.skip_damage ? -ESTALE : -EUCLEAN;
	space = dwl_slot_ready(w, slot, op, bytes, &gen, false);
	if (space < 0)
		return -EXFULL;
	/* The index has the block, so the region exists, and this needs no memory. */
	region = dwl_region_get(w, number, GFP_NOIO);
	wl_begin(&w->wl, &slot->tail, op, block << w->block_shift, 1 << w->block_shift,
		 atomic_inc_return(&gen->seq) - 1);
	if (op == WL_OP_WRITE)
		wl_write(&w->wl, &slot->tail, page, bytes);
	wl_end(&w->wl, &slot->tail, &entry);
	wl_commit(&w->wl, &slot->tail);
	trace_dwl_append(w, &entry);
	dwl_index_store(w, &region, number, 0, &entry);
	dwl_region_put(w, region);
	dwl_count(w, DWL_ENTRIES, 1);
	return 0;
}

static void dwl_lock_slots(struct dwl *w)
{
	u32 i;

	mutex_lock(&w->aside.lock);
	for (i = 0; i < w->params.slots; i++)
		mutex_lock_nest_lock(&w->slots[i].lock, &w->aside.lock);
	w->aside.moving = true;
}

static void dwl_unlock_slots(struct dwl *w)
{
	u32 i;

	w->aside.moving = false;
	for (i = 0; i < w->params.slots; i++)
		mutex_unlock(&w->slots[i].lock);
	mutex_unlock(&w->aside.lock);
}

/* Appends the generation's blocks that are set aside to the current generation. */
static int dwl_aside_move(struct dwl *w, const struct dwl_gen *gen)
{
	struct page *page = mempool_alloc(&w->bounce, GFP_NOIO);
	int err = 0;
	u32 i;

	dwl_lock_slots(w);
	for (i = 0; i < w->aside.nr && !err; i++) {
		u64 block = w->aside.blocks[i].block, value = dwl_aside_value(w, block);

		if (value && dwl_gen_of(w, value) == gen)
			err = dwl_move_block(w, block, value, page_address(page));
	}
	dwl_unlock_slots(w);
	mempool_free(page, &w->bounce);
	return err;
}

/**
 * dwl_aside_retry() - retry blocks that are set aside, and move them if a generation is to be freed
 * @w: the target
 * @gen: the oldest generation, written except for blocks set aside; may be freed after success. NULL:
 * all blocks are due for a retry
 *
 * Context: Worker, nothing in flight to the origin. Sleeps.
 * Return: 0, or a negative errno: nothing has changed, and the call is to be repeated.
 */
int dwl_aside_retry(struct dwl *w, const struct dwl_gen *gen)
{
	int err = 0;

	if (time_after_eq(jiffies, w->aside.pause_end))
		err = dwl_aside_try(w, gen);
	if (!gen)
		w->aside.next = jiffies + DWL_ASIDE_RETRY;
	else if (!err)
		err = dwl_aside_move(w, gen);
	return err;
}
