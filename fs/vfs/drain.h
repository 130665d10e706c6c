/* SPDX-License-Identifier: GPL-2.0-only */
/* The lower file system is to hold everything: drain.c */
#ifndef FOREBAY_VFS_DRAIN_H
#define FOREBAY_VFS_DRAIN_H

#include "../forebay.h"

int fb_flush_all(struct fb_sb *fsb, bool killable);
int fb_drain(struct fb_sb *fsb);

#endif
