/* SPDX-License-Identifier: GPL-2.0-only */
/* How many pages a file may keep while others need some: share.c */
#ifndef FOREBAY_PAGE_SHARE_H
#define FOREBAY_PAGE_SHARE_H

#include "../forebay.h"

void fb_share_count(struct fb_inode *fi, int n);
unsigned long fb_share(const struct fb_sb *fsb, unsigned long want);
bool fb_may_have(const struct fb_inode *fi, unsigned long want);
bool fb_spares(const struct fb_inode *fi, unsigned long share);
void fb_share_given_up(struct fb_sb *fsb, unsigned long pages);
void fb_shares_end(const struct fb_sb *fsb);

/* The file is not idle. Any context. */
static inline void fb_share_use(struct fb_inode *fi)
{
	unsigned long now = READ_ONCE(FB_SB(fi->vfs_inode.i_sb)->nr_given_up);

	if (READ_ONCE(fi->used_at) != now)
		WRITE_ONCE(fi->used_at, now);
}

#endif
