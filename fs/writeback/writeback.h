/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Pages are written back to the lower file: writeback.c
 *
 * Floor 6, writeback: a page's way out of PMem, when and how many; and what a crash or a deletion has left
 * there without an inode.
 * May use: sync and what is below. Used by: replay, vfs.
 */
#ifndef FOREBAY_WRITEBACK_WRITEBACK_H
#define FOREBAY_WRITEBACK_WRITEBACK_H

#include "../forebay.h"

#define FB_WRITEBACK_BATCH	256
#define FB_BOUNCE_PAGES		32	/* copied, and written, at once */

/* A writeback of a range of one file, and the batch that it is at. */
struct fb_batch {
	struct fb_inode *fi;
	pgoff_t next, last;		/* pages that it has not looked at yet */
	xa_mark_t mark;			/* of the pages that it writes */
	bool more;			/* there may be some in the range */
	bool whole;			/* the range is the whole file */
	bool lost;			/* a page was left out because it is bad */
	int err;
	unsigned long cleaned;		/* pages that are clean now */
	unsigned int nr;
	DECLARE_BITMAP(changed, FB_WRITEBACK_BATCH);	/* the others are the same below */
	struct fb_page *pages[FB_WRITEBACK_BATCH];
	u8 bounce[FB_BOUNCE_PAGES * PAGE_SIZE];
};

int fb_writeback_locked(struct fb_inode *fi, pgoff_t first, pgoff_t last);
int fb_writeback_range(struct fb_inode *fi, pgoff_t first, pgoff_t last);
int fb_writeback_file(struct fb_inode *fi, bool killable);
struct fb_batch *fb_batch_alloc(struct fb_inode *fi, pgoff_t first, pgoff_t last, xa_mark_t mark);
bool fb_batch_more(const struct fb_batch *batch);
void fb_writeback_batch(struct fb_inode *fi, struct fb_batch *batch);
int fb_batch_free(struct fb_batch *batch);
bool fb_wb_lock_soon(struct fb_inode *fi);

#endif
