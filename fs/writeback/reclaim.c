// SPDX-License-Identifier: GPL-2.0-only
/*
 * Reclaim: clean pages are given up for others.
 *
 * A clean page is a copy of what the lower file has durably, so reclaiming it
 * writes nothing but its free record. Pages that were used since the last
 * look get a second chance; pages pinned by a user or locked stay. When the last page of
 * a file goes, its record goes too: the fsync that made the page clean made
 * the size durable.
 *
 * Pages that a sync call has brought go first: they cost their file a copy at the next sync. A page of an
 * attached range, or of a MAP_SYNC mapping, costs a fault that waits for storage. So these are spared, unless
 * their file has more than its share of the cache, or very few pages are free. Meanwhile the worker writes
 * files with others back, to have more that are clean.
 */
#include "../page/alloc.h"
#include "../page/entry.h"
#include "../page/index.h"
#include "../pin/belong.h"
#include "../pin/lock.h"
#include "../trace.h"
#include "evict.h"
#include "reclaim.h"

/* No page is spared while less than one in so many is free: half of what alloc.c reserves. */
#define FB_RECLAIM_SPARES	32
/* A file with more mappings and pins is not looked at to its end. */
#define FB_STRETCHES		64

/* Takes up to a batch of reclaimable pages of one inode off the clean list's head. */
static struct fb_inode *fb_reclaim_candidates(struct fb_sb *fsb, struct fb_page **pages, unsigned int *nr,
					      unsigned long *budget)
{
	struct fb_inode *fi = NULL;
	struct fb_page *page;
	unsigned long once;	/* each page is looked at once: it must not be taken twice */

	*nr = 0;
	spin_lock(&fsb->lru_lock);
	once = fsb->nr_clean - fsb->nr_resident_clean;
	for (; once && *budget && *nr < FB_INVALIDATE_BATCH; once--) {
		page = list_first_entry_or_null(&fsb->clean_pages, struct fb_page, lru);
		if (!page || (fi && page->owner != fi))
			break;
		--*budget;
		list_move_tail(&page->lru, &fsb->clean_pages);
		if (page->referenced) {
			page->referenced = false;
			continue;
		}
		if (!fi) {
			if (!igrab(&page->owner->vfs_inode))
				continue;
			fi = page->owner;
		}
		pages[(*nr)++] = page;
	}
	spin_unlock(&fsb->lru_lock);
	return fi;
}

/* @spare: a range that belongs in PMem is not touched yet. */
static bool fb_is_reclaimable(struct fb_inode *fi, const struct fb_page *page, bool spare)
{
	return page->owner == fi && page->status == FB_STATUS_CLEAN && !page->resident &&
	       !fb_pin_locked_page(fi, page->index) &&
	       !(spare && fb_belongs_in_pmem(fi, page->index, page->index));
}

/**
 * fb_reclaim_spares() - whether a file has only pages that are spared
 * @fi: the inode. Takes io_sem
 *
 * Return: false also if it takes long to find out.
 */
bool fb_reclaim_spares(struct fb_inode *fi)
{
	pgoff_t at = 0, end = fb_pages_in_file(fi);
	unsigned int stretches = 0;

	if (fb_above_share(fi))
		return false;
	down_read(&fi->io_sem);
	while (at < end && stretches++ < FB_STRETCHES && fb_skip_stretch(fi, &at, end - 1))
		;
	up_read(&fi->io_sem);
	return end && at >= end;
}

/* Reclaims those candidates that are still clean and still belong to the inode. */
static unsigned int fb_reclaim_from(struct fb_inode *fi, struct fb_page **pages, unsigned int nr, bool spare)
{
	struct fb_sb *fsb = FB_SB(fi->vfs_inode.i_sb);
	unsigned int i, kept = 0;

	spare = spare && !fb_above_share(fi);
	if (!mutex_trylock(&fi->wb_lock))	/* fb_wb_lock_soon() tells why */
		return 0;
	down_write(&fi->io_sem);
	for (i = 0; i < nr; i++) {
		if (!fb_is_reclaimable(fi, pages[i], spare))
			continue;
		unmap_mapping_pages(fi->lower->i_mapping, pages[i]->index, 1, false);
		/* Asked again: mlock() of a page that was mapped takes no fault. */
		if (fb_is_reclaimable(fi, pages[i], spare))
			pages[kept++] = pages[i];
	}
	fb_pages_invalidate(fi, pages, kept);
	trace_fb_reclaim(fi, kept);
	up_write(&fi->io_sem);
	if (kept && !fb_has_pages(fi))
		fb_evict_record(fi);
	mutex_unlock(&fi->wb_lock);
	fb_count(fsb, FB_PAGES_RECLAIMED, kept);
	return kept;
}

/* Gives clean pages up until so many are free. Each page is looked at twice at most. */
static unsigned int fb_reclaim_pass(struct fb_sb *fsb, unsigned long want, bool spare)
{
	unsigned long budget = 2 * READ_ONCE(fsb->nr_clean);
	struct fb_page *pages[FB_INVALIDATE_BATCH];
	unsigned int nr, done = 0;
	struct fb_inode *fi;

	while (READ_ONCE(fsb->nr_free) < want && budget) {
		fi = fb_reclaim_candidates(fsb, pages, &nr, &budget);
		if (!fi)
			break;
		if (nr)
			done += fb_reclaim_from(fi, pages, nr, spare);
		iput(&fi->vfs_inode);
		cond_resched();
	}
	return done;
}

/**
 * fb_reclaim() - give clean pages up until enough are free
 * @fsb: the mount
 * @want: how many pages shall be free
 *
 * Return: how many were given up.
 */
unsigned int fb_reclaim(struct fb_sb *fsb, unsigned long want)
{
	unsigned int done = fb_reclaim_pass(fsb, want, true);

	return done + fb_reclaim_pass(fsb, min(want, fb_cache_part(fsb, FB_RECLAIM_SPARES)), false);
}
