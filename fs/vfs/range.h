/* SPDX-License-Identifier: GPL-2.0-only */
/* Calls that change a file by ranges: range.c */
#ifndef FOREBAY_VFS_RANGE_H
#define FOREBAY_VFS_RANGE_H

#include "../forebay.h"

int fb_hand_over(struct fb_inode *fi, struct fb_range *range, loff_t start, loff_t end, bool evict);
void fb_take_back(struct fb_inode *fi, struct fb_range *range);
long fb_fallocate(struct file *file, int mode, loff_t offset, loff_t len);
ssize_t fb_copy_file_range(struct file *in, loff_t pos_in, struct file *out, loff_t pos_out, size_t len,
			   unsigned int flags);
loff_t fb_remap_file_range(struct file *in, loff_t pos_in, struct file *out, loff_t pos_out, loff_t len,
			   unsigned int flags);
int fb_fadvise(struct file *file, loff_t offset, loff_t len, int advice);
int fb_fiemap(struct inode *inode, struct fiemap_extent_info *info, u64 start, u64 len);

#endif
