/* SPDX-License-Identifier: GPL-2.0-only */
/* Attributes of lower inodes: attr.c */
#ifndef FOREBAY_LOWER_ATTR_H
#define FOREBAY_LOWER_ATTR_H

#include "../forebay.h"

void fb_copy_attr(struct inode *inode);
void fb_attr_changed(struct inode *inode, bool noted);
int fb_set_times(struct file *file, struct timespec64 mtime, struct timespec64 ctime);
int fb_set_attr_at(struct mnt_idmap *idmap, struct dentry *lower, struct iattr *attr,
		   struct timespec64 ctime);
int fb_set_lower_size(struct fb_sb *fsb, struct file *file, loff_t size);

#endif
