/* SPDX-License-Identifier: GPL-2.0-only */
/* Upper inodes: inode.c */
#ifndef FOREBAY_VFS_INODE_H
#define FOREBAY_VFS_INODE_H

#include "../forebay.h"

struct fb_name_record;

struct inode *fb_alloc_inode(struct super_block *sb);
void fb_free_inode(struct inode *inode);
int fb_inode_cache_create(void);
void fb_inode_cache_destroy(void);
struct inode *fb_iget(struct super_block *sb, struct inode *lower);
void fb_evict_inode(struct inode *inode);
void fb_name_changed(struct inode *inode, const struct fb_name_record *rec);
void fb_last_name_goes(struct inode *inode, bool goes);
void fb_name_removed(struct inode *inode, const struct fb_name_record *rec);

#endif
