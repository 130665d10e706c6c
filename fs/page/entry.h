/* SPDX-License-Identifier: GPL-2.0-only */
/* How pages enter and leave the index of a file: entry.c */
#ifndef FOREBAY_PAGE_ENTRY_H
#define FOREBAY_PAGE_ENTRY_H

#include "../forebay.h"

#define FB_MOVE_BATCH	16	/* pages that are committed at once, at most */
#define FB_INVALIDATE_BATCH	64	/* pages that are invalidated at once, at most */

/* A page on its way into the index: copied, not yet committed. */
struct fb_incoming {
	struct fb_page *page;
	pgoff_t index;
	struct folio *folio;		/* below, locked until the page is inserted; NULL: with another */
	bool clean;			/* the lower file has the same, durably */
	bool has_space;			/* below, by the rights of the task that wrote it */
	bool pinned;			/* in a pinned range: set right before the page is committed */
};

void fb_page_insert(struct fb_inode *fi, struct fb_page *page, pgoff_t index, u32 status, bool pinned);
int fb_page_reserve(struct fb_inode *fi, pgoff_t index);
void fb_page_unreserve(struct fb_inode *fi, struct fb_incoming *in);
int fb_pages_commit_and_insert(struct fb_inode *fi, struct fb_incoming *in, unsigned int nr);
void fb_page_detach(struct fb_inode *fi, struct fb_page *page);
void fb_pages_invalidate(struct fb_inode *fi, struct fb_page **pages, unsigned int nr);

#endif
