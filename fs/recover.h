/* SPDX-License-Identifier: GPL-2.0-only */
/* Pages found at mount: recover.c */
#ifndef FOREBAY_RECOVER_H
#define FOREBAY_RECOVER_H

#include <linux/fs_context.h>

#include "forebay.h"

int fb_recover_scan(struct fb_sb *fsb, struct fs_context *fc);
bool fb_recover_found_any(struct fb_sb *fsb);
int fb_recover_attach(struct fb_inode *fi);
void fb_recover_work(struct work_struct *work);
int fb_recover_rest(struct fb_sb *fsb);
unsigned long fb_recover_discard(struct fb_sb *fsb);
void fb_recover_free(struct fb_sb *fsb);

#endif
