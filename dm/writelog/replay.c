// SPDX-License-Identifier: GPL-2.0-only
/*
 * Replay: adds every entry of the log to the index, in order.
 *
 * Nothing is written to the origin: the log continues as it was. Open generations are closed; the next
 * one gets a new identifier.
 *
 * Each damage is reported in the kernel's log. With on_damage stop (the default) a damaged log isn't
 * taken. With skip all undamaged entries are used, and blocks with damaged data are unreadable until
 * they are written again.
 */
#include <linux/list_sort.h>
#include <linux/mm.h>

#include "writelog.h"

static int dwl_by_id(void *unused, const struct list_head *a, const struct list_head *b)
{
	u64 x = list_entry(a, struct dwl_gen, list)->id, y = list_entry(b, struct dwl_gen, list)->id;

	return x < y ? -1 : x > y;
}

/* Finds the state of each generation. */
static void dwl_replay_gens(struct dwl *w)
{
	u32 i;

	INIT_LIST_HEAD(&w->free_gens);
	INIT_LIST_HEAD(&w->closed_gens);
	w->nr_free = 0;
	for (i = 0; i < w->wl.nr_gens; i++) {
		struct dwl_gen *gen = &w->gens[i];
		struct wl_gen_info info;

		/*
		 * With on_damage skip a generation counts as free if its word is damaged, or that of an
		 * earlier life: its content is unknown.
		 */
		cond_resched();
		if (!wl_gen_live(&w->wl, i, &info)) {
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

	DMERR("%pg: %s (generation %u, chunk %u, entry %u) %s", w->log->bdev, what[d->kind], d->gen,
	      d->chunk, d->index, d->why);
	dwl_count(w, DWL_MEDIUM_ERRORS, 1);
}

/*
 * Limits the index to half of the memory: the machine that filled the log may have had more, or the log
 * is forged.
 */
static struct dwl_region *dwl_replay_get_region(struct dwl *w, u64 number)
{
	struct dwl_region *region = NULL;

	if (atomic_long_read(&w->nr_regions) < (totalram_pages() << PAGE_SHIFT) / 2 / sizeof(*region))
		region = dwl_region_get(w, number, GFP_NOIO | __GFP_RETRY_MAYFAIL);
	if (!region)
		DMERR("%pg: no memory for an index of more than %ld KiB", w->log->bdev,
		      atomic_long_read(&w->nr_regions) * sizeof(*region) / SZ_1K);
	return region;
}

static int dwl_replay_poison(struct dwl *w, const struct wl_entry *entry)
{
	u64 block = entry->sector >> w->block_shift;
	u64 end = block + (entry->nr_sectors >> w->block_shift);

	for (; block < end; block++) {
		struct dwl_region *region = dwl_replay_get_region(w, block >> DWL_REGION_SHIFT);

		if (!region)
			return -ENOMEM;
		dwl_index_poison(w, region, block & (DWL_REGION_BLOCKS - 1), entry->order);
		dwl_region_put(w, region);
	}
	return 0;
}

static int dwl_replay_store(struct dwl *w, const struct wl_entry *entry)
{
	struct wl_entry part = *entry;
	u64 end = entry->sector + entry->nr_sectors;

	/* One region at a time. dwl_index_value() computes from the beginning of @part. */
	while (part.sector < end) {
		u32 region_sectors = DWL_REGION_BLOCKS << w->block_shift;
		u64 stop = min(end, round_down(part.sector, region_sectors) + region_sectors);
		u64 number = part.sector >> w->block_shift >> DWL_REGION_SHIFT;
		struct dwl_region *region = dwl_replay_get_region(w, number);

		if (!region)
			return -ENOMEM;
		part.nr_sectors = stop - part.sector;
		dwl_index_store(w, &region, number, 0, &part);
		dwl_region_put(w, region);
		part.data += part.nr_sectors << WL_SECTOR_SHIFT;
		part.sector = stop;
	}
	return 0;
}

/* Refuses entries that this table can't have written. */
static int dwl_replay_refuse(struct dwl *w, const struct wl_entry *entry)
{
	if (entry->sector + entry->nr_sectors > w->ti->len) {
		DMERR("%pg: holds sector %llu, which is beyond the device's end (%llu): resume with the old size and send message flush first",
		      w->log->bdev, entry->sector + entry->nr_sectors - 1, (u64)w->ti->len);
		return -ENOSPC;
	}
	/*
	 * These two have no data. Only this check keeps a forged entry from filling the memory with the
	 * index, or from looking through the index for minutes.
	 */
	if ((entry->op == WL_OP_ZEROES && entry->nr_sectors > DWL_SEGMENT) ||
	    (entry->op == WL_OP_DISCARD && entry->nr_sectors > DWL_MAX_DISCARD)) {
		DMERR("%pg: zeros or a discard of %llu sectors, which no table writes", w->log->bdev,
		      entry->nr_sectors);
		return -EUCLEAN;
	}
	if ((entry->sector | entry->nr_sectors) & ((1 << w->block_shift) - 1)) {
		DMERR("%pg: holds blocks smaller than block_size %u: resume with the old block_size and send message flush first",
		      w->log->bdev, w->params.block_size);
		return -EINVAL;
	}
	return 0;
}

static int dwl_replay_entry(struct dwl *w, const struct wl_entry *entry, bool bad_data)
{
	int err = dwl_replay_refuse(w, entry);

	if (err)
		return err;
	/* Writeback must find as many entries again. */
	atomic_inc(&w->gens[entry->gen].seq);
	if (bad_data)
		return dwl_replay_poison(w, entry);
	if (entry->op != WL_OP_DISCARD)
		return dwl_replay_store(w, entry);
	dwl_index_discard(w, entry);
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
			/*
			 * Writeback must find the generation damaged, too, even if all entries found
			 * are whole.
			 */
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
 * dwl_replay() - fill the index from the log
 * @w: the target; its log is open, its index empty
 *
 * Context: Task, before the first resume. Sleeps.
 * Return: 0; negative errno after a message in the kernel's log.
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
		DMERR("%pg: not taken: error %d; forebay writelog check says more", w->log->bdev, err);
		return err;
	}
	if (entries)
		DMINFO("%pg: %llu writes found in %u generations", w->log->bdev, entries,
		       w->wl.nr_gens - w->nr_free);
	return 0;
}
