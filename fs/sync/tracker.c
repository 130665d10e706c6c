// SPDX-License-Identifier: GPL-2.0-only
/*
 * The tracker remembers which volatile pages were written since the last sync, as long as they are in few
 * ranges. A sync goes by the tracker, not by the lower file's dirty marks. A page that the lower file system
 * has written by itself is no longer dirty there. It is not durable before a journal commit and a disk
 * flush, or before it moves to PMem.
 *
 * Invariant: a volatile page that was changed and not made durable since is in
 * a range, or the tracker has overflowed. Pages are noted after the change and
 * before it is acknowledged (a store through a mapping: before the page table
 * entry is writable). A sync first empties the tracker and then makes durable
 * what was in it, so that a change that comes in between is noted for the next.
 *
 * Direct I/O, of any file, into a mapping of this one is noted when it begins, as a store. Its end, which
 * may come after a sync, is not reported to the file system. So a sync leaves pages noted that it finds
 * held.
 *
 * The ranges are sorted, and no two of them touch. Few are in the inode. For more there is an array that
 * doubles, up to FB_TRACK_RANGES; its pages in the lower page cache are 256 times as large. Without memory
 * for it the tracker overflows, and the next sync goes below.
 */
#include <linux/slab.h>

#include "../../compat/folio_batch.h"
#include "tracker.h"

/* At most: 16 KiB, until the next sync. */
#define FB_TRACK_RANGES		1024

/**
 * fb_track_init() - nothing was changed yet
 * @tracker: an inode's
 */
void fb_track_init(struct fb_tracker *tracker)
{
	*tracker = (struct fb_tracker) { .max_ranges = FB_TRACK_FEW };
}

/**
 * fb_track_free() - give up a tracker's memory
 * @tracker: an inode's that goes, or a taken one
 */
void fb_track_free(struct fb_tracker *tracker)
{
	kfree(tracker->more);
	fb_track_init(tracker);
}

/* The first range that ends at @page or behind it; nr_ranges if there is none. */
static unsigned int fb_track_find(struct fb_tracker *t, pgoff_t page)
{
	const struct fb_pages_from *range = fb_track_ranges(t);
	unsigned int from = 0, to = t->nr_ranges, middle;

	while (from < to) {
		middle = (from + to) / 2;
		if (range[middle].end < page)
			from = middle + 1;
		else
			to = middle;
	}
	return from;
}

/* Sees to space for one more range. It must not sleep: the caller may not, either. */
static bool fb_track_grow(struct fb_tracker *t)
{
	unsigned int max = 2 * t->max_ranges;
	struct fb_pages_from *more;

	if (t->nr_ranges < t->max_ranges)
		return true;
	if (max > FB_TRACK_RANGES)
		return false;
	more = krealloc_array(t->more, max, sizeof(*more), GFP_NOWAIT | __GFP_NOWARN | __GFP_ACCOUNT);
	if (!more)
		return false;
	if (!t->more)
		memcpy(more, t->few, sizeof(t->few));
	t->more = more;
	t->max_ranges = max;
	return true;
}

/* Which pages were changed isn't known any more. */
static void fb_track_give_up(struct fb_tracker *t)
{
	struct fb_pages_from stored = t->stored;

	fb_track_free(t);
	t->stored = stored;
	t->overflow = true;
}

/* Ranges [from, to) become one, which has @added, too; to == from: a new one. */
static void fb_track_join(struct fb_tracker *t, unsigned int from, unsigned int to,
			  struct fb_pages_from added)
{
	struct fb_pages_from *range = fb_track_ranges(t);

	for (unsigned int i = from; i < to; i++) {
		added.start = min(added.start, range[i].start);
		added.end = max(added.end, range[i].end);
		t->nr_pages -= range[i].end - range[i].start;
	}
	memmove(range + from + 1, range + to, (t->nr_ranges - to) * sizeof(*range));
	t->nr_ranges -= to - from;
	t->nr_ranges++;
	range[from] = added;
	t->nr_pages += added.end - added.start;
}

static void fb_track_add(struct fb_tracker *t, struct fb_pages_from added)
{
	unsigned int from = fb_track_find(t, added.start), to = from;

	while (to < t->nr_ranges && fb_track_ranges(t)[to].start <= added.end)
		to++;
	if (to == from && !fb_track_grow(t))
		fb_track_give_up(t);
	else
		fb_track_join(t, from, to, added);
}

/**
 * fb_track() - volatile bytes of a file were changed
 * @fi: the inode
 * @start: first byte
 * @end: the byte after the last
 */
void fb_track(struct fb_inode *fi, loff_t start, loff_t end)
{
	struct fb_pages_from added = { start >> PAGE_SHIFT, DIV_ROUND_UP_ULL(end, PAGE_SIZE) };
	struct fb_tracker *t = &fi->tracker;

	spin_lock(&fi->tracker_lock);
	if (!t->overflow)
		fb_track_add(t, added);
	spin_unlock(&fi->tracker_lock);
}

/**
 * fb_track_stored() - volatile pages of a file are writable in a mapping
 * @fi: the inode; fb_track() follows
 * @first: first page
 * @beyond: the page after the last
 */
void fb_track_stored(struct fb_inode *fi, pgoff_t first, pgoff_t beyond)
{
	struct fb_pages_from *stored = &fi->tracker.stored;

	spin_lock(&fi->tracker_lock);
	stored->start = stored->end ? min(stored->start, first) : first;
	stored->end = max(stored->end, beyond);
	spin_unlock(&fi->tracker_lock);
}

/**
 * fb_track_take() - empty the tracker
 * @fi: the inode
 *
 * Return: what was in it. The caller makes that durable, or gives it back by fb_track_again(); then it calls
 * fb_track_free().
 */
struct fb_tracker fb_track_take(struct fb_inode *fi)
{
	struct fb_tracker taken;

	spin_lock(&fi->tracker_lock);
	taken = fi->tracker;
	fb_track_init(&fi->tracker);
	spin_unlock(&fi->tracker_lock);
	return taken;
}

/**
 * fb_tracked() - whether a page may have been changed since the last sync
 * @fi: the inode
 * @index: a volatile page; its range is locked exclusively, so that no write or fault is changing it
 */
bool fb_tracked(struct fb_inode *fi, pgoff_t index)
{
	struct fb_tracker *t = &fi->tracker;
	unsigned int at;
	bool found;

	spin_lock(&fi->tracker_lock);
	at = fb_track_find(t, index + 1);
	found = t->overflow || (at < t->nr_ranges && fb_track_ranges(t)[at].start <= index);
	spin_unlock(&fi->tracker_lock);
	return found;
}

/**
 * fb_track_count() - how many pages the next sync has to make durable
 * @fi: the inode
 *
 * Return: pages; ULONG_MAX: unknown.
 */
unsigned long fb_track_count(struct fb_inode *fi)
{
	unsigned long count;

	spin_lock(&fi->tracker_lock);
	count = fi->tracker.overflow ? ULONG_MAX : fi->tracker.nr_pages;
	spin_unlock(&fi->tracker_lock);
	return count;
}

/**
 * fb_track_overflow() - unknown pages are volatile: the next sync goes below
 * @fi: the inode
 */
void fb_track_overflow(struct fb_inode *fi)
{
	spin_lock(&fi->tracker_lock);
	fb_track_give_up(&fi->tracker);
	spin_unlock(&fi->tracker_lock);
}

/**
 * fb_track_again() - what was taken could not be made durable
 * @fi: the inode
 * @taken: by fb_track_take(); empty afterwards
 */
void fb_track_again(struct fb_inode *fi, struct fb_tracker *taken)
{
	const struct fb_pages_from *range = fb_track_ranges(taken);
	struct fb_tracker *t = &fi->tracker;

	if (taken->stored.end)
		fb_track_stored(fi, taken->stored.start, taken->stored.end);
	spin_lock(&fi->tracker_lock);
	if (taken->overflow)
		fb_track_give_up(t);
	for (unsigned int i = 0; i < taken->nr_ranges && !t->overflow; i++)
		fb_track_add(t, range[i]);
	spin_unlock(&fi->tracker_lock);
	fb_track_free(taken);
}

static bool fb_any_busy(struct fb_inode *fi, pgoff_t first, pgoff_t end)
{
	struct folio_batch batch;
	bool busy = false;

	folio_batch_init(&batch);
	while (!busy && first < end && filemap_get_folios(fi->lower->i_mapping, &first, end - 1, &batch)) {
		for (unsigned int i = 0; i < folio_batch_count(&batch); i++)
			busy = busy || folio_maybe_dma_pinned(batch.folios[i]);
		folio_batch_release(&batch);
		cond_resched();
	}
	return busy;
}

/**
 * fb_track_busy() - what a sync has made durable below may be changing still
 * @fi: the inode
 * @taken: by fb_track_take(), before the lower fsync that has just ended; empty afterwards, or as it was
 *
 * Only what was stored through mappings may be held by a task that changes it.
 */
void fb_track_busy(struct fb_inode *fi, struct fb_tracker *taken)
{
	const struct fb_pages_from *range = fb_track_ranges(taken), stored = taken->stored;
	bool busy = false;

	if (!stored.end)
		return;
	if (taken->overflow)
		busy = fb_any_busy(fi, stored.start, stored.end);
	for (unsigned int i = 0; i < taken->nr_ranges && !busy; i++)
		busy = fb_any_busy(fi, max(range[i].start, stored.start), min(range[i].end, stored.end));
	if (busy)
		fb_track_again(fi, taken);
}
