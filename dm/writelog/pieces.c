// SPDX-License-Identifier: GPL-2.0-only
/*
 * What of a generation must be written to the origin: the blocks for which the
 * index still names it. The rest has a newer version in a later generation, or
 * in this one.
 *
 * Found by reading the generation's headers again, with their checksums. The
 * pieces lie in one array of fixed size; a generation that has more is written
 * in several batches.
 */
#include <linux/sort.h>

#include "writelog.h"

static bool dwl_piece_add(struct dwl *w, u64 sector, u64 value)
{
	u32 block_sectors = 1 << w->block_shift;
	struct dwl_piece *last = w->nr_pieces ? &w->pieces[w->nr_pieces - 1] : NULL;

	/* Also within one entry only: the value has its sequence number. */
	if (last && last->sector + last->sectors == sector &&
	    value == dwl_value_behind(last->value, last->sectors)) {
		last->sectors += block_sectors;
		return true;
	}
	if (w->nr_pieces == w->max_pieces)
		return false;
	w->pieces[w->nr_pieces++] = (struct dwl_piece){ sector, value, block_sectors };
	return true;
}

/* False: there is no room for all of them. */
static bool dwl_entry_pieces(struct dwl *w, const struct wl_entry *entry)
{
	u64 block = entry->sector >> w->block_shift;
	u64 end = block + (entry->nr_sectors >> w->block_shift);
	u32 had = w->nr_pieces;
	bool fits = true;
	int idx;

	idx = srcu_read_lock(&w->srcu);
	while (block < end && fits) {
		struct dwl_region *region = dwl_index_find(w, block >> DWL_REGION_SHIFT);
		u64 stop = min(end, ((block >> DWL_REGION_SHIFT) + 1) << DWL_REGION_SHIFT);

		for (; region && block < stop && fits; block++) {
			u64 value = dwl_index_value(w, entry, block);

			if (READ_ONCE(region->block[block & (DWL_REGION_BLOCKS - 1)]) == value)
				fits = dwl_piece_add(w, block << w->block_shift, value);
		}
		if (!region)
			block = stop;
	}
	srcu_read_unlock(&w->srcu, idx);
	/* All of an entry or nothing; but one that alone has too many goes part by part. */
	if (!fits && had)
		w->nr_pieces = had;
	return fits;
}

static int dwl_by_sector(const void *a, const void *b)
{
	const struct dwl_piece *x = a, *y = b;

	return x->sector < y->sector ? -1 : x->sector > y->sector;
}

/**
 * dwl_pieces_collect() - find what must be written, sorted
 * @w: the target; the worker calls
 * @gen: all slots have left it
 * @place: where to go on; 0 at first
 *
 * Return: how many bytes of data were looked at for it; the pieces are in
 * w->pieces. When there are none, all of the generation has been seen.
 * -EUCLEAN: a header is damaged, or some entries are not to be found.
 */
s64 dwl_pieces_collect(struct dwl *w, const struct dwl_gen *gen, struct dwl_place *place)
{
	u32 number = gen - w->gens;
	u64 seen = 0;

	w->nr_pieces = 0;
	for (; place->chunk < w->wl.nr_chunks; place->chunk++, place->index = 0) {
		int entries = wl_chunk_read(&w->wl, number, gen->id, place->chunk);

		if (entries < 0)
			return entries;
		for (; place->index < entries; place->index++) {
			struct wl_entry entry;
			int err = wl_entry_read(&w->wl, number, gen->id, place->chunk, place->index, &entry);

			if (err)
				return err;
			if (entry.op == WL_OP_DISCARD)
				continue;
			if (!dwl_entry_pieces(w, &entry))
				goto full;
			seen += entry.op == WL_OP_WRITE ? wl_entry_len(&entry) : WL_LINE;
		}
		place->entries += entries;
		cond_resched();
	}
	/* A chunk's word may be whole and say too little: of an earlier life, or cleared with a bad block. */
	if (place->entries != atomic_read(&gen->seq))
		return -EUCLEAN;
full:
	sort(w->pieces, w->nr_pieces, sizeof(*w->pieces), dwl_by_sector, NULL);
	return seen;
}
