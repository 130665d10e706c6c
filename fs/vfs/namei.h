/* SPDX-License-Identifier: GPL-2.0-only */
/* Names: namei.c */
#ifndef FOREBAY_VFS_NAMEI_H
#define FOREBAY_VFS_NAMEI_H

#include "../forebay.h"

extern const struct inode_operations fb_dir_inode_operations;
extern const struct inode_operations fb_symlink_inode_operations;

#endif
