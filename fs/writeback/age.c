// SPDX-License-Identifier: GPL-2.0-only
/*
 * Files whose pages have been out-of-sync for long are written back while storage has nothing else to do
 * (mount option writeback_age). So a full cache is the exception.
 *
 * A file's age is that of its oldest out-of-sync page, or the time since its last turn here. So a page that
 * is synced again and again is written once in that time. Pinned pages stay as they are: to write them makes
 * no room.
 *
 * Storage is idle if few requests were made in a pause in which this file made none. A turn writes a limited
 * number of pages, then comes the next pause: a reader of the SSD waits for one turn at most.
 */
#include <linux/part_stat.h>

#include "../page/alloc.h"
#include "../page/walk.h"
#include "age.h"
#include "turn.h"

#define FB_AGE_PAUSE	(HZ / 5)
#define FB_AGE_PAGES	4096	/* of a turn: 16 MiB */
#define FB_AGE_REQUESTS	8	/* so few in a pause: idle */

/* Requests that the device of the lower file system has ended; 0 if that has no single one. */
static u64 fb_lower_requests(const struct fb_sb *fsb)
{
	struct block_device *bdev = fsb->lower.mnt->mnt_sb->s_bdev;

	return bdev ? part_stat_read(bdev, ios[STAT_READ]) + part_stat_read(bdev, ios[STAT_WRITE]) : 0;
}

static bool fb_is_old(const struct fb_inode *fi, unsigned int age)
{
	return xa_marked(&fi->index, FB_MARK_RECLAIM) &&
	       time_after_eq(jiffies, READ_ONCE(fi->out_of_sync_since) + age * HZ);
}

/* Writes old files back, up to a turn's pages. Returns whether one is left. */
static bool fb_age_turn(struct fb_sb *fsb, unsigned int age, bool idle)
{
	unsigned long budget = FB_AGE_PAGES, start;
	bool left = false;
	struct fb_walk walk;
	struct fb_inode *fi;

	fb_walk_begin(fsb, &fsb->inodes, &walk);
	while (!left && (fi = fb_walk_next(fsb, &walk))) {
		if (fb_is_old(fi, age)) {
			start = jiffies;
			/* After an error, too, the file has its next turn when it is as old again. */
			if (idle)
				fb_turn(fi, &budget);
			left = !idle || !budget;
			if (!left)
				WRITE_ONCE(fi->out_of_sync_since, start);
		}
		iput(&fi->vfs_inode);
	}
	fb_walk_end(fsb, &walk);
	return left;
}

/**
 * fb_age_work() - look for old files
 * @work: fb_sb->age_work
 *
 * It ends when no page is out-of-sync; the next one that becomes so begins it again (fb_age_begin()).
 */
void fb_age_work(struct work_struct *work)
{
	struct fb_sb *fsb = container_of(to_delayed_work(work), struct fb_sb, age_work);
	u64 requests = fb_lower_requests(fsb) - fsb->age_requests;
	unsigned int age = READ_ONCE(fsb->writeback_age);
	bool left;

	if (!age)
		return;
	left = fb_age_turn(fsb, age, requests <= FB_AGE_REQUESTS);
	fsb->age_requests = fb_lower_requests(fsb);
	if (READ_ONCE(fsb->nr_out_of_sync))
		queue_delayed_work(fsb->wq, &fsb->age_work, left ? FB_AGE_PAUSE : fb_age_step(age));
}
