// SPDX-License-Identifier: GPL-2.0-only
/*
 * The lower file system is to hold everything: drain, freeze, unmount.
 *
 * All three go in one order (fb_flush_all()). Recovered pages meet their files; each file's pages are
 * written back; then deletions and truncations become durable, also those that came meanwhile.
 */
#include <linux/sched/signal.h>

#include "../names/log.h"
#include "../page/page.h"
#include "../page/walk.h"
#include "../writeback/deferred.h"
#include "../writeback/writeback.h"
#include "drain.h"
#include "place.h"

/* How long, in jiffies, and how often drain waits for tasks that may store to pages. */
#define FB_DRAIN_STEP	(HZ / 4)
#define FB_DRAIN_TRIES	10

/* Returns the first error, after every file was tried; -EINTR after a fatal signal, if @killable. */
static int fb_writeback_all(struct fb_sb *fsb, bool killable)
{
	int err = fb_recover_rest(fsb), err2;
	struct fb_walk walk;
	struct fb_inode *fi;

	fb_walk_begin(fsb, &fsb->inodes, &walk);
	while ((fi = fb_walk_next(fsb, &walk))) {
		if (killable && fatal_signal_pending(current))
			err2 = -EINTR;
		else
			err2 = fb_writeback_file(fi, killable);
		err = err ?: err2;
		iput(&fi->vfs_inode);
	}
	return err;
}

/**
 * fb_flush_all() - have the lower file system hold everything, once: drain, freeze, unmount
 * @fsb: the mount
 * @killable: a fatal signal ends it, between two files
 *
 * Context: process; sleeps. The caller holds no inode's lock.
 * Return: 0 when all that was out-of-sync at the beginning is durable below, and so are all deletions and
 * truncations, and all recovered pages have met their files; -EINTR; or the first error, after all was tried.
 */
int fb_flush_all(struct fb_sb *fsb, bool killable)
{
	int err = fb_writeback_all(fsb, killable), err2;

	if (killable && err == -EINTR)
		return err;
	err2 = fb_flush_orphans(fsb);
	return err ?: err2;
}

static unsigned long fb_count_stored(struct fb_inode *fi)
{
	struct fb_sb *fsb = FB_SB(fi->vfs_inode.i_sb);
	unsigned long index, nr = 0;
	struct fb_page *page;

	down_read(&fi->io_sem);
	xa_for_each_marked(&fi->index, index, page, FB_MARK_OUT_OF_SYNC)
		nr += READ_ONCE(page->stored) && fb_page_is_busy(fsb, page);
	up_read(&fi->io_sem);
	return nr;
}

/* Out-of-sync pages to which a task may store by a reference. */
static unsigned long fb_count_all_stored(struct fb_sb *fsb)
{
	unsigned long nr = 0;
	struct fb_walk walk;
	struct fb_inode *fi;

	fb_walk_begin(fsb, &fsb->inodes, &walk);
	while ((fi = fb_walk_next(fsb, &walk))) {
		nr += fb_count_stored(fi);
		iput(&fi->vfs_inode);
		cond_resched();
	}
	return nr;
}

/**
 * fb_drain() - have the lower file system hold everything
 * @fsb: the mount
 *
 * Return: 0 when all that was out-of-sync at the beginning is durable below and clean, and so are changes of
 * names and attributes; -EBUSY: tasks hold
 * pages that may be changing, so copies of these are durable below and the pages stay; -EINTR; or the first
 * error of the lower file system.
 */
int fb_drain(struct fb_sb *fsb)
{
	unsigned int tries = FB_DRAIN_TRIES;
	unsigned long busy;
	int err;

	for (;;) {
		err = fb_flush_all(fsb, true);
		busy = fb_count_all_stored(fsb);
		WRITE_ONCE(fsb->nr_busy, busy);
		if (err || !busy || !--tries)
			break;
		schedule_timeout_killable(FB_DRAIN_STEP);
	}
	/* Changes that only the name log has become durable below, too. */
	if (fsb->names && err != -EINTR)
		err = fb_names_commit_lower(fsb) ?: err;
	if (busy) {
		pr_warn("%s: not drained: %lu pages are held by direct I/O or a pipe, and may be changing\n",
			fsb->cache_name, busy);
		err = err ?: -EBUSY;
	}
	return err;
}
