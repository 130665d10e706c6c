/* SPDX-License-Identifier: GPL-2.0-only */
/* What a mount binds: mount.c */
#ifndef FOREBAY_VFS_MOUNT_H
#define FOREBAY_VFS_MOUNT_H

#include <linux/fs_context.h>

#include "../forebay.h"

bool fb_same_cache(const struct fb_sb *fsb, const char *path);
struct super_block *fb_frozen_mount(struct fs_context *fc, const char *cache);
int fb_choose_lower(struct fb_sb *fsb, struct fs_context *fc, struct ps_handle *root);
bool fb_served_elsewhere(struct fb_sb *fsb, struct inode *lower, int (*test)(struct inode *, void *));
void fb_forget_lower(struct fb_sb *fsb);
int fb_bind(struct fb_sb *fsb, struct fs_context *fc, const struct ps_handle *root);

#endif
