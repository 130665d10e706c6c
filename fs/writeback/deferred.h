/* SPDX-License-Identifier: GPL-2.0-only */
/* What must become durable below before PMem may forget it: deferred.c */
#ifndef FOREBAY_WRITEBACK_DEFERRED_H
#define FOREBAY_WRITEBACK_DEFERRED_H

#include "../forebay.h"

void fb_settle_soon(struct fb_sb *fsb);
void fb_settle_deleted(struct fb_inode *fi);
int fb_settle_cut(struct fb_inode *fi);
int fb_settle_all(struct fb_sb *fsb);
void fb_settle_work(struct work_struct *work);
void fb_settle_free(struct fb_sb *fsb);

#endif
