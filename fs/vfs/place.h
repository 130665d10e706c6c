/* SPDX-License-Identifier: GPL-2.0-only */
/* Recovered pages meet their inodes: place.c */
#ifndef FOREBAY_VFS_PLACE_H
#define FOREBAY_VFS_PLACE_H

#include "../forebay.h"

int fb_recover_rest(struct fb_sb *fsb);
void fb_recover_work(struct work_struct *work);

#endif
