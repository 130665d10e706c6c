// SPDX-License-Identifier: GPL-2.0-only
/*
 * The extents of a generation that must be written to the origin: blocks for which the index still
 * names this generation. The other blocks have a newer version, later in this generation or in another
 * one. Blocks that the origin refuses are left to aside.c.
 *
 * The generation's headers are read again and their checksums verified. The extents go to an array of
 * fixed size. A generation with more extents is written in several batches.
 */
#include <linux/sort.h>

#include "writeback.h"

/*
 * Adds a block to w->extents. False: there are @max extents, and the block doesn't continue the last one.
 */
bool dwl_extent_add(struct dwl *w, u64 sector, u64 value, u32 max)
{
	u32 block_sectors = 1 << w->block_shift;
	struct dwl_extent *last = w->nr_extents ? &w->extents[w->nr_extents - 1] : NULL;

	/* Merges only within an entry: the value has the entry's sequence number. */
	if (last && last->sector + last->sectors == sector &&
	    value == dwl_value_behind(last->value, last->sectors)) {
		last->sectors += block_sectors;
		return true;
	}
	if (w->nr_extents == max)
		return false;
	w->extents[w->nr_extents++] = (struct dwl_extent){ sector, value, block_sectors };
	return true;
}

/*
 * True if the flush in flight covers this version of a block. The block was written as a neighbour, so its
 * own generation need not write it again. If the flush fails, all is written again.
 */
bool dwl_in_flush(const struct dwl *w, u64 sector, u64 value)
{
	u32 from = 0, to = w->flushing ? w->nr_flushed_extents : 0;

	/* The extents are sorted, and don't overlap. */
	while (from < to) {
		u32 middle = from + (to - from) / 2;
		const struct dwl_extent *extent = &w->flushed_extents[middle];

		if (sector < extent->sector)
			to = middle;
		else if (sector >= extent->sector + extent->sectors)
			from = middle + 1;
		else
			return value == dwl_value_behind(extent->value, sector - extent->sector);
	}
	return false;
}

/* False: not all extents fit. */
static bool dwl_entry_extents(struct dwl *w, const struct wl_entry *entry)
{
	u64 block = entry->sector >> w->block_shift;
	u64 end = block + (entry->nr_sectors >> w->block_shift);
	u32 had = w->nr_extents;
	bool fits = true;
	int idx;

	idx = srcu_read_lock(&w->srcu);
	while (block < end && fits) {
		struct dwl_region *region = dwl_index_find(w, block >> DWL_REGION_SHIFT);
		u64 stop = min(end, ((block >> DWL_REGION_SHIFT) + 1) << DWL_REGION_SHIFT);

		for (; region && block < stop && fits; block++) {
			u64 value = dwl_index_value(w, entry, block);

			if (READ_ONCE(region->block[block & (DWL_REGION_BLOCKS - 1)]) == value &&
			    !(unlikely(w->aside.nr) && dwl_is_aside(w, block)) &&
			    !dwl_in_flush(w, block << w->block_shift, value))
				fits = dwl_extent_add(w, block << w->block_shift, value, w->max_extents);
		}
		if (!region)
			block = stop;
	}
	srcu_read_unlock(&w->srcu, idx);
	/* An entry is added completely or not at all, except one that alone has too many extents. */
	if (!fits && had)
		w->nr_extents = had;
	return fits;
}

static int dwl_by_sector(const void *a, const void *b)
{
	const struct dwl_extent *x = a, *y = b;

	return x->sector < y->sector ? -1 : x->sector > y->sector;
}

/**
 * dwl_extents_sort() - sort w->extents by their place on the origin
 * @w: the target
 *
 * Context: Worker. Sleeps.
 */
void dwl_extents_sort(struct dwl *w)
{
	sort(w->extents, w->nr_extents, sizeof(*w->extents), dwl_by_sector, NULL);
}

/**
 * dwl_extents_collect() - find the extents to write, sorted
 * @w: the target
 * @gen: the generation; all slots have left it
 * @cursor: where to continue; 0 at first
 *
 * The extents are in w->extents. If there are none, the generation was scanned to its end.
 *
 * Context: Worker. Sleeps.
 * Return: the number of bytes of data scanned; -EUCLEAN: a header is damaged, or entries are missing.
 */
s64 dwl_extents_collect(struct dwl *w, const struct dwl_gen *gen, struct dwl_cursor *cursor)
{
	u32 number = gen - w->gens;
	u64 seen = 0;

	w->nr_extents = 0;
	w->nr_along = 0;
	for (; cursor->chunk < w->wl.nr_chunks; cursor->chunk++, cursor->index = 0) {
		int entries = wl_chunk_read(&w->wl, number, gen->id, cursor->chunk);

		if (entries < 0)
			return entries;
		for (; cursor->index < entries; cursor->index++) {
			struct wl_entry entry;
			int err = wl_entry_read(&w->wl, number, gen->id, cursor->chunk, cursor->index,
						&entry);

			if (err)
				return err;
			if (entry.op == WL_OP_DISCARD)
				continue;
			if (!dwl_entry_extents(w, &entry))
				goto full;
			seen += entry.op == WL_OP_WRITE ? wl_entry_len(&entry) : WL_LINE;
		}
		cursor->entries += entries;
		cond_resched();
	}
	/*
	 * A chunk's word may be valid and yet name too few entries: an old word, or one cleared with a
	 * bad block.
	 */
	if (cursor->entries != atomic_read(&gen->seq))
		return -EUCLEAN;
full:
	dwl_extents_sort(w);
	return seen;
}
