/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What sync calls make durable, and where: sync.c
 *
 * Floor 5, sync: what a sync call makes durable, and a page's way into PMem.
 * May use: pin and what is below. Used by: writeback, vfs.
 */
#ifndef FOREBAY_SYNC_SYNC_H
#define FOREBAY_SYNC_SYNC_H

#include "../forebay.h"

int fb_sync_size(struct fb_inode *fi, const struct fb_size_seen *end, bool datasync);
int fb_sync_size_after_truncation(struct fb_inode *fi, struct file *lower, const struct fb_size_seen *end);
int fb_sync_below(struct fb_inode *fi, struct file *lower, bool datasync);
int fb_flush_truncation(struct fb_inode *fi);
int fb_sync_inode(struct fb_inode *fi, struct file *file, struct file *lower, loff_t start, loff_t end,
		  bool datasync);
int fb_fsync(struct file *file, loff_t start, loff_t end, int datasync);

/*
 * The inode changed below. An fdatasync there may leave out part of that (ext4: a new link), so
 * that a later fsync has to go below once more.
 */
static inline void fb_mark_needs_sync(struct fb_inode *fi)
{
	set_bit(FB_NEEDS_SYNC, &fi->flags);
	set_bit(FB_NEEDS_FSYNC, &fi->flags);
}

/*
 * True if a crash may take the file's name, or bring back what was truncated. Takes no lock: a sync counts
 * itself before it clears the flag. A sync that fails sets the flag again before it leaves the count.
 */
static inline bool fb_name_needs_sync(const struct fb_inode *fi)
{
	if (test_bit(FB_NEEDS_SYNC, &fi->flags) || READ_ONCE(fi->names.end))
		return true;
	smp_rmb();	/* pairs with fb_sync_begin() */
	if (atomic_read(&fi->syncs_below.of_names))
		return true;
	smp_rmb();	/* pairs with fb_sync_run() */
	return test_bit(FB_NEEDS_SYNC, &fi->flags);
}

#endif
