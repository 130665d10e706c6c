/* SPDX-License-Identifier: GPL-2.0-only */
/* Calls that change a file by ranges: range.c */
#ifndef FOREBAY_RANGE_H
#define FOREBAY_RANGE_H

#include "forebay.h"

int fb_set_lower_size(struct fb_sb *fsb, struct file *file, loff_t size);
int fb_hand_over(struct fb_inode *fi, loff_t start, loff_t end, bool evict);
void fb_take_back(struct fb_inode *fi);
int fb_settle_size(struct fb_inode *fi);
void fb_note_size(struct fb_inode *fi, u64 word);
void fb_zero_tail(struct fb_inode *fi, loff_t size);
long fb_fallocate(struct file *file, int mode, loff_t offset, loff_t len);
ssize_t fb_copy_file_range(struct file *in, loff_t pos_in, struct file *out, loff_t pos_out, size_t len,
			   unsigned int flags);
loff_t fb_remap_file_range(struct file *in, loff_t pos_in, struct file *out, loff_t pos_out, loff_t len,
			   unsigned int flags);
loff_t fb_llseek(struct file *file, loff_t offset, int whence);
int fb_fadvise(struct file *file, loff_t offset, loff_t len, int advice);

#endif
