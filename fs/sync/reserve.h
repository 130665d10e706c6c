/* SPDX-License-Identifier: GPL-2.0-only */
/* Space below for what is appended: reserve.c */
#ifndef FOREBAY_SYNC_RESERVE_H
#define FOREBAY_SYNC_RESERVE_H

#include "../forebay.h"

/* Values of fb_inode->reserved that are no offsets. */
#define FB_RESERVE_UNASKED	0
#define FB_RESERVE_NEVER	(-1)

bool fb_lower_is_data(struct fb_inode *fi, struct file *lower, loff_t pos);
int fb_space_for_write(struct fb_inode *fi, struct file *lower, pgoff_t index);
bool fb_reserve(struct fb_inode *fi, struct file *lower, loff_t end);
void fb_reserve_trim(struct fb_inode *fi, struct file *lower);

#endif
