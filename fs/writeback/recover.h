/* SPDX-License-Identifier: GPL-2.0-only */
/* Pages found at mount: recover.c */
#ifndef FOREBAY_WRITEBACK_RECOVER_H
#define FOREBAY_WRITEBACK_RECOVER_H

#include <linux/fs_context.h>

#include "../forebay.h"

int fb_recover_scan(struct fb_sb *fsb, struct fs_context *fc);
bool fb_recover_found_any(struct fb_sb *fsb);
int fb_recover_attach(struct fb_inode *fi);
int fb_recover_tried(struct fb_sb *fsb, const struct ps_handle *handle, int err);
bool fb_recover_next(struct fb_sb *fsb, unsigned int skip, struct ps_handle *handle);
unsigned long fb_recover_discard(struct fb_sb *fsb);
void fb_recover_free(struct fb_sb *fsb);

#endif
