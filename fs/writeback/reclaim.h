/* SPDX-License-Identifier: GPL-2.0-only */
/* Clean pages make room: reclaim.c */
#ifndef FOREBAY_WRITEBACK_RECLAIM_H
#define FOREBAY_WRITEBACK_RECLAIM_H

#include "../forebay.h"

bool fb_reclaim_spares(struct fb_inode *fi, unsigned long want);
void fb_reclaim(struct fb_sb *fsb, unsigned long want);
void fb_reclaim_if_low(struct fb_sb *fsb, unsigned long looks);

#endif
