// SPDX-License-Identifier: GPL-2.0-only
/*
 * Time stamps: when a file was last changed.
 *
 * The lower inode has mtime and ctime. An fsync makes them durable, an fdatasync need not. An fsync that
 * is absorbed in PMem stores the time in the file record; it means that mtime and ctime were both that.
 * Recovery applies the record's time if the lower file's ctime is older. What can't be said so goes below:
 * two different times (but see below), times before 1970 or after 2262, a clock that was set back.
 *
 * A new name, or one less, moves ctime alone. If the file was written before, and not synced, its record
 * gets the mtime, and the name log has the change of the name. Where storage lacks that change, replay makes
 * it and leaves ctime as it was. Where storage has the change, it has the mtime, too: an inode's times are
 * written together. Its ctime is not older than the record's time then.
 *
 * The clock has ticks. A write within the tick of such a change moves mtime alone. Recovery would take the
 * record's time for that of the change, which storage or the log has with the mtime from before. So an fsync
 * goes below then.
 *
 * Three times of an inode, all of them a ctime:
 *	record_time	what the record says, or 0
 *	below_time	what the last lower fsync with times has made durable, at least
 *	durable_time	what a crash leaves; an fsync has no time to store while the lower ctime is this
 * The inode's i_lock protects them. The number of the record is kept by io_sem or wb_lock.
 *
 * sync/mapped.c says when stores through mappings move the lower file's times.
 */
#include "../lower/attr.h"
#include "../lower/lower.h"
#include "record.h"
#include "times.h"

/*
 * The lower file's ctime, S64_MIN or S64_MAX if it lies beyond; *mtime is set likewise.
 * Writers change the times without a lock that is held here, seconds and nanoseconds one after the other:
 * so two looks must agree.
 */
static s64 fb_lower_times(const struct fb_inode *fi, s64 *mtime)
{
	struct timespec64 ctime = inode_get_ctime(fi->lower), modified, before;

	do {
		before = ctime;
		smp_rmb();	/* orders the looks; the writers have no barrier to pair with */
		modified = inode_get_mtime(fi->lower);
		smp_rmb();	/* likewise */
		ctime = inode_get_ctime(fi->lower);
	} while (!timespec64_equal(&before, &ctime));
	*mtime = timespec64_to_ns(&modified);
	return timespec64_to_ns(&ctime);
}

#ifdef FB_BREAK_NAMED_TIME	/* a fault on purpose: tests/vm/test_names_cuts.py must find it */
#define FB_BREAK_NAMED	1
#else
#define FB_BREAK_NAMED	0
#endif

/* The time that a record needs for an fsync; *fits becomes whether it can say that of the file's times. */
static s64 fb_time_to_store(const struct fb_inode *fi, bool *fits)
{
	s64 mtime, ctime = fb_lower_times(fi, &mtime);

	*fits = mtime == ctime && ctime != READ_ONCE(fi->names.apart);
	if (mtime >= ctime || ctime != READ_ONCE(fi->names.named))
		return ctime;
	*fits = true;
	return FB_BREAK_NAMED ? READ_ONCE(fi->durable_time) : mtime;
}

static bool fb_time_is_durable(const struct fb_inode *fi, s64 time)
{
	return time > S64_MIN && time < S64_MAX && time == READ_ONCE(fi->durable_time);
}

/*
 * Stores the time in the record, if the record can say it: recovery must not find a newer one below. A record
 * that the device has lost says nothing.
 */
static bool __fb_store_time(struct fb_inode *fi, s64 time, bool fits)
{
	if (!fits || time <= 0 || time == S64_MAX || fi->file == FB_NO_FILE ||
	    time < max(fi->record_time, fi->below_time))
		return false;
	if (time != fi->record_time && ps_file_set_time(&FB_SB(fi->vfs_inode.i_sb)->ps, fi->file, time))
		return false;
	fi->record_time = time;
	return true;
}

/**
 * fb_store_time() - store the file's time in its record; the caller fences
 * @fi: the inode; io_sem is held exclusively
 *
 * For a caller that fences something else before it gives io_sem back. fb_sync_time() after that finds the
 * time stored, or says that the record can't have it.
 */
void fb_store_time(struct fb_inode *fi)
{
	bool fits;
	s64 time = fb_time_to_store(fi, &fits);

	lockdep_assert_held_write(&fi->io_sem);
	spin_lock(&fi->vfs_inode.i_lock);
	if (!fb_time_is_durable(fi, time))
		__fb_store_time(fi, time, fits);
	spin_unlock(&fi->vfs_inode.i_lock);
}

/**
 * fb_sync_time() - make mtime and ctime durable in PMem
 * @fi: the inode. Takes io_sem
 *
 * Return: 0, or -EAGAIN: the lower fsync has to do it.
 */
int fb_sync_time(struct fb_inode *fi)
{
	bool fits, durable;
	s64 time = fb_time_to_store(fi, &fits);

	if (fb_time_is_durable(fi, time))
		return 0;
	down_read(&fi->io_sem);
	spin_lock(&fi->vfs_inode.i_lock);
	durable = __fb_store_time(fi, time, fits);
	if (durable) {
		ps_fence(&FB_SB(fi->vfs_inode.i_sb)->ps);
		WRITE_ONCE(fi->durable_time, time);
	}
	spin_unlock(&fi->vfs_inode.i_lock);
	up_read(&fi->io_sem);
	return durable ? 0 : -EAGAIN;
}

/**
 * fb_times_now() - what a lower fsync that begins now will make durable
 * @fi: the inode
 *
 * Return: what fb_times_are_below() wants.
 */
struct fb_times fb_times_now(struct fb_inode *fi)
{
	struct fb_times times;
	s64 mtime;

	spin_lock(&fi->vfs_inode.i_lock);
	times.record = fi->record_time;
	spin_unlock(&fi->vfs_inode.i_lock);
	times.lower = fb_lower_times(fi, &mtime);
	return times;
}

/**
 * fb_times_are_below() - a lower fsync, not an fdatasync, has ended
 * @fi: the inode; io_sem is held in either way, or wb_lock
 * @times: from before it
 *
 * If the record's time was newer than the lower one already before the fsync, the clock was set back.
 * Recovery would take the record's time for the newer one, so it is removed.
 */
void fb_times_are_below(struct fb_inode *fi, const struct fb_times *times)
{
	struct fb_sb *fsb = FB_SB(fi->vfs_inode.i_sb);

	spin_lock(&fi->vfs_inode.i_lock);
	fi->below_time = times->lower;
	WRITE_ONCE(fi->durable_time, times->lower);
	if (times->record > times->lower && fi->record_time == times->record && fi->file != FB_NO_FILE) {
		ps_file_set_time(&fsb->ps, fi->file, 0);	/* lost: fb_record_heal() does it */
		ps_fence(&fsb->ps);
		fi->record_time = 0;
	}
	spin_unlock(&fi->vfs_inode.i_lock);
}

/**
 * fb_time_only_in_record() - whether the record has a time that a crash doesn't leave below
 * @fi: the inode
 */
bool fb_time_only_in_record(const struct fb_inode *fi)
{
	return READ_ONCE(fi->record_time) && READ_ONCE(fi->record_time) > READ_ONCE(fi->below_time);
}

/**
 * fb_time_to_lower() - make the time that the record says durable below
 * @fi: the inode; wb_lock is held
 *
 * Return: 0 or the lower file system's error.
 */
int fb_time_to_lower(struct fb_inode *fi)
{
	struct fb_times times = fb_times_now(fi);
	int err;

	lockdep_assert_held(&fi->wb_lock);
	if (fi->file == FB_NO_FILE || !fb_time_only_in_record(fi))
		return 0;
	err = fb_fsync_below(fi, 0);
	if (!err)
		fb_times_are_below(fi, &times);
	return err;
}

struct fb_recover_time {
	struct file *file;
	struct timespec64 time;
};

static int fb_recover_time_run(void *arg)
{
	struct fb_recover_time *recover = arg;
	struct inode *lower = file_inode(recover->file);
	int err;

	file_start_write(recover->file);
	inode_lock(lower);
	err = fb_set_times(recover->file, recover->time, recover->time);
	inode_unlock(lower);
	file_end_write(recover->file);
	return err;
}

/**
 * fb_recover_time() - the lower file gets the time that its record says, if that is newer
 * @fi: the inode, which no other task has
 * @time: of the record, or 0
 * @wb_file: the lower file
 *
 * The caller does this before it changes the file's size, which keeps the times. A crash in between may
 * leave the new size with a ctime of that moment, but never without the mtime. A file is usable with wrong
 * times, so an error leads to a message alone.
 */
void fb_recover_time(struct fb_inode *fi, s64 time, struct file *wb_file)
{
	struct fb_sb *fsb = FB_SB(fi->vfs_inode.i_sb);
	struct fb_recover_time recover = { .file = wb_file, .time = ns_to_timespec64(time) };
	struct timespec64 ctime = inode_get_ctime(fi->lower);
	int err;

	fi->record_time = time;
	if (!time || timespec64_compare(&recover.time, &ctime) <= 0)
		return;
	err = fb_run_as_mounter(fsb, fb_recover_time_run, &recover);
	if (err)
		pr_warn_ratelimited("%s: the times of inode %llu could not be recovered: error %d\n",
				    fsb->cache_name, (u64)fi->vfs_inode.i_ino, err);
}
