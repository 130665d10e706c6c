// SPDX-License-Identifier: GPL-2.0-only
/*
 * syncfs(2) and sync(2): the lower file system makes durable what is volatile, in all files at once. sync.c
 * is about one file.
 */
#include "../names/log.h"
#include "../page/record.h"
#include "../page/size.h"
#include "../page/times.h"
#include "../page/walk.h"
#include "mapped.h"
#include "sync.h"
#include "syncfs.h"

/* By fb_sync_all(), which has seen fi->size_to_sync before. */
static void fb_was_synced(struct fb_inode *fi)
{
	if (!test_bit(FB_IS_BELOW, &fi->flags)) {
		down_write(&fi->io_sem);
		fb_is_below(fi);
		up_write(&fi->io_sem);
	}
	down_read(&fi->io_sem);
	fb_times_are_below(fi, &fi->times_to_sync);
	up_read(&fi->io_sem);
	fb_sync_size(fi, &fi->size_to_sync, true);
}

/**
 * fb_sync_all() - syncfs(2) and sync(2)
 * @fsb: the mount
 *
 * Mapped stores are flushed, and what is volatile is the lower file system's to sync. Only then are the
 * sizes noted that the files had before. Of two calls at once, one may note a size that the other has seen
 * and not yet made durable. A crash in between may leave zeros in place of appended bytes, which no call has
 * acknowledged. A lock that keeps the calls apart would be held over the lower sync. It would be one more
 * way to the deadlock that docs/decisions/locks.md describes for freezing.
 *
 * Return: 0 or the lower file system's error.
 */
int fb_sync_all(struct fb_sb *fsb)
{
	struct fb_walk walk;
	struct fb_inode *fi;
	int err;

	fb_walk_begin(fsb, &fsb->inodes, &walk);
	while ((fi = fb_walk_next(fsb, &walk))) {
		mutex_lock(&fi->sync_lock);
		fb_sync_pages(fi, 0, ULONG_MAX);
		fb_time_of_stores(fi, NULL);
		fi->size_to_sync = fb_see_size(fi);
		fi->times_to_sync = fb_times_now(fi);
		fi->is_being_synced = true;
		mutex_unlock(&fi->sync_lock);
		iput(&fi->vfs_inode);
	}
	err = fb_names_sync_lower(fsb);
	fb_walk_begin(fsb, &fsb->inodes, &walk);
	while (!err && (fi = fb_walk_next(fsb, &walk))) {
		mutex_lock(&fi->sync_lock);
		if (fi->is_being_synced)
			fb_was_synced(fi);
		fi->is_being_synced = false;
		mutex_unlock(&fi->sync_lock);
		iput(&fi->vfs_inode);
	}
	fb_walk_end(fsb, &walk);
	return err;
}
