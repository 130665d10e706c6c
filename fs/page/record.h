/* SPDX-License-Identifier: GPL-2.0-only */
/* The file record of an inode: record.c */
#ifndef FOREBAY_PAGE_RECORD_H
#define FOREBAY_PAGE_RECORD_H

#include "../forebay.h"
#include "share.h"

void fb_record_attach(struct fb_inode *fi, u32 file, u32 generation, u64 size, struct file *wb_file);
struct file *fb_record_file(struct fb_inode *fi);
int fb_record_lock(struct fb_inode *fi);
void fb_record_mark(struct fb_inode *fi);
void fb_is_below(struct fb_inode *fi);
int fb_record_for_pages(struct fb_inode *fi);
struct file *fb_record_forget(struct fb_inode *fi);

/*
 * Whether pages of the file may be in PMem. Not if the lower file system encrypts it (fscrypt), for PMem
 * would hold them in plaintext; nor if it is mapped straight to persistent memory (DAX) and has no page
 * cache that they could come from. Every sync of such a file goes below.
 */
static inline bool fb_may_cache(const struct fb_inode *fi)
{
	return !IS_ENCRYPTED(fi->lower) && !IS_DAX(fi->lower);
}

/* The file and its record are of use now: the worker gives them a second chance. */
static inline void fb_record_use(struct fb_inode *fi)
{
	if (!test_bit(FB_RECORD_USED, &fi->flags))
		set_bit(FB_RECORD_USED, &fi->flags);
	fb_share_use(fi);
}

/* The file has nothing more that storage has refused. */
static inline void fb_write_succeeds(struct fb_inode *fi)
{
	if (test_and_clear_bit(FB_WRITE_FAILED, &fi->flags))
		atomic_dec(&FB_SB(fi->vfs_inode.i_sb)->nr_failing);
}

#endif
