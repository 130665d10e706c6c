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
 * Files that have more than their share (page/share.c) give up pages, others don't. If fewer pages are free
 * than page/alloc.c reserves, files within their share have taken those: then these give up pages, too.
 * Meanwhile the worker writes files back that have more than their share, to have more pages that are clean.
 *
 * Pages that a sync call has brought cost their file a copy at the next sync. A page of an attached range, or
 * of a MAP_SYNC mapping, costs a fault that waits for storage. So these are spared for longer, also if their
 * file is idle.
 */
#include "../page/alloc.h"
#include "../page/entry.h"
#include "../page/index.h"
#include "../page/share.h"
#include "../pin/belong.h"
#include "../pin/lock.h"
#include "../trace.h"
#include "evict.h"
#include "reclaim.h"

/* No file is spared while less than one page in so many is free: some of those that alloc.c reserves. */
#define FB_RECLAIM_FILES	24
/* No page is spared while less than one in so many is free: half of what alloc.c reserves. */
#define FB_RECLAIM_SPARES	32
/* A file with more mappings and pins is not looked at to its end. */
#define FB_STRETCHES		64
/* Pages looked at under one hold of a spinlock. */
#define FB_RECLAIM_LOOK		128UL

/* A walk over the clean pages, and the batch that it is at. */
struct fb_reclaim {
	unsigned long want;		/* so many pages shall be free */
	bool spare_files;		/* that are within their share */
	bool spare_ranges;		/* that belong in PMem */
	unsigned long budget;		/* pages to look at still */
	unsigned int nr;
	struct fb_page *pages[FB_INVALIDATE_BATCH];
};

/* Takes up to a batch of reclaimable pages of one inode off the clean list's head. */
static struct fb_inode *fb_reclaim_candidates(struct fb_sb *fsb, struct fb_reclaim *walk)
{
	struct fb_inode *fi = NULL;
	struct fb_page *page;
	unsigned long share, once;	/* each page is looked at once: it must not be taken twice */

	walk->nr = 0;
	spin_lock(&fsb->lru_lock);
	share = fb_share(fsb, walk->want);
	once = min(fsb->nr_clean - fsb->nr_resident_clean, FB_RECLAIM_LOOK);
	for (; once && walk->budget && walk->nr < FB_INVALIDATE_BATCH; once--) {
		page = list_first_entry_or_null(&fsb->clean_pages, struct fb_page, lru);
		if (!page || (fi && page->owner != fi))
			break;
		walk->budget--;
		list_move_tail(&page->lru, &fsb->clean_pages);
		if (walk->spare_files && fb_spares(page->owner, share))
			continue;
		if (page->referenced) {
			page->referenced = false;
			continue;
		}
		if (!fi) {
			if (!igrab(&page->owner->vfs_inode))
				continue;
			fi = page->owner;
		}
		walk->pages[walk->nr++] = page;
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

/* Of a file, either all pages are spared, or only those that belong in PMem, or none. */
enum fb_spared { FB_SPARED_ALL, FB_SPARED_MAPPED, FB_SPARED_NONE };

static enum fb_spared fb_spared(const struct fb_inode *fi, unsigned long want)
{
	struct fb_sb *fsb = FB_SB(fi->vfs_inode.i_sb);
	enum fb_spared spared = FB_SPARED_NONE;

	spin_lock(&fsb->lru_lock);
	if (fb_spares(fi, fb_share(fsb, want)))
		spared = FB_SPARED_ALL;
	else if (fb_may_have(fi, want))
		spared = FB_SPARED_MAPPED;
	spin_unlock(&fsb->lru_lock);
	return spared;
}

/**
 * fb_reclaim_spares() - whether a file has only pages that are spared
 * @fi: the inode. Takes io_sem
 * @want: how many pages shall be free
 *
 * Return: false also if it takes long to find out.
 */
bool fb_reclaim_spares(struct fb_inode *fi, unsigned long want)
{
	struct fb_sb *fsb = FB_SB(fi->vfs_inode.i_sb);
	unsigned long nr_free = READ_ONCE(fsb->nr_free);
	pgoff_t at = 0, end = fb_pages_in_file(fi);
	enum fb_spared spared = fb_spared(fi, want);
	unsigned int stretches = 0;

	if (spared == FB_SPARED_NONE || nr_free < fb_cache_part(fsb, FB_RECLAIM_SPARES))
		return false;
	if (spared == FB_SPARED_ALL && nr_free >= fb_cache_part(fsb, FB_RECLAIM_FILES))
		return true;
	down_read(&fi->io_sem);
	while (at < end && stretches++ < FB_STRETCHES && fb_skip_stretch(fi, &at, end - 1))
		;
	up_read(&fi->io_sem);
	return end && at >= end;
}

/* Reclaims those candidates that are still clean and still belong to the inode. */
static void fb_reclaim_from(struct fb_inode *fi, struct fb_reclaim *walk)
{
	bool spare = walk->spare_ranges && fb_spared(fi, walk->want) != FB_SPARED_NONE;
	struct fb_sb *fsb = FB_SB(fi->vfs_inode.i_sb);
	struct fb_page **pages = walk->pages;
	unsigned int i, kept = 0;

	if (!mutex_trylock(&fi->wb_lock))	/* fb_wb_lock_soon() tells why */
		return;
	down_write(&fi->io_sem);
	for (i = 0; i < walk->nr; i++) {
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
	if (kept)
		fb_share_given_up(fsb, kept);
}

/* Gives clean pages up until so many are free. Each page is looked at twice at most. */
static void fb_reclaim_pass(struct fb_sb *fsb, unsigned long want, unsigned long looks, bool spare_files,
			    bool spare_ranges)
{
	struct fb_reclaim walk = {
		.want = want, .spare_files = spare_files, .spare_ranges = spare_ranges,
		.budget = min(looks, 2 * READ_ONCE(fsb->nr_clean)) };
	unsigned long before;
	struct fb_inode *fi;

	do {
		before = walk.budget;
		if (READ_ONCE(fsb->nr_free) >= want)
			break;
		fi = fb_reclaim_candidates(fsb, &walk);
		if (fi) {
			fb_reclaim_from(fi, &walk);
			iput(&fi->vfs_inode);
		}
		cond_resched();
	} while (walk.budget != before);
}

static void fb_reclaim_within(struct fb_sb *fsb, unsigned long want, unsigned long looks)
{
	fb_reclaim_pass(fsb, want, looks, true, true);
	fb_reclaim_pass(fsb, min(want, fb_cache_part(fsb, FB_RECLAIM_FILES)), looks, false, true);
	fb_reclaim_pass(fsb, min(want, fb_cache_part(fsb, FB_RECLAIM_SPARES)), looks, false, false);
}

/**
 * fb_reclaim() - give clean pages up until enough are free
 * @fsb: the mount
 * @want: how many pages shall be free
 *
 * Context: process. Takes wb_lock of files where it is free, and io_sem. Sleeps.
 */
void fb_reclaim(struct fb_sb *fsb, unsigned long want)
{
	fb_reclaim_within(fsb, want, ULONG_MAX);
}

/**
 * fb_reclaim_if_low() - give some clean pages up if free pages run low
 * @fsb: the mount
 * @looks: so many pages are looked at in each pass. The next call goes on with the next pages
 *
 * Context: as for fb_reclaim().
 */
void fb_reclaim_if_low(struct fb_sb *fsb, unsigned long looks)
{
	if (fb_cache_low(fsb))
		fb_reclaim_within(fsb, fb_cache_part(fsb, 4), looks);
}
