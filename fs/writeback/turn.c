// SPDX-License-Identifier: GPL-2.0-only
/*
 * A file's turn: the worker has its pages written back, and doesn't wait for long.
 *
 * How long a file takes may be its users' doing. The lower file system charges what it writes to the cgroup
 * whose tasks brought the folios into its page cache, and that cgroup may write little in a second. There is
 * one worker for the files of all users. So each file is written back by a work of its own. If that takes
 * longer than FB_TURN, the worker goes on to the next file, and passes this one over until it has ended.
 */
#include <linux/wait_bit.h>

#include "turn.h"
#include "writeback.h"

#define FB_TURN	HZ

static void fb_turn_work(struct work_struct *work)
{
	struct fb_inode *fi = container_of(work, struct fb_inode, turn.work);

	WRITE_ONCE(fi->turn.err, fb_writeback_for_reclaim(fi, &fi->turn.budget));
	clear_and_wake_up_bit(FB_HAS_TURN, &fi->flags);
	iput(&fi->vfs_inode);
}

/**
 * fb_turn_init_once() - prepare an inode for its turns
 * @fi: the inode
 */
void fb_turn_init_once(struct fb_inode *fi)
{
	INIT_WORK(&fi->turn.work, fb_turn_work);
}

/**
 * fb_turn() - have a file's pages written back for reclaim
 * @fi: the inode; the caller has a reference
 * @budget: as for fb_writeback_for_reclaim(), or NULL: no limit. Nothing is left of it if the file takes
 *	long, and all if the file is at its last turn still
 *
 * Context: process. Sleeps. An unmount flushes fb_sb->wq before inodes go.
 * Return: 0, also in these two cases; or the error.
 */
int fb_turn(struct fb_inode *fi, unsigned long *budget)
{
	if (test_and_set_bit(FB_HAS_TURN, &fi->flags))
		return 0;
	fi->turn.budget = budget ? *budget : ULONG_MAX;
	ihold(&fi->vfs_inode);
	queue_work(FB_SB(fi->vfs_inode.i_sb)->wq, &fi->turn.work);
	if (wait_on_bit_timeout(&fi->flags, FB_HAS_TURN, TASK_UNINTERRUPTIBLE, FB_TURN)) {
		if (budget)
			*budget = 0;
		return 0;
	}
	if (budget)
		*budget = READ_ONCE(fi->turn.budget);
	return READ_ONCE(fi->turn.err);
}
