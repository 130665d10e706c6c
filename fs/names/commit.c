// SPDX-License-Identifier: GPL-2.0-only
/*
 * What sync calls have of the name log: names and attributes durable by one store, instead of a commit of
 * the lower journal.
 *
 * A commit takes all records before its own along: changes become durable in the order of their records. It
 * can't pass a barrier, which a change has left that the log doesn't hold in full. Then the sync call goes
 * below, and the worker sees to it that the barrier doesn't stay.
 */
#include "commit.h"
#include "log.h"

#ifdef FB_BREAK_NAMES_COMMIT	/* a fault on purpose: the power-cut campaign must find it */
#define FB_BREAK_COMMIT	1
#else
#define FB_BREAK_COMMIT	0
#endif

/* -EAGAIN: another processor is writing an earlier record. */
static int fb_names_try(struct fb_names *names, u64 end)
{
	int err;

	if (FB_BREAK_COMMIT)
		return 0;
	mutex_lock(&names->commit_lock);
	if (READ_ONCE(names->on) || end <= max(names->nl.commit, names->nl.trim))
		err = nl_commit(&names->nl, end);
	else
		err = -EBUSY;
	mutex_unlock(&names->commit_lock);
	return err;
}

/* Makes all records before a place durable. -EBUSY: the sync call goes below. */
static int fb_names_commit(struct fb_names *names, u64 end)
{
	int err;

	while ((err = fb_names_try(names, end)) == -EAGAIN)
		cond_resched();
	if (err && READ_ONCE(names->on))	/* else it is switched on soon, and not at each call */
		fb_names_trim_soon(names);
	return err;
}

/**
 * fb_names_commit_all() - fsync of a directory: all that was changed until now is durable
 * @fsb: the mount
 *
 * Context: process. Sleeps.
 * Return: 0; -EBUSY: the directory's fsync goes below.
 */
int fb_names_commit_all(struct fb_sb *fsb)
{
	struct fb_names *names = fsb->names;

	if (!names || READ_ONCE(fsb->mode) != FB_MODE_AUTO || !READ_ONCE(names->on))
		return -EBUSY;
	return fb_names_commit(names, fb_names_next(names));
}

/**
 * fb_names_commit_file() - make a file's names and attributes durable, as far as they have records
 * @fi: the inode
 *
 * Context: process. Sleeps.
 * Return: 0: also if there are none; -EBUSY: the sync call goes below.
 */
int fb_names_commit_file(struct fb_inode *fi)
{
	struct fb_sb *fsb = FB_SB(fi->vfs_inode.i_sb);
	u64 end = READ_ONCE(fi->names.end);
	int err;

	if (!end)
		return 0;
	err = READ_ONCE(fsb->mode) == FB_MODE_AUTO ? fb_names_commit(fsb->names, end) : -EBUSY;
	if (!err)
		cmpxchg(&fi->names.end, end, 0);	/* unless there is a newer one */
	return err;
}

/**
 * fb_names_have_times() - whether records have the times that a file has now
 * @fi: the inode
 *
 * Context: any.
 * Return: true if fb_names_commit_file() makes them durable.
 */
bool fb_names_have_times(const struct fb_inode *fi)
{
	struct timespec64 ctime = inode_get_ctime(fi->lower), mtime = inode_get_mtime(fi->lower);
	s64 known = READ_ONCE(fi->names.ctime);

	return known && timespec64_to_ns(&ctime) == known &&
	       timespec64_to_ns(&mtime) == READ_ONCE(fi->names.mtime);
}

/**
 * fb_names_keep_birth() - make the record of a file's creation durable, if it has one
 * @fi: the inode
 *
 * Called before pages in PMem name the file by its handle. If a crash leaves storage without the file, its
 * handle may become another file's. The log then says whose the pages are.
 *
 * Context: process. Sleeps.
 */
void fb_names_keep_birth(struct fb_inode *fi)
{
	struct fb_names *names = FB_SB(fi->vfs_inode.i_sb)->names;
	u64 birth = fi->names.birth;
	bool durable;

	if (!birth)
		return;
	do {
		/* Pairs with nl_done(): the record's stores come before what makes them durable. */
		bool whole = birth < smp_load_acquire(&names->nl.whole);

		mutex_lock(&names->commit_lock);
		durable = birth < max(names->nl.flushed, names->nl.trim) ||
			  (whole && !names->nl.flush_caches);
		if (whole && !durable) {
			fb_names_beat(names);
			durable = true;
		}
		mutex_unlock(&names->commit_lock);
		cond_resched();
	} while (!durable);
}
