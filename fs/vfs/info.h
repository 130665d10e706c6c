/* SPDX-License-Identifier: GPL-2.0-only */
/* Which pages of a file are in PMem, and in which state: info.c */
#ifndef FOREBAY_VFS_INFO_H
#define FOREBAY_VFS_INFO_H

#include "../forebay.h"

int fb_count_pages(struct fb_inode *fi, pgoff_t first, pgoff_t last, bool volatile_too,
		   struct forebay_info *info);
int fb_info(struct fb_inode *fi, struct forebay_info *info);

#endif
