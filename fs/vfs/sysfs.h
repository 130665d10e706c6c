/* SPDX-License-Identifier: GPL-2.0-only */
/* /sys/fs/forebay/: sysfs.c */
#ifndef FOREBAY_VFS_SYSFS_H
#define FOREBAY_VFS_SYSFS_H

#include "../forebay.h"

int fb_sysfs_add(struct fb_sb *fsb);
void fb_sysfs_remove(struct fb_sb *fsb);
int fb_sysfs_init(void);
void fb_sysfs_exit(void);

#endif
