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

/*
 * The lower sync of the call with this number has ended. Of a file that another call has looked at since,
 * only the size is noted: what else that call has seen is durable when its own lower sync ends.
 */
static int fb_was_synced(struct fb_inode *fi, u64 number)
{
	lockdep_assert_held(&fi->sync_lock);
	if (fi->looked_at_by == number) {
		fi->looked_at_by = 0;
		down_write(&fi->io_sem);
		fb_is_below(fi);
		fb_times_are_below(fi, &fi->times_to_sync);
		up_write(&fi->io_sem);
	} else if (!fi->looked_at_by) {
		return 0;
	}
	return fb_sync_size(fi, &fi->size_to_sync, true);
}

/* As fb_sync_size_after_truncation(), for a file that has a record. */
static int fb_sync_size_of_record(struct fb_inode *fi, const struct fb_size_seen *end)
{
	struct file *lower = fb_record_file(fi);
	int err;

	if (!lower)	/* all is below */
		return 0;
	err = fb_sync_size_after_truncation(fi, lower, end);
	__fput_sync(lower);
	return err;
}

/* The second look at a file. */
static int fb_end_sync(struct fb_inode *fi, u64 number)
{
	struct fb_size_seen end;
	int err;

	mutex_lock(&fi->sync_lock);
	err = fb_was_synced(fi, number);
	end = fi->size_to_sync;
	mutex_unlock(&fi->sync_lock);
	if (err == -EAGAIN)
		return fb_sync_size_of_record(fi, &end);
	return READ_ONCE(fi->file) == FB_NO_FILE ? 0 : err;
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
 * Return: 0; the lower file system's error; or the first error of a file whose size could not be noted.
 */
int fb_sync_all(struct fb_sb *fsb)
{
	u64 number = atomic64_inc_return(&fsb->syncs_of_all);
	struct fb_walk walk;
	struct fb_inode *fi;
	int err, err2;

	fb_walk_begin(fsb, &fsb->inodes, &walk);
	while ((fi = fb_walk_next(fsb, &walk))) {
		mutex_lock(&fi->sync_lock);
		fb_sync_pages(fi, 0, ULONG_MAX);
		fb_time_of_stores(fi, NULL);
		fi->size_to_sync = fb_see_size(fi);
		fi->times_to_sync = fb_times_now(fi);
		fi->looked_at_by = number;
		mutex_unlock(&fi->sync_lock);
		iput(&fi->vfs_inode);
	}
	err = fb_names_sync_lower(fsb);
	if (err)
		return err;
	fb_walk_begin(fsb, &fsb->inodes, &walk);
	while ((fi = fb_walk_next(fsb, &walk))) {
		err2 = fb_end_sync(fi, number);
		err = err ?: err2;
		iput(&fi->vfs_inode);
	}
	return err;
}
