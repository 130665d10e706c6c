/* SPDX-License-Identifier: GPL-2.0-only */
/* A page's way into PMem: move.c */
#ifndef FOREBAY_SYNC_MOVE_H
#define FOREBAY_SYNC_MOVE_H

#include "../page/entry.h"
#include "../page/index.h"

struct folio *fb_lower_folio(struct fb_inode *fi, pgoff_t index, bool alone, struct folio *locked);
int fb_move_begin(struct fb_inode *fi, pgoff_t index, struct fb_incoming *in);
int fb_move_in(struct fb_inode *fi, pgoff_t index, bool alone, struct folio *locked, struct fb_incoming *in);
int fb_pages_move_in(struct fb_inode *fi, struct fb_incoming *in, unsigned int nr, loff_t size);
void fb_pages_stay_out(struct fb_inode *fi, struct fb_incoming *in, unsigned int nr);

#endif
