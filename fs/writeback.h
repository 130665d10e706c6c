/* SPDX-License-Identifier: GPL-2.0-only */
/* Pages go back to the lower file: writeback.c, reclaim.c */
#ifndef FOREBAY_WRITEBACK_H
#define FOREBAY_WRITEBACK_H

#include "forebay.h"

/* writeback.c */
void fb_writeback_kick(struct fb_sb *fsb);
void fb_writeback_work(struct work_struct *work);
int fb_writeback_range(struct fb_inode *fi, pgoff_t first, pgoff_t last);
int fb_evict_range(struct fb_inode *fi, pgoff_t first, pgoff_t last);
int fb_writeback_all(struct fb_sb *fsb, bool killable);

/* reclaim.c */
unsigned int fb_reclaim(struct fb_sb *fsb, unsigned long want);
void fb_drop_record(struct fb_inode *fi);
void fb_drop_range(struct fb_inode *fi, pgoff_t first, pgoff_t last);
void fb_drop_inode(struct fb_inode *fi);
void fb_abandon(struct fb_inode *fi);

#endif
