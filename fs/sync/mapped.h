/* SPDX-License-Identifier: GPL-2.0-only */
/* Stores to DAX pages through mappings: mapped.c */
#ifndef FOREBAY_SYNC_MAPPED_H
#define FOREBAY_SYNC_MAPPED_H

#include "../forebay.h"

void fb_sync_pages(struct fb_inode *fi, pgoff_t first, pgoff_t last);
void fb_note_store(struct fb_inode *fi);
void fb_time_of_stores(struct fb_inode *fi, struct file *lower);
void fb_see_stores(struct fb_inode *fi, unsigned long interval);
int fb_end_stores(struct fb_inode *fi);

#endif
