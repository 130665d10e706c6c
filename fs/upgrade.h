/* SPDX-License-Identifier: GPL-2.0-only */
/* Pages go to PMem because a range of the file belongs there: upgrade.c, pin.c, drop.c */
#ifndef FOREBAY_UPGRADE_H
#define FOREBAY_UPGRADE_H

#include "forebay.h"

/* upgrade.c */
int fb_bring_page(struct fb_inode *fi, pgoff_t index);
int fb_upgrade(struct fb_inode *fi, pgoff_t *index, pgoff_t last, bool whole);
void fb_upgrade_mapped(struct fb_inode *fi, pgoff_t first, pgoff_t last);
int fb_wait_for_space(struct fb_sb *fsb, unsigned long *deadline);

/* pin.c */
long fb_ioctl_range(struct file *file, unsigned int nr, struct forebay_range __user *user);

/* drop.c */
int fb_drop(struct fb_inode *fi, pgoff_t first, pgoff_t last, struct forebay_dropped *result);

/* info.c */
int fb_info(struct fb_inode *fi, struct forebay_info *info);

#endif
