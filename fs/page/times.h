/* SPDX-License-Identifier: GPL-2.0-only */
/* A file's mtime and ctime: times.c */
#ifndef FOREBAY_PAGE_TIMES_H
#define FOREBAY_PAGE_TIMES_H

#include "../forebay.h"

void fb_store_time(struct fb_inode *fi);
int fb_sync_time(struct fb_inode *fi);
struct fb_times fb_times_now(struct fb_inode *fi);
void fb_times_are_below(struct fb_inode *fi, const struct fb_times *times);
bool fb_time_only_in_record(const struct fb_inode *fi);
int fb_time_to_lower(struct fb_inode *fi);
void fb_recover_time(struct fb_inode *fi, s64 time, struct file *wb_file);

#endif
