// SPDX-License-Identifier: GPL-2.0-only
/*
 * Makes a write durable: copies its data into the log, as one entry or several, and adds the entries to
 * the index.
 *
 * The sequence number is taken while the slot is held, and the slot is held until the index has the
 * entry. So when all slots have left a generation, the index has all of the generation's entries.
 */
#include <linux/delay.h>
#include <linux/highmem.h>

#include "space.h"
#include "trace.h"

/* Excludes memory reserves: they are for tasks that free memory by writing to this device. */
#define DWL_GFP_MAY_FAIL	(__GFP_NORETRY | __GFP_NOWARN | __GFP_NOMEMALLOC)

/* A segment being appended: its source, and its regions in the index. */
struct dwl_segment {
	enum wl_op op;
	u64 sector;
	u64 end;
	struct bio *bio;
	struct bvec_iter *iter;
	struct dwl_region *regions[DWL_SEGMENT_REGIONS];
	u64 first_region;
	u32 nr_regions;
};

/*
 * True if the bio fails instead of waiting. A bio of which a part is written waits, because after -EAGAIN
 * the old data must still be there. (If device-mapper has split a write into several bios, some may be
 * written.)
 */
static bool dwl_nowait(const struct dwl_segment *p)
{
	return p->bio->bi_opf & REQ_NOWAIT;
}

static void dwl_copy(struct dwl *w, struct dwl_slot *slot, struct dwl_segment *p, u32 bytes)
{
	while (bytes) {
		struct bio_vec bv = bio_iter_iovec(p->bio, *p->iter);
		u32 len = min(bytes, bv.bv_len);
		void *from = bvec_kmap_local(&bv);

		wl_write(&w->wl, &slot->tail, from, len);
		kunmap_local(from);
		bio_advance_iter(p->bio, p->iter, len);
		bytes -= len;
	}
}

#ifdef FB_BREAK_SLOW_STORE	/* on purpose: a write that begins so waits until a generation is freed */
static void dwl_break_delay(struct dwl *w, const struct wl_entry *entry)
{
	unsigned long end = jiffies + 60 * HZ;
	u64 freed_to = READ_ONCE(w->freed_to);

	if (entry->op != WL_OP_WRITE || memcmp(w->wl.base + entry->data, "FB_BREAK", 8))
		return;
	DMINFO("FB_BREAK_SLOW_STORE: a write waits");
	/* Or until a test sends message latency on: the worker may be waiting for this writer. */
	while (READ_ONCE(w->freed_to) == freed_to && !READ_ONCE(w->latency) && time_before(jiffies, end))
		msleep(20);
}
#else
static void dwl_break_delay(struct dwl *w, const struct wl_entry *entry) { }
#endif

/* Appends one entry: the beginning of the segment, or all of it. */
static int dwl_append_entry(struct dwl *w, struct dwl_slot *slot, struct dwl_segment *p)
{
	struct wl_entry entry;
	struct dwl_gen *gen;
	u64 sectors = p->end - p->sector, start_ns;
	int space;

	lockdep_assert_held(&slot->lock);
	/* An entry without data fits or doesn't; its length has no influence. */
	space = dwl_slot_ready(w, slot, p->op, p->op == WL_OP_WRITE ? sectors << WL_SECTOR_SHIFT : 1,
			       &gen, dwl_nowait(p));
	if (space < 0)
		return space;
	if (p->op == WL_OP_WRITE)
		sectors = space >> WL_SECTOR_SHIFT;
	start_ns = dwl_now(w);
	wl_begin(&w->wl, &slot->tail, p->op, p->sector, sectors, atomic_inc_return(&gen->seq) - 1);
	if (p->op == WL_OP_WRITE)
		dwl_copy(w, slot, p, space);
	wl_end(&w->wl, &slot->tail, &entry);
	wl_commit(&w->wl, &slot->tail);
	p->bio->bi_opf &= ~REQ_NOWAIT;
	trace_dwl_append(w, &entry);
	dwl_latency(w, DWL_PHASE_COPY, start_ns);
	dwl_break_delay(w, &entry);
	start_ns = dwl_now(w);
	if (p->op == WL_OP_DISCARD)
		dwl_index_discard(w, &entry);
	else
		dwl_index_store(w, p->regions, p->first_region, p->end, &entry);
	dwl_latency(w, DWL_PHASE_INDEX, start_ns);
	dwl_count(w, DWL_ENTRIES, 1);
	p->sector += sectors;
	return 0;
}

static int dwl_append_entries(struct dwl *w, struct dwl_segment *p)
{
	while (p->sector < p->end) {
		struct dwl_slot *slot = dwl_slot_get(w, dwl_nowait(p));
		int err = 0;

		if (!slot)
			return -EAGAIN;
		if (unlikely(READ_ONCE(w->space.blocked) || READ_ONCE(w->mode) == DWL_CLEANER))
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

static void dwl_put_regions(struct dwl *w, struct dwl_segment *p)
{
	while (p->nr_regions--)
		if (p->regions[p->nr_regions])
			dwl_region_put(w, p->regions[p->nr_regions]);
	p->nr_regions = 0;
}

static int dwl_get_regions(struct dwl *w, struct dwl_segment *p, gfp_t gfp)
{
	u64 number = p->sector >> w->block_shift >> DWL_REGION_SHIFT;
	u64 last = (p->end - 1) >> w->block_shift >> DWL_REGION_SHIFT;

	p->first_region = number;
	for (; number <= last; number++) {
		struct dwl_region *region = dwl_region_get(w, number, gfp);

		if (!region) {
			dwl_put_regions(w, p);
			return -ENOMEM;
		}
		p->regions[p->nr_regions++] = region;
	}
	return 0;
}

static int dwl_reserve_regions(struct dwl *w, struct dwl_segment *p)
{
	if (dwl_nowait(p))
		return dwl_get_regions(w, p, GFP_NOWAIT | DWL_GFP_MAY_FAIL) ? -EAGAIN : 0;
	if (likely(!dwl_get_regions(w, p, GFP_NOIO | DWL_GFP_MAY_FAIL)))
		return 0;
	/* One task at a time, and without references held: so the reserve suffices. */
	mutex_lock(&w->index.short_of_memory);
	WRITE_ONCE(w->index.starved, true);
	wake_up(&w->kick);
	dwl_get_regions(w, p, GFP_NOIO);
	WRITE_ONCE(w->index.starved, false);
	mutex_unlock(&w->index.short_of_memory);
	return 0;
}

/**
 * dwl_append() - make a write durable
 * @w: the target
 * @op: kind of the entry
 * @sector: first sector; advanced over what was appended
 * @end: end of the write; within one segment, unless it is a discard
 * @bio: source of the data; REQ_NOWAIT is cleared once a part is written
 * @iter: position in @bio; advanced over what was appended
 *
 * Context: Task in map. Sleeps unless REQ_NOWAIT.
 * Return: 0: durable, and found by readers. After an error, parts of it may be. -EAGAIN: it would
 * sleep; -ERESTART: writers are blocked, or go to the origin now; -EIO: the log is full and the origin
 * fails; -ECANCELED: the bio is to be requeued.
 */
int dwl_append(struct dwl *w, enum wl_op op, u64 *sector, u64 end, struct bio *bio,
	       struct bvec_iter *iter)
{
	/* Uninitialized, by the compiler too: clearing the array takes time. */
	struct dwl_segment p __uninitialized;
	int err = 0;

	p.op = op;
	p.sector = *sector;
	p.end = end;
	p.bio = bio;
	p.iter = iter;
	p.nr_regions = 0;
	if (op != WL_OP_DISCARD)
		err = dwl_reserve_regions(w, &p);
	if (!err)
		err = dwl_append_entries(w, &p);
	if (unlikely(err))
		dwl_put_regions(w, &p);
	*sector = p.sector;
	return err;
}
