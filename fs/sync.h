/* SPDX-License-Identifier: GPL-2.0-only */
/* What a sync call owes, and how it pays: sync.c, absorb.c */
#ifndef FOREBAY_SYNC_H
#define FOREBAY_SYNC_H

#include "page_index.h"

/* sync.c */
int fb_sync_inode(struct fb_inode *fi, struct file *lower, loff_t start, loff_t end, bool datasync);
int fb_sync_below(struct fb_inode *fi, struct file *lower, bool datasync);
void fb_sync_pages(struct fb_inode *fi, pgoff_t first, pgoff_t last);
int fb_sync_all(struct fb_sb *fsb);
int fb_sync_lower_fs(struct fb_sb *fsb);

/* absorb.c */
int fb_absorb(struct fb_inode *fi);
struct folio *fb_lower_folio(struct fb_inode *fi, pgoff_t index, bool alone);
int fb_move_in(struct fb_inode *fi, pgoff_t index, bool alone, struct fb_incoming *in);

#endif
