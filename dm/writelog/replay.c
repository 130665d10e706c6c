// SPDX-License-Identifier: GPL-2.0-only
/*
 * What the log holds is found again: every entry, in order, goes into the index.
 *
 * Nothing is written to the origin: the log goes on as it was. Generations that
 * were open are closed; the next gets a new identifier.
 *
 * Damage is reported to the kernel's log, each piece of it. With on_damage stop
 * (the default) the log isn't taken then; with skip all that is whole is used,
 * and blocks of which only the data are damaged can't be read until they are
 * written again.
 */
#include <linux/list_sort.h>
#include <linux/mm.h>

#include "writelog.h"

static int dwl_by_id(void *unused, const struct list_head *a, const struct list_head *b)
{
	u64 x = list_entry(a, struct dwl_gen, list)->id, y = list_entry(b, struct dwl_gen, list)->id;

	return x < y ? -1 : x > y;
}

/* What state each generation is in. */
static void dwl_replay_gens(struct dwl *w)
{
	u32 i;

	INIT_LIST_HEAD(&w->free_gens);
	INIT_LIST_HEAD(&w->closed_gens);
	w->nr_free = 0;
	for (i = 0; i < w->wl.nr_gens; i++) {
		struct dwl_gen *gen = &w->gens[i];
		struct wl_gen_info info;

		/* A damaged word, under on_damage skip: there is no telling what it held. */
		if (wl_gen_read(&w->wl, i, &info) || info.state == WL_GEN_FREE) {
			gen->state = DWL_GEN_FREE;
			list_add_tail(&gen->list, &w->free_gens);
			w->nr_free++;
			continue;
		}
		gen->id = info.id;
		gen->state = DWL_GEN_CLOSED;
		gen->sealed = true;
		list_add_tail(&gen->list, &w->closed_gens);
	}
	list_sort(NULL, &w->closed_gens, dwl_by_id);
	w->last_id = wl_next_id(&w->wl) - 1;
	w->freed_to = w->last_id;
	if (!list_empty(&w->closed_gens))
		w->freed_to = list_first_entry(&w->closed_gens, struct dwl_gen, list)->id - 1;
	w->flush_to = 0;
}

static void dwl_report(struct dwl *w, const struct wl_damage *d)
{
	static const char * const what[] = {
		[WL_BAD_GENERATION] = "generation", [WL_BAD_SUM] = "generation", [WL_BAD_CHUNK] = "chunk",
		[WL_BAD_ENTRY] = "entry", [WL_BAD_DATA] = "data of an entry",
	};

	DMERR("%pg: %s (generation %u, chunk %u, entry %u) %s", w->cache->bdev, what[d->kind], d->gen,
	      d->chunk, d->index, d->why);
	dwl_count(w, DWL_MEDIUM_ERRORS, 1);
}

/* Memory for the index, but not all: the machine that filled the log may have had more, or it is forged. */
static struct dwl_region *dwl_replay_pin(struct dwl *w, u64 number)
{
	struct dwl_region *region = NULL;

	if (atomic_long_read(&w->nr_regions) < (totalram_pages() << PAGE_SHIFT) / 2 / sizeof(*region))
		region = dwl_index_pin(w, number, GFP_NOIO | __GFP_RETRY_MAYFAIL);
	if (!region)
		DMERR("%pg: no memory for an index of more than %ld KiB", w->cache->bdev,
		      atomic_long_read(&w->nr_regions) * sizeof(*region) / SZ_1K);
	return region;
}

static int dwl_replay_poison(struct dwl *w, const struct wl_entry *entry)
{
	u64 block = entry->sector >> w->block_shift;
	u64 end = block + (entry->nr_sectors >> w->block_shift);

	for (; block < end; block++) {
		struct dwl_region *region = dwl_replay_pin(w, block >> DWL_REGION_SHIFT);

		if (!region)
			return -ENOMEM;
		dwl_index_poison(w, region, block & (DWL_REGION_BLOCKS - 1), entry->order);
		dwl_index_unpin(w, region);
	}
	return 0;
}

static int dwl_replay_store(struct dwl *w, const struct wl_entry *entry)
{
	struct wl_entry part = *entry;
	u64 end = entry->sector + entry->nr_sectors;

	/* A region at a time. dwl_index_value() goes by the entry's own beginning. */
	while (part.sector < end) {
		u32 region_sectors = DWL_REGION_BLOCKS << w->block_shift;
		u64 stop = min(end, round_down(part.sector, region_sectors) + region_sectors);
		u64 number = part.sector >> w->block_shift >> DWL_REGION_SHIFT;
		struct dwl_region *region = dwl_replay_pin(w, number);

		if (!region)
			return -ENOMEM;
		part.nr_sectors = stop - part.sector;
		dwl_index_store(w, &region, number, 0, &part);
		dwl_index_unpin(w, region);
		part.data += part.nr_sectors << WL_SECTOR_SHIFT;
		part.sector = stop;
	}
	return 0;
}

/* Entries that the table can't have made. */
static int dwl_replay_refuse(struct dwl *w, const struct wl_entry *entry)
{
	if (entry->sector + entry->nr_sectors > w->ti->len) {
		DMERR("%pg: holds sector %llu, which is beyond the device's end (%llu): resume with the old size and send message flush first",
		      w->cache->bdev, entry->sector + entry->nr_sectors - 1, (u64)w->ti->len);
		return -ENOSPC;
	}
	/* Without data, only this keeps it from filling the memory with the index. */
	if (entry->op == WL_OP_ZEROES && entry->nr_sectors > DWL_PORTION) {
		DMERR("%pg: zeros of %llu sectors, which no table writes", w->cache->bdev, entry->nr_sectors);
		return -EUCLEAN;
	}
	if ((entry->sector | entry->nr_sectors) & ((1 << w->block_shift) - 1)) {
		DMERR("%pg: holds blocks smaller than block_size %u: resume with the old block_size and send message flush first",
		      w->cache->bdev, w->params.block_size);
		return -EINVAL;
	}
	return 0;
}

static int dwl_replay_entry(struct dwl *w, const struct wl_entry *entry, bool bad_data)
{
	int err = dwl_replay_refuse(w, entry);

	if (err)
		return err;
	/* What writeback must find there again. */
	atomic_inc(&w->gens[entry->gen].seq);
	if (bad_data)
		return dwl_replay_poison(w, entry);
	if (entry->op != WL_OP_DISCARD)
		return dwl_replay_store(w, entry);
	dwl_index_drop(w, entry);
	return 0;
}

static int dwl_replay_entries(struct dwl *w, struct wl_cursor *cursor, u64 *entries)
{
	struct wl_entry entry;
	int more;

	while ((more = wl_cursor_next(cursor, &entry))) {
		bool bad_data = more < 0 && cursor->damage.kind == WL_BAD_DATA;
		int err;

		if (more < 0) {
			dwl_report(w, &cursor->damage);
			if (!w->params.skip_damage)
				return more;
			/* Writeback must find it damaged, too, though all that is there may be whole. */
			if (cursor->damage.kind == WL_BAD_SUM)
				atomic_inc(&w->gens[cursor->damage.gen].seq);
			if (!bad_data)
				continue;
		}
		err = dwl_replay_entry(w, &entry, bad_data);
		if (err)
			return err;
		if (!(++*entries % 1024))
			cond_resched();
	}
	return 0;
}

/**
 * dwl_replay() - fill the index with what the log holds
 * @w: the target, the log open, the index empty
 *
 * Return: 0; negative errno, after a message in the kernel's log.
 */
int dwl_replay(struct dwl *w)
{
	struct wl_stream *streams;
	struct wl_cursor cursor;
	u64 entries = 0;
	int err;

	dwl_replay_gens(w);
	streams = kvmalloc_array(w->wl.nr_chunks, sizeof(*streams), GFP_KERNEL);
	if (!streams)
		return -ENOMEM;
	wl_cursor_start(&cursor, &w->wl, streams, WL_VERIFY_DATA);
	err = dwl_replay_entries(w, &cursor, &entries);
	kvfree(streams);
	if (err) {
		DMERR("%pg: not taken: error %d; forebay writelog check says more", w->cache->bdev, err);
		return err;
	}
	if (entries)
		DMINFO("%pg: %llu writes found in %u generations", w->cache->bdev, entries,
		       w->wl.nr_gens - w->nr_free);
	return 0;
}
