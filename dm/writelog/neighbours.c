// SPDX-License-Identifier: GPL-2.0-only
/*
 * Neighbours: a batch also has blocks of younger generations that are contiguous with its own blocks on
 * the origin. They are written in the same bio now, instead of in a bio of their own later.
 *
 * A neighbour is the newest version of its block: the one that the index names. It is removed from the
 * index as the batch's own blocks are, after the flush. Its entry stays in the log until its own
 * generation is freed, after all older ones. So replay still ends with this version, unless the log has
 * a newer one, and no older version of the block outlives it in the log.
 *
 * THE RULE: a neighbour's generation is sealed. All writers have left a sealed generation, and all older
 * ones. So each version up to the neighbour's order is in the index. In the current generation, a writer
 * with an earlier order may not have reached the index yet. If the worker removed the block's later
 * version from the index, the index would take the earlier version, and replay the later one. With
 * FB_BREAK_SEALED the rule is broken, and tests/vm/test_writelog_order.py fails.
 *
 * A failed batch is repeated without neighbours (writeback.c). So damage in a younger generation, and
 * blocks of it that the origin refuses, don't delay an older generation.
 */
#include "lookup.h"
#include "writeback.h"

/* Maximum bytes of neighbours on one side of a block: a bio of this size gains little by more. */
#define DWL_SIDE_BYTES	SZ_32K

#ifdef FB_BREAK_SEALED		/* a fault on purpose: neighbours from generations with writers */
#define FB_BREAK_NEIGHBOURS	1
#else
#define FB_BREAK_NEIGHBOURS	0
#endif

/* A search beside the batch's own extents. */
struct dwl_neighbours {
	struct dwl *w;
	const struct dwl_gen *gen;	/* being written back */
	struct dwl_lookup lookup;
	u64 max_blocks;			/* DWL_SIDE_BYTES in blocks */
};

/* True if the worker may write this version before its generation's turn. */
static bool dwl_may_go_along(const struct dwl_neighbours *n, u64 value)
{
	const struct dwl_gen *gen;

	if (!value || value & (DWL_ZERO | DWL_POISON | DWL_DISCARDED))
		return false;
	gen = dwl_gen_of(n->w, value);
	/* Only the worker changes these two while the index names the generation. */
	return gen != n->gen && !gen->written && (gen->sealed || FB_BREAK_NEIGHBOURS);
}

/* The index value of a block that may go along; 0: it may not. Context: In w->srcu. */
static u64 dwl_neighbour(struct dwl_neighbours *n, u64 block)
{
	u64 value = dwl_look_up(&n->lookup, block);

	if (!dwl_may_go_along(n, value) || dwl_in_flush(n->w, block << n->w->block_shift, value))
		return 0;
	return value;
}

/* Adds the blocks from @block that may go along, up to the first that may not. Returns its number. */
static u64 dwl_add_behind(struct dwl_neighbours *n, u64 block, u64 stop)
{
	struct dwl *w = n->w;

	for (; block < stop; block++) {
		u64 value = dwl_neighbour(n, block);

		if (!value || !dwl_extent_add(w, block << w->block_shift, value, 2 * w->max_extents))
			break;
	}
	return block;
}

/* Adds the blocks before @block that may go along, back to the first that may not, or to @start. */
static void dwl_add_before(struct dwl_neighbours *n, u64 start, u64 block)
{
	u64 from = block;

	while (from > start && dwl_neighbour(n, from - 1))
		from--;
	dwl_add_behind(n, from, block);
}

/*
 * Adds the neighbours behind block @start, which follows @had blocks of the generation, and those before
 * block @stop (0: the generation has no more blocks).
 */
static void dwl_add_gap(struct dwl_neighbours *n, u64 start, u64 had, u64 stop)
{
	u64 max_behind = had ? n->max_blocks - min(had, n->max_blocks) : 0;
	int idx = srcu_read_lock(&n->w->srcu);

	/* A region that was looked up in an earlier section may be gone. */
	n->lookup = (struct dwl_lookup){ .w = n->w, .number = U64_MAX };
	start = dwl_add_behind(n, start, min(stop ?: U64_MAX, start + max_behind));
	if (stop)
		dwl_add_before(n, max_t(s64, start, (s64)(stop - n->max_blocks)), stop);
	srcu_read_unlock(&n->w->srcu, idx);
}

/**
 * dwl_neighbours_add() - add blocks of younger generations to a batch
 * @w: the target; w->extents are sorted
 * @gen: the generation that they are from
 *
 * On return w->extents are sorted, and w->nr_along of them are from other generations.
 *
 * Context: Worker. Sleeps.
 */
void dwl_neighbours_add(struct dwl *w, const struct dwl_gen *gen)
{
	struct dwl_neighbours n = {
		.w = w, .gen = gen,
		.max_blocks = DWL_SIDE_BYTES >> (w->block_shift + WL_SECTOR_SHIFT),
	};
	u64 end = 0, had = 0;		/* of the contiguous blocks before the present extent */
	u32 own = w->nr_extents, i;

	for (i = 0; i < own; i++) {
		u64 first = w->extents[i].sector >> w->block_shift;
		u64 blocks = w->extents[i].sectors >> w->block_shift;

		if (first != end) {
			dwl_add_gap(&n, end, had, first);
			had = 0;
		}
		had += blocks;
		end = first + blocks;
		cond_resched();
	}
	if (own)
		dwl_add_gap(&n, end, had, 0);
	w->nr_along = w->nr_extents - own;
	if (w->nr_along)
		dwl_extents_sort(w);
}

/**
 * dwl_neighbours_written() - note what was written before its generation's turn
 * @w: the target; w->extents were written
 * @gen: the generation that the batch is from
 *
 * Context: Worker.
 */
void dwl_neighbours_written(struct dwl *w, const struct dwl_gen *gen)
{
	u32 i;

	for (i = 0; i < w->nr_extents && w->nr_along; i++) {
		const struct dwl_extent *extent = &w->extents[i];
		struct dwl_gen *other = dwl_gen_of(w, extent->value);

		if (other == gen)
			continue;
		other->along += (u64)extent->sectors << WL_SECTOR_SHIFT;
		dwl_count(w, DWL_ALONG_SECTORS, extent->sectors);
	}
}
