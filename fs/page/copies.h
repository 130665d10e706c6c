/* SPDX-License-Identifier: GPL-2.0-only */
/* Copies between memory and PMem, and their limits: copies.c */
#ifndef FOREBAY_PAGE_COPIES_H
#define FOREBAY_PAGE_COPIES_H

#include "../forebay.h"

void fb_copied(struct fb_sb *fsb, enum fb_counter which, size_t bytes);
void fb_set_copy_limits(struct fb_sb *fsb, const struct fb_copy_limits *limits);
void fb_copies_init(struct fb_sb *fsb);
void fb_copies_free(struct fb_sb *fsb);
int fb_copy_begin(struct fb_inode *fi, bool nowait);
void fb_copy_end(struct fb_sb *fsb, int slots);
int fb_wait_for_copies(struct fb_sb *fsb, bool nowait);
int fb_sync_wait_for_copies(struct fb_sb *fsb);

/**
 * fb_copies_limited() - whether calls that copy may have to wait
 * @fsb: the mount
 */
static inline bool fb_copies_limited(struct fb_sb *fsb)
{
	return READ_ONCE(fsb->copies.limited);
}

#endif
