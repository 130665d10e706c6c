// SPDX-License-Identifier: GPL-2.0-only
/*
 * Sync calls for a file: fsync, fdatasync, msync, O_SYNC and O_DSYNC writes. syncfs.c has the others.
 *
 * What of a file may not be durable, what makes it durable, and where:
 *
 *   mapped stores in dirty DAX pages	a flush of CPU caches (mapped.c) PMem
 *   volatile pages			a move into PMem (absorb.c)	PMem
 *   its size				8 bytes in its record		PMem
 *   mtime and ctime (not fdatasync)	8 bytes in its record		PMem
 *   names and attributes that have	a commit of the name log	PMem
 *   records in the name log		(names/commit.c)
 *   volatile pages for which that is	the lower fsync			storage
 *   slower, or PMem has no room; names
 *   and attributes (not fdatasync)
 *   without records; a truncation of
 *   what PMem had nothing of
 *
 * What write() put into DAX pages is durable already when write() returns.
 * DAX pages are never written to storage here.
 *
 * A lower fsync runs without a lock of ours, so that the lower file system can serve many calls by one
 * commit:
 *   - sync_lock is held until the call knows what is not durable, and has taken it: flags and tracker are
 *     cleared then. What is changed later is for the next call. A sync that fails gives back what it took.
 *   - A call that finds nothing to take may still rely on what another has taken: as long as such a sync is
 *     on its way (syncs_below), the call has the lower fsync, too, and takes nothing.
 *   - What the record says changes under io_sem when the lower fsync has ended.
 */
#include "../lower/lower.h"
#include "../names/commit.h"
#include "../names/log.h"
#include "../page/index.h"
#include "../page/record.h"
#include "../page/size.h"
#include "../page/times.h"
#include "../trace.h"
#include "absorb.h"
#include "cost.h"
#include "latency.h"
#include "mapped.h"
#include "overwrite.h"
#include "sync.h"
#include "tracker.h"

#ifdef FB_BREAK_LOWER_SYNC	/* a fault on purpose: the power-cut campaign must find it */
#define FB_BREAK_SYNC	1
#else
#define FB_BREAK_SYNC	0
#endif

/* A lower fsync: what was so when it began, and what it took over. */
struct fb_sync {
	struct fb_tracker taken;
	struct fb_times times;
	struct fb_size_seen end;	/* of the lower file */
	unsigned int number;
	u64 names;			/* end of the last record of its names and attributes */
	bool needs_sync, needs_fsync;	/* the flags were set */
	bool counted;			/* in syncs_below.in_flight */
};

/*
 * A sync of a file without a name. A link that is made below later leaves a barrier in the name log.
 * One that was made before may not have seen the flag. The lower sync makes it durable, because that
 * begins behind the flag.
 */
static void fb_sync_nameless(struct fb_inode *fi)
{
	if (fi->vfs_inode.i_nlink)
		return;
	set_bit(FB_NAMELESS_SYNCED, &fi->flags);
	smp_mb__after_atomic();	/* pairs with fb_names_need_storage() */
}

/* Takes what is not durable. */
static void fb_sync_begin(struct fb_inode *fi, bool datasync, struct fb_sync *sync)
{
	lockdep_assert_held(&fi->sync_lock);
	fb_sync_nameless(fi);
	sync->number = ++fi->syncs_below.begun;
	sync->times = fb_times_now(fi);
	sync->needs_sync = test_bit(FB_NEEDS_SYNC, &fi->flags);
	sync->needs_fsync = !datasync && test_and_clear_bit(FB_NEEDS_FSYNC, &fi->flags);
	if (sync->needs_sync) {
		atomic_inc(&fi->syncs_below.of_names);
		smp_mb__after_atomic();	/* before the flag goes: pairs with fb_name_needs_sync() */
		clear_bit(FB_NEEDS_SYNC, &fi->flags);
	}
	sync->names = READ_ONCE(fi->names.end);
	smp_mb();	/* a truncation that truncate_seq doesn't count yet sets the flag again */
	sync->end.truncate_seq = READ_ONCE(fi->truncate_seq);
	smp_rmb();	/* no size from before a truncation with the truncate_seq from after it */
	sync->end.size = i_size_read(fi->lower);
	sync->taken = fb_track_take(fi);
	sync->counted = sync->needs_sync || sync->needs_fsync || !fb_track_empty(&sync->taken);
	if (sync->counted)
		atomic_inc(&fi->syncs_below.in_flight);
}

/* True if fb_sync_note() has something to record. */
static bool fb_sync_has_news(struct fb_inode *fi, const struct fb_sync *sync, bool datasync)
{
	return !datasync || !test_bit(FB_IS_BELOW, &fi->flags) || fb_is_truncated(fi) ||
	       READ_ONCE(fi->durable_size) < sync->end.size || READ_ONCE(fi->below_size) < sync->end.size;
}

/* The lower fsync has ended well. */
static void fb_sync_note(struct fb_inode *fi, const struct fb_sync *sync, bool datasync)
{
	down_write(&fi->io_sem);
	fb_is_below(fi);
	/* Not if a younger sync has ended before: its times are newer. */
	if (!datasync && (int)(sync->number - fi->syncs_below.noted) > 0) {
		fi->syncs_below.noted = sync->number;
		fb_times_are_below(fi, &sync->times);
	}
	fb_size_synced_below(fi, &sync->end);
	up_write(&fi->io_sem);
}

static int fb_lower_fsync(struct fb_inode *fi, struct file *lower, bool datasync)
{
	if (test_bit(FB_NAMELESS_SYNCED, &fi->flags))
		datasync = false;	/* ext4's fdatasync leaves links out */
	fb_count(FB_SB(fi->vfs_inode.i_sb), FB_SYNCS_LOWER, 1);
	trace_fb_sync_below(fi);
	return FB_BREAK_SYNC ? 0 : fb_fsync_lower(lower, datasync);
}

/*
 * The lower fsync has made names and attributes durable, but not their records. A commit does, if nothing
 * stands in the way: so recovery won't take an older record of an attribute for the last one.
 */
static void fb_sync_names_below(struct fb_inode *fi, const struct fb_sync *sync, bool datasync)
{
	if (!sync->names)
		return;
	fb_names_commit_file(fi);
	if (!datasync)
		cmpxchg(&fi->names.end, sync->names, 0);	/* unless there is a newer one */
}

/* The lower fsync, without sync_lock. If it fails, all that was taken is given back. */
static int fb_sync_run(struct fb_inode *fi, struct file *lower, bool datasync, struct fb_sync *sync)
{
	u64 start_ns = ktime_get_ns();
	int err = fb_lower_fsync(fi, lower, datasync);

	if (err) {
		if (sync->needs_sync)
			set_bit(FB_NEEDS_SYNC, &fi->flags);
		if (sync->needs_fsync)
			set_bit(FB_NEEDS_FSYNC, &fi->flags);
		fb_track_again(fi, &sync->taken);
	} else {
		/* PMem can't do the rest, so there is no choice whatever that costs. */
		if (!sync->needs_sync && !sync->needs_fsync && !sync->taken.overflow)
			fb_cost_lower(FB_SB(fi->vfs_inode.i_sb), sync->taken.nr_pages, start_ns);
		fb_track_busy(fi, &sync->taken);
		fb_sync_names_below(fi, sync, datasync);
		if (fb_sync_has_news(fi, sync, datasync))
			fb_sync_note(fi, sync, datasync);
	}
	/*
	 * First what is given back, or what the record says: pairs with fb_sync_inode() and
	 * fb_name_needs_sync().
	 */
	smp_mb__before_atomic();
	if (sync->needs_sync)
		atomic_dec(&fi->syncs_below.of_names);
	if (sync->counted)
		atomic_dec(&fi->syncs_below.in_flight);
	fb_track_free(&sync->taken);
	return err;
}

/**
 * fb_sync_below() - the lower fsync, and what follows from it
 * @fi: the inode
 * @lower: an open lower file
 * @datasync: as for fdatasync
 *
 * Context: process, under sync_lock, which it gives back. Sleeps.
 * Return: 0 or the lower file system's error; then all that was taken is given back.
 */
int fb_sync_below(struct fb_inode *fi, struct file *lower, bool datasync)
{
	struct fb_sync sync;

	lockdep_assert_held(&fi->sync_lock);
	fb_sync_begin(fi, datasync, &sync);
	mutex_unlock(&fi->sync_lock);
	return fb_sync_run(fi, lower, datasync, &sync);
}

/**
 * fb_flush_truncation() - make a file's truncation durable below, if it isn't yet
 * @fi: the inode. Takes io_sem, then sync_lock
 *
 * It doesn't take wb_lock: under sync_lock, all sync calls would wait for a writeback of the whole file. A
 * truncation that is still in progress is not durable afterwards, and asks for this again at its end.
 *
 * Context: process. Sleeps.
 * Return: 0 or the lower file system's error; then it is as it was.
 */
int fb_flush_truncation(struct fb_inode *fi)
{
	struct file *lower = fb_record_file(fi);
	int err = 0;

	if (!lower)
		return 0;
	mutex_lock(&fi->sync_lock);
	if (fb_is_truncated(fi))
		err = fb_sync_below(fi, lower, true);
	else
		mutex_unlock(&fi->sync_lock);
	mapping_set_error(fi->vfs_inode.i_mapping, err);	/* why: fb_fsync_below() */
	__fput_sync(lower);
	return err;
}

/**
 * fb_sync_size() - make the file's size durable, in PMem
 * @fi: the inode
 * @end: the size, as fb_see_size() found it; data up to it is durable already
 * @datasync: the times are not asked for; else one goes along, for fb_sync_time()
 *
 * What was written behind that size since may not be durable.
 *
 * Context: process; takes io_sem. Sleeps.
 * Return: 0; fb_record_lock()'s error; or -EAGAIN: the file was truncated meanwhile, or was truncated before
 * and the record can't say so. Then the lower fsync makes the present size durable.
 */
int fb_sync_size(struct fb_inode *fi, const struct fb_size_seen *end, bool datasync)
{
	int err;

	if (end->size <= READ_ONCE(fi->durable_size) && !test_bit(FB_TRUNCATED, &fi->flags))
		return 0;
	err = fb_record_lock(fi);
	if (err)
		return err;
	if (fi->truncate_seq != end->truncate_seq || (end->truncate_seq & 1)) {
		err = -EAGAIN;
	} else if (end->size > fi->durable_size || test_bit(FB_TRUNCATED, &fi->flags)) {
		if (!datasync)
			fb_store_time(fi);
		err = fb_size_to_record(fi, end->size);
	}
	up_write(&fi->io_sem);
	return err;
}

/**
 * fb_sync_size_after_truncation() - after a lower fsync, make the size durable although a truncation came
 * @fi: the inode
 * @lower: an open lower file
 * @end: the size before that fsync, as fb_see_size() found it
 *
 * The truncation may fail. Then the file is as long as it was, and the record says what it said before the
 * sync: less, or "exactly" of an earlier truncation. So the end of the truncation is waited for.
 *
 * Context: process, without sync_lock; takes wb_lock, then io_sem. Sleeps.
 * Return: 0 when a crash leaves the size at @end, or to which the file was truncated since; -EINTR if the
 * task is killed; the lower file system's error; or fb_record_lock()'s.
 */
int fb_sync_size_after_truncation(struct fb_inode *fi, struct file *lower, const struct fb_size_seen *end)
{
	struct fb_size_seen now, below;
	int err = mutex_lock_killable(&fi->wb_lock);

	if (err)
		return err;
	now = fb_see_size(fi);
	now.size = min(now.size, end->size);
	below = (struct fb_size_seen){ .size = i_size_read(fi->lower), .truncate_seq = now.truncate_seq };
	if (fi->file != FB_NO_FILE)
		err = fb_sync_size(fi, &now, true);
	if (err == -EAGAIN) {	/* the record tells of a truncation, and that fsync didn't end it */
		err = fb_lower_fsync(fi, lower, true);
		if (!err) {
			down_write(&fi->io_sem);
			fb_size_synced_below(fi, &below);
			up_write(&fi->io_sem);
			err = fb_sync_size(fi, &now, true);
		}
	}
	mutex_unlock(&fi->wb_lock);
	return err;
}

/*
 * Waits until no truncation is in progress: the size of the file is not known before. If the truncation began
 * after the sync, the wait and the lower fsync that follows were not needed.
 */
static int fb_sync_after_truncation(struct fb_inode *fi)
{
	int err;

	if (!(READ_ONCE(fi->truncate_seq) & 1))
		return 0;
	err = mutex_lock_killable(&fi->wb_lock);
	if (!err)
		mutex_unlock(&fi->wb_lock);
	return err;
}

/* True if the lower fsync is needed whatever PMem can take. */
static bool fb_needs_lower_sync(struct fb_inode *fi, bool datasync)
{
	return !fb_may_cache(fi) || test_bit(FB_NEEDS_SYNC, &fi->flags) ||
	       (!datasync && test_bit(FB_NEEDS_FSYNC, &fi->flags));
}

/* Makes durable in PMem what can be; returns what that took, or that a lower fsync is needed. */
static enum fb_sync_kind fb_sync_in_pmem(struct fb_inode *fi, struct file *file, bool datasync)
{
	enum fb_sync_kind kind = FB_SYNC_MEMORY;
	struct fb_size_seen end_of_file = fb_see_size(fi);
	bool below = fb_needs_lower_sync(fi, datasync);

	lockdep_assert_held(&fi->sync_lock);
	fb_overwrite_synced(fi);
	if (!below && !fb_track_empty(&fi->tracker)) {
		kind = FB_SYNC_MOVE;
		below = FB_SB(fi->vfs_inode.i_sb)->mode != FB_MODE_AUTO || !fb_may_steer(file) ||
			fb_absorb(fi, FB_RANGE_KILLABLE);
		assign_bit(FB_SYNCED_IN_PMEM, &fi->flags, !below);
	}
	if (below || fb_sync_size(fi, &end_of_file, datasync) ||
	    (!datasync && !fb_names_have_times(fi) && fb_sync_time(fi)) || fb_names_commit_file(fi))
		return FB_SYNC_STORAGE;
	return kind;
}

/* After the lower fsync: the size that only PMem has. */
static int fb_sync_size_below(struct fb_inode *fi, struct file *lower, const struct fb_size_seen *end)
{
	int err;

	if (READ_ONCE(fi->file) == FB_NO_FILE)	/* all is below; and what is left after a truncation is */
		return 0;
	err = fb_sync_size(fi, end, true);
	if (err == -EAGAIN)
		return fb_sync_size_after_truncation(fi, lower, end);
	/* The worker may have taken the record since: then, too, all is below. */
	return READ_ONCE(fi->file) == FB_NO_FILE ? 0 : err;
}

/**
 * fb_sync_inode() - a sync call on a regular file
 * @fi: the inode
 * @file: by which the call was made: a caller that may only read moves no pages
 * @lower: an open lower file
 * @start: first byte
 * @end: last byte; the range bounds only the flush of DAX pages, volatile
 *	pages are taken as a whole
 * @datasync: attributes are not asked for
 *
 * Context: process; takes sync_lock. Sleeps. A fault on a MAP_SYNC mapping comes here, so locks are waited
 * for killably, as vfs/fault.c tells.
 * Return: 0 when all is durable; -EINTR if the task is killed; or another negative errno.
 */
int fb_sync_inode(struct fb_inode *fi, struct file *file, struct file *lower, loff_t start, loff_t end,
		  bool datasync)
{
	struct fb_sb *fsb = FB_SB(fi->vfs_inode.i_sb);
	struct fb_size_seen end_of_file;
	u64 start_ns = ktime_get_ns();
	enum fb_sync_kind kind;
	bool relies;
	int err;

	err = fb_sync_after_truncation(fi) ?: mutex_lock_killable(&fi->sync_lock);
	if (err)
		return err;
	/* Read first: a sync that has failed since has given back before what it took. */
	relies = atomic_read_acquire(&fi->syncs_below.in_flight);
	fb_sync_pages(fi, start >> PAGE_SHIFT, end >> PAGE_SHIFT);
	fb_time_of_stores(fi, lower);
	kind = fb_sync_in_pmem(fi, file, datasync);
	if (kind == FB_SYNC_STORAGE) {
		end_of_file = fb_see_size(fi);
		err = fb_sync_below(fi, lower, datasync);
		if (!err)
			err = fb_sync_size_below(fi, lower, &end_of_file);
	} else {
		mutex_unlock(&fi->sync_lock);
		fb_record_use(fi);
		if (relies) {
			kind = FB_SYNC_STORAGE;
			err = fb_lower_fsync(fi, lower, datasync);
		} else {
			fb_count(fsb, FB_SYNCS_ABSORBED, 1);
		}
	}
	if (!err)
		fb_latency_add(&fi->vfs_inode, kind, start_ns);
	return err;
}

/**
 * fb_fsync() - fsync(2), fdatasync(2) and what ends in them
 * @file: an upper file
 * @start: first byte
 * @end: last byte
 * @datasync: as for fdatasync
 *
 * Return: 0; once for each descriptor, that writing back failed since the last call; or another error. What
 * is told once comes first: after another error the caller would try again, and take 0 for the whole truth.
 */
int fb_fsync(struct file *file, loff_t start, loff_t end, int datasync)
{
	struct file *lower = fb_lower_file(file);
	int err = fb_sync_inode(FB_I(file_inode(file)), file, lower, start, end, datasync);
	int lower_err = file_check_and_advance_wb_err(lower);
	int upper_err = file_check_and_advance_wb_err(file);

	return lower_err ?: upper_err ?: err;
}
