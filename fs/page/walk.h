/* SPDX-License-Identifier: GPL-2.0-only */
/* Walks over the files of a mount: walk.c */
#ifndef FOREBAY_PAGE_WALK_H
#define FOREBAY_PAGE_WALK_H

#include "../forebay.h"

void fb_walk_begin(struct fb_sb *fsb, struct list_head *files, struct fb_walk *walk);
struct fb_inode *fb_walk_next(struct fb_sb *fsb, struct fb_walk *walk);
void fb_walk_end(struct fb_sb *fsb, struct fb_walk *walk);

#endif
