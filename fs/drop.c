// SPDX-License-Identifier: GPL-2.0-only
/*
 * Drop: a user says that a range need not be in PMem any more. Out-of-sync pages are written back
 * first; then all that are clean go at once. What is pinned or locked stays, and what hardware
 * uses.
 */
#include "cache.h"
#include "claim.h"
#include "page_index.h"
#include "upgrade.h"
#include "writeback.h"

/* So often pages that changed while they were written back are written back again. */
#define FB_DROP_TRIES	3
/* Pages looked at under one hold of io_sem. */
#define FB_DROP_LOOK	(4 * FB_FORGET_BATCH)

/* Drops up to a batch of clean pages from *index on; returns whether there may be more. */
static bool fb_drop_batch(struct fb_inode *fi, unsigned long *index, pgoff_t last,
			  struct forebay_dropped *result)
{
	struct fb_sb *fsb = FB_SB(fi->vfs_inode.i_sb);
	struct fb_page *pages[FB_FORGET_BATCH], *page;
	unsigned int nr = 0, looked;

	down_write(&fi->io_sem);
	for (looked = 0; looked < FB_DROP_LOOK && nr < FB_FORGET_BATCH && *index <= last;
	     ++*index, looked++) {
		page = fb_page_next(fi, index, last);
		if (!page)
			break;
		if (page->resident || fb_claim_locked_page(fi, *index)) {
			result->pinned++;
			continue;
		}
		if (page->status == FB_STATUS_CLEAN)
			unmap_mapping_pages(fi->lower->i_mapping, *index, 1, false);
		/* Asked again: who locks a page that is mapped doesn't fault. */
		if (fb_claim_locked_page(fi, *index))
			result->pinned++;
		else if (page->status == FB_STATUS_CLEAN && !fb_page_pinned(fsb, page))
			pages[nr++] = page;
		else
			result->busy++;
	}
	fb_pages_forget(fi, pages, nr);
	up_write(&fi->io_sem);
	result->dropped += nr;
	return looked == FB_DROP_LOOK || nr == FB_FORGET_BATCH;
}

/**
 * fb_drop() - take a range out of PMem
 * @fi: the inode; the caller has a reference. Takes wb_lock and io_sem
 * @first: first page
 * @last: last page
 * @result: gets dropped, pinned and busy
 *
 * Return: 0; or why pages could not be written back: they are still there.
 */
int fb_drop(struct fb_inode *fi, pgoff_t first, pgoff_t last, struct forebay_dropped *result)
{
	unsigned int tries = FB_DROP_TRIES;
	unsigned long index;
	int err;

	result->dropped = 0;
	fb_claims_refresh(fi);
	do {
		err = fb_writeback_range(fi, first, last);
		result->pinned = 0;
		result->busy = 0;
		mutex_lock(&fi->wb_lock);
		index = first;
		while (fb_drop_batch(fi, &index, last, result))
			cond_resched();
		if (!fb_has_pages(fi))
			fb_drop_record(fi);
		mutex_unlock(&fi->wb_lock);
	} while (!err && result->busy && --tries);
	return err;
}
