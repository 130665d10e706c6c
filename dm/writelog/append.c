// SPDX-License-Identifier: GPL-2.0-only
/*
 * A write becomes durable: its data are copied into the log, as one entry or as
 * many as it takes, and the index learns of them.
 *
 * The sequence number is taken while the slot is held, and the slot is held
 * until the index knows the entry: so when all slots have left a generation,
 * the index knows all of it.
 */
#include <linux/highmem.h>

#include "trace.h"

/* Not from what is left for those who free memory by writing to us: the reserve is for them. */
#define DWL_GFP_MAY_FAIL	(__GFP_NORETRY | __GFP_NOWARN | __GFP_NOMEMALLOC)

/* Where the data come from, and go to in the index. */
struct dwl_portion {
	enum wl_op op;
	u64 sector;
	u64 end;
	struct bio *bio;
	struct bvec_iter *iter;
	struct dwl_region *regions[DWL_PORTION_REGIONS];
	u64 first_region;
	u32 nr_regions;
};

/*
 * Rather not than wait? Only as long as nothing of the bio is written: who is told to come again
 * must find the old data. (Of a write that device-mapper cuts in several bios, some may be written.)
 */
static bool dwl_nowait(const struct dwl_portion *p)
{
	return p->bio->bi_opf & REQ_NOWAIT;
}

static void dwl_copy(struct dwl *w, struct dwl_slot *slot, struct dwl_portion *p, u32 bytes)
{
	while (bytes) {
		struct bio_vec bv = bio_iter_iovec(p->bio, *p->iter);
		u32 len = min(bytes, bv.bv_len);
		void *from = bvec_kmap_local(&bv);

		wl_write(&w->wl, &slot->place, from, len);
		kunmap_local(from);
		bio_advance_iter(p->bio, p->iter, len);
		bytes -= len;
	}
}

/* One entry: the beginning of the portion, or all of it. */
static int dwl_append_entry(struct dwl *w, struct dwl_slot *slot, struct dwl_portion *p)
{
	struct wl_entry entry;
	struct dwl_gen *gen;
	u64 sectors = p->end - p->sector, began;
	int room;

	/* What has no data fits, or not; the length doesn't matter. */
	room = dwl_slot_ready(w, slot, p->op, p->op == WL_OP_WRITE ? sectors << WL_SECTOR_SHIFT : 1,
			      &gen, dwl_nowait(p));
	if (room < 0)
		return room;
	if (p->op == WL_OP_WRITE)
		sectors = room >> WL_SECTOR_SHIFT;
	began = dwl_now(w);
	wl_begin(&w->wl, &slot->place, p->op, p->sector, sectors, atomic_inc_return(&gen->seq) - 1);
	if (p->op == WL_OP_WRITE)
		dwl_copy(w, slot, p, room);
	wl_end(&w->wl, &slot->place, &entry);
	wl_commit(&w->wl, &slot->place);
	p->bio->bi_opf &= ~REQ_NOWAIT;
	trace_dwl_append(w, &entry);
	dwl_latency(w, DWL_PHASE_COPY, began);
	began = dwl_now(w);
	if (p->op == WL_OP_DISCARD)
		dwl_index_drop(w, &entry);
	else
		dwl_index_store(w, p->regions, p->first_region, p->end, &entry);
	dwl_latency(w, DWL_PHASE_INDEX, began);
	dwl_count(w, DWL_ENTRIES, 1);
	p->sector += sectors;
	return 0;
}

static int dwl_append_entries(struct dwl *w, struct dwl_portion *p)
{
	while (p->sector < p->end) {
		struct dwl_slot *slot = dwl_slot_get(w, dwl_nowait(p));
		int err = 0;

		if (!slot)
			return -EAGAIN;
		if (unlikely(READ_ONCE(w->space.shut) || READ_ONCE(w->mode) == DWL_CLEANER))
			err = -ERESTART;
		while (p->sector < p->end && !err)
			err = dwl_append_entry(w, slot, p);
		mutex_unlock(&slot->lock);
		if (err == -ENOSPC)
			err = dwl_nowait(p) ? -EAGAIN : dwl_space_wait_gen(w);
		if (err)
			return err;
	}
	return 0;
}

static void dwl_unpin(struct dwl *w, struct dwl_portion *p)
{
	while (p->nr_regions--)
		if (p->regions[p->nr_regions])
			dwl_index_unpin(w, p->regions[p->nr_regions]);
	p->nr_regions = 0;
}

static int dwl_pin_all(struct dwl *w, struct dwl_portion *p, gfp_t gfp)
{
	u64 number = p->sector >> w->block_shift >> DWL_REGION_SHIFT;
	u64 last = (p->end - 1) >> w->block_shift >> DWL_REGION_SHIFT;

	p->first_region = number;
	for (; number <= last; number++) {
		struct dwl_region *region = dwl_index_pin(w, number, gfp);

		if (!region) {
			dwl_unpin(w, p);
			return -ENOMEM;
		}
		p->regions[p->nr_regions++] = region;
	}
	return 0;
}

static int dwl_pin(struct dwl *w, struct dwl_portion *p)
{
	if (dwl_nowait(p))
		return dwl_pin_all(w, p, GFP_NOWAIT | DWL_GFP_MAY_FAIL) ? -EAGAIN : 0;
	if (likely(!dwl_pin_all(w, p, GFP_NOIO | DWL_GFP_MAY_FAIL)))
		return 0;
	/* One at a time, and with nothing pinned before: so the reserve is enough. */
	mutex_lock(&w->index.short_of_memory);
	WRITE_ONCE(w->index.starved, true);
	wake_up(&w->kick);
	dwl_pin_all(w, p, GFP_NOIO);
	WRITE_ONCE(w->index.starved, false);
	mutex_unlock(&w->index.short_of_memory);
	return 0;
}

/**
 * dwl_append() - make a write durable
 * @w: the target
 * @op: what it does
 * @sector: where; advanced over what was done
 * @end: sector; the two lie in one portion, unless it is a discard
 * @bio: whose data; with REQ_NOWAIT, which goes when something is written
 * @iter: from where on; advanced over what was taken
 *
 * Return: 0: it is durable, and readers find it. Else parts of it may be:
 * -EAGAIN: it would have to wait; -ERESTART: writers are held up, or go to the
 * origin now; -EIO: the log is full, and the origin is failing.
 */
int dwl_append(struct dwl *w, enum wl_op op, u64 *sector, u64 end, struct bio *bio,
	       struct bvec_iter *iter)
{
	/* No initializer, nor the compiler's: it would clear the array, too. */
	struct dwl_portion p __uninitialized;
	int err = 0;

	p.op = op;
	p.sector = *sector;
	p.end = end;
	p.bio = bio;
	p.iter = iter;
	p.nr_regions = 0;
	if (op != WL_OP_DISCARD)
		err = dwl_pin(w, &p);
	if (!err)
		err = dwl_append_entries(w, &p);
	if (unlikely(err))
		dwl_unpin(w, &p);
	*sector = p.sector;
	return err;
}
