/* SPDX-License-Identifier: GPL-2.0-only */
/* A sync's volatile pages move to PMem instead of to storage: absorb.c */
#ifndef FOREBAY_SYNC_ABSORB_H
#define FOREBAY_SYNC_ABSORB_H

#include "../forebay.h"

unsigned long fb_absorb_max(const struct fb_sb *fsb);
int fb_absorb(struct fb_inode *fi, unsigned int how);

/*
 * Whether pages of a file may move to PMem without a user's asking for that. A shared futex doesn't work
 * in a page of an emulated device (page/mapping.c): on such a mount, files with shared writable mappings
 * sync below.
 */
static inline bool fb_may_absorb(const struct fb_inode *fi)
{
	return !FB_SB(fi->vfs_inode.i_sb)->is_volatile || !mapping_writably_mapped(fi->lower->i_mapping);
}

#endif
