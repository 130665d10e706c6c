/* SPDX-License-Identifier: GPL-2.0-only */
/* Pages and file records leave PMem: evict.c */
#ifndef FOREBAY_WRITEBACK_EVICT_H
#define FOREBAY_WRITEBACK_EVICT_H

#include "../forebay.h"

void fb_invalidate_range(struct fb_inode *fi, pgoff_t first, pgoff_t last);
void fb_evict_record(struct fb_inode *fi);
int fb_settle_range(struct fb_inode *fi, pgoff_t first, pgoff_t last);
int fb_evict_range(struct fb_inode *fi, pgoff_t first, pgoff_t last);
void fb_evict_for_reclaim(struct fb_inode *fi);
int fb_evict_unpinned(struct fb_inode *fi, pgoff_t first, pgoff_t last, struct forebay_dropped *result);
void fb_evict_file(struct fb_inode *fi);
void fb_abandon(struct fb_inode *fi);

#endif
