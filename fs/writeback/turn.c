// SPDX-License-Identifier: GPL-2.0-only
/*
 * A file's turn: the workers have done below what the file needs, and don't wait for long. Its truncation
 * becomes durable, its pages are written back, and so is its time if it has no page in PMem.
 *
 * How long a file takes may be its users' doing. The lower file system charges what it writes to the cgroup
 * whose tasks brought the folios into its page cache, and that cgroup may write little in a second. There is
 * one worker for the files of all users. So each file is written back by a work of its own. If that takes
 * longer than FB_TURN, the worker goes on to the next file, and passes this one over until it has ended. So
 * does the worker of deferred.c. Neither of the two calls a file's lower fsync itself.
 *
 * A cgroup may have many such files. The worker waits half as long for a file with each other file of its
 * cgroup that is at its turn. If these are FB_TURNS_OF_GROUP, the file is passed over. So one cgroup's files
 * cost the others some two seconds in all. They don't use up the works of the workqueue, which is apart
 * from the mount's other one: a read that ends (vfs/direct.c) doesn't wait for them.
 *
 * A turn writes in batches. After each one it gives up some clean pages if free ones are few. During a batch
 * no page of the file can be given up (wb_lock), and a turn may last minutes on slow storage. If the worker
 * alone gave pages up, syncs would find none free while most of the cache is clean.
 *
 * A turn in which storage refuses something, or no page becomes clean, is in vain. The file has no other turn
 * for FB_RETRY_DELAY. So the workers needn't rest themselves, and serve other files meanwhile.
 */
#include <linux/wait_bit.h>

#include "../page/index.h"
#include "../page/size.h"
#include "../page/times.h"
#include "../sync/sync.h"
#include "reclaim.h"
#include "turn.h"
#include "writeback.h"

#define FB_TURN	HZ
/* Pages that reclaim may look at after each batch. */
#define FB_TURN_LOOKS	(4 * FB_WRITEBACK_BATCH)
/* How many files of one cgroup may be at their turn at once. */
#define FB_TURNS_OF_GROUP	16

/* What stands for the cgroup that the lower file system charges now; only to be compared with others. */
static const void *fb_turn_group(const struct inode *lower)
{
#ifdef CONFIG_CGROUP_WRITEBACK
	return READ_ONCE(lower->i_wb);
#else
	return NULL;
#endif
}

/* The file is at its turn, unless so many of its cgroup are. Returns how many were before. */
static unsigned int fb_turn_begin(struct fb_sb *fsb, struct fb_inode *fi)
{
	unsigned int others = 0;
	struct fb_inode *other;

	fi->turn.group = fb_turn_group(fi->lower);
	spin_lock(&fsb->inodes_lock);
	list_for_each_entry(other, &fsb->turns, turn.list)
		others += other->turn.group == fi->turn.group;
	if (others < FB_TURNS_OF_GROUP)
		list_add(&fi->turn.list, &fsb->turns);
	spin_unlock(&fsb->inodes_lock);
	return others;
}

static bool fb_needs_turn(struct fb_inode *fi)
{
	if (test_bit(FB_TURN_IN_VAIN, &fi->flags) && time_before(jiffies, READ_ONCE(fi->turn.next)))
		return false;
	return xa_marked(&fi->index, FB_MARK_RECLAIM) || fb_is_truncated(fi) ||
	       (!fb_has_pages(fi) && fb_time_only_in_record(fi));
}

/*
 * Writes pages back but those that would stay anyway. The batch that uses the rest of the budget up may take
 * more. Returns 0; -EAGAIN: pages were written, and none is clean; or the error.
 */
static int fb_turn_write(struct fb_inode *fi)
{
	struct fb_batch *batch = fb_batch_alloc(fi, 0, ULONG_MAX, FB_MARK_RECLAIM);
	unsigned long *budget = &fi->turn.budget, before = *budget;
	bool in_vain;

	while (fb_batch_more(batch) && *budget && fb_wb_lock_soon(fi)) {
		fb_writeback_batch(fi, batch);
		*budget -= min_t(unsigned long, *budget, batch->nr);
		mutex_unlock(&fi->wb_lock);
		fb_reclaim_if_low(FB_SB(fi->vfs_inode.i_sb), FB_TURN_LOOKS);
	}
	in_vain = *budget < before && !batch->cleaned;
	return fb_batch_free(batch) ?: in_vain ? -EAGAIN : 0;
}

static int fb_turn_run(struct fb_inode *fi)
{
	int err = fb_is_truncated(fi) ? fb_flush_truncation(fi) : 0;

	err = fb_turn_write(fi) ?: err;
	if (!fb_has_pages(fi) && fb_wb_lock_soon(fi)) {
		err = fb_time_to_lower(fi) ?: err;
		mutex_unlock(&fi->wb_lock);
	}
	return err;
}

static void fb_turn_work(struct work_struct *work)
{
	struct fb_inode *fi = container_of(work, struct fb_inode, turn.work);
	struct fb_sb *fsb = FB_SB(fi->vfs_inode.i_sb);
	bool in_vain;

	in_vain = fb_turn_run(fi);	/* it has told of its error */
	WRITE_ONCE(fi->turn.next, jiffies + FB_RETRY_DELAY);
	assign_bit(FB_TURN_IN_VAIN, &fi->flags, in_vain);
	spin_lock(&fsb->inodes_lock);
	list_del(&fi->turn.list);
	spin_unlock(&fsb->inodes_lock);
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
 * fb_turn() - give a file its turn
 * @fi: the inode; the caller has a reference
 * @budget: pages that it may write, less those that it has written afterwards, or NULL: no limit. Nothing
 *	is left of it if the file takes long, and all if the file is at its last turn still
 *
 * Context: process. Sleeps. An unmount flushes fb_sb->turn_wq before inodes go.
 * Return: true in these two cases, and if too many files of its cgroup are at their turn: it is worth a look
 * soon. False: the turn is over, or the file needs none now.
 */
bool fb_turn(struct fb_inode *fi, unsigned long *budget)
{
	struct fb_sb *fsb = FB_SB(fi->vfs_inode.i_sb);
	unsigned int others;

	if (!fb_needs_turn(fi))
		return false;
	if (test_and_set_bit(FB_HAS_TURN, &fi->flags))
		return true;
	others = fb_turn_begin(fsb, fi);
	if (others >= FB_TURNS_OF_GROUP) {
		clear_bit(FB_HAS_TURN, &fi->flags);
		return true;
	}
	fi->turn.budget = budget ? *budget : ULONG_MAX;
	ihold(&fi->vfs_inode);
	queue_work(fsb->turn_wq, &fi->turn.work);
	if (wait_on_bit_timeout(&fi->flags, FB_HAS_TURN, TASK_UNINTERRUPTIBLE, FB_TURN >> others)) {
		if (budget)
			*budget = 0;
		return true;
	}
	if (budget)
		*budget = READ_ONCE(fi->turn.budget);
	return false;
}
