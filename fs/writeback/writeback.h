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

int fb_writeback_locked(struct fb_inode *fi, pgoff_t first, pgoff_t last);
int fb_writeback_for_reclaim(struct fb_inode *fi, unsigned long *budget);
int fb_writeback_range(struct fb_inode *fi, pgoff_t first, pgoff_t last);
int fb_writeback_file(struct fb_inode *fi, bool killable);
bool fb_wb_lock_soon(struct fb_inode *fi);

#endif
