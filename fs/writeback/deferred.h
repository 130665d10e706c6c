/* SPDX-License-Identifier: GPL-2.0-only */
/* What must become durable below before PMem may forget it: deferred.c */
#ifndef FOREBAY_WRITEBACK_DEFERRED_H
#define FOREBAY_WRITEBACK_DEFERRED_H

#include "../forebay.h"

void fb_orphan_deleted(struct fb_inode *fi);
int fb_flush_orphans(struct fb_sb *fsb);
void fb_orphan_work(struct work_struct *work);
void fb_orphans_free(struct fb_sb *fsb);

#endif
