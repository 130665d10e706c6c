// SPDX-License-Identifier: GPL-2.0-only
/*
 * The tracker remembers which volatile pages were written since the last sync,
 * as long as they are few. It, and not the lower file's dirty marks, says what a
 * sync owes: a page that the lower file system wrote on its own account is no
 * longer dirty there, and still not durable before a journal commit and a disk
 * flush. Moved to PMem, it is.
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
 */
#include <linux/pagevec.h>

#include "tracker.h"

/**
 * fb_track() - volatile bytes of a file were changed
 * @fi: the inode
 * @start: first byte
 * @end: the byte after the last
 */
void fb_track(struct fb_inode *fi, loff_t start, loff_t end)
{
	pgoff_t first = start >> PAGE_SHIFT, beyond = DIV_ROUND_UP_ULL(end, PAGE_SIZE);
	struct fb_tracker *t = &fi->tracker;
	unsigned int i;

	spin_lock(&fi->tracker_lock);
	if (t->overflow)
		goto out;
	for (i = t->nr_ranges; i-- > 0;) {	/* the newest first: appends join it */
		if (first <= t->range[i].end && beyond >= t->range[i].start)
			break;
	}
	if (i == UINT_MAX) {
		if (t->nr_ranges == FB_TRACK_RANGES) {
			t->overflow = true;
			goto out;
		}
		i = t->nr_ranges++;
		t->range[i].start = first;
		t->range[i].end = first;
	}
	t->nr_pages -= t->range[i].end - t->range[i].start;
	t->range[i].start = min(t->range[i].start, first);
	t->range[i].end = max(t->range[i].end, beyond);
	if (t->range[i].end - t->range[i].start > FB_TRACK_PAGES)
		t->overflow = true;
	t->nr_pages += t->range[i].end - t->range[i].start;
	if (t->nr_pages > FB_TRACK_PAGES)
		t->overflow = true;
out:
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
 * Return: what was in it. The caller makes that durable, or gives it back by fb_track_again().
 */
struct fb_tracker fb_track_take(struct fb_inode *fi)
{
	struct fb_tracker *t = &fi->tracker, taken;

	spin_lock(&fi->tracker_lock);
	taken = *t;
	t->nr_ranges = 0;
	t->nr_pages = 0;
	t->overflow = false;
	t->stored = (struct fb_pages_from) {};
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
	const struct fb_tracker *t = &fi->tracker;
	bool found;

	spin_lock(&fi->tracker_lock);
	found = t->overflow;
	for (unsigned int i = 0; i < t->nr_ranges; i++)
		found = found || (index >= t->range[i].start && index < t->range[i].end);
	spin_unlock(&fi->tracker_lock);
	return found;
}

/**
 * fb_track_overflow() - unknown pages are volatile: the next sync goes below
 * @fi: the inode
 */
void fb_track_overflow(struct fb_inode *fi)
{
	spin_lock(&fi->tracker_lock);
	fi->tracker.overflow = true;
	spin_unlock(&fi->tracker_lock);
}

/**
 * fb_track_again() - what was taken could not be made durable
 * @fi: the inode
 * @taken: by fb_track_take()
 */
void fb_track_again(struct fb_inode *fi, const struct fb_tracker *taken)
{
	if (taken->stored.end)
		fb_track_stored(fi, taken->stored.start, taken->stored.end);
	if (taken->overflow)
		fb_track_overflow(fi);
	for (unsigned int i = 0; i < taken->nr_ranges; i++)
		fb_track(fi, (loff_t)taken->range[i].start << PAGE_SHIFT,
			 (loff_t)taken->range[i].end << PAGE_SHIFT);
}

static bool fb_any_held(struct fb_inode *fi, const struct fb_pages_from *pages)
{
	pgoff_t first = pages->start;
	struct folio_batch batch;
	bool held = false;

	folio_batch_init(&batch);
	while (!held && filemap_get_folios(fi->lower->i_mapping, &first, pages->end - 1, &batch)) {
		for (unsigned int i = 0; i < folio_batch_count(&batch); i++)
			held = held || folio_maybe_dma_pinned(batch.folios[i]);
		folio_batch_release(&batch);
		cond_resched();
	}
	return held;
}

/**
 * fb_track_held() - what a sync has made durable below may be changing still
 * @fi: the inode
 * @taken: by fb_track_take(), before the lower fsync that has just ended
 */
void fb_track_held(struct fb_inode *fi, const struct fb_tracker *taken)
{
	bool held = false;

	if (!taken->stored.end)
		return;
	if (taken->overflow)
		held = fb_any_held(fi, &taken->stored);
	for (unsigned int i = 0; i < taken->nr_ranges && !taken->overflow; i++)
		held = held || fb_any_held(fi, &taken->range[i]);
	if (held)
		fb_track_again(fi, taken);
}
