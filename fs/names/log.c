// SPDX-License-Identifier: GPL-2.0-only
/*
 * The life of a mount's name log: opened at mount, switched on and off, emptied, closed.
 *
 *	opened		fb_names_open(): what a crash left can be read (fs/replay/)
 *	on		fb_names_empty(): storage has all changes, and each one from now on leaves a record
 *	off		fb_names_switch_off(): a change left no record. Nothing is committed until it is on
 *
 * Invariant: while the log is on, storage is as it was when the log was switched on, but for changes that
 * have records. So a directory whose counter moved without one switches the log off (begin.c).
 *
 * Records leave the log when a commit of the lower journal that began behind them has returned. The worker
 * sees to that from time to time, and at once if the log fills up or a commit has met a barrier.
 */
#include <linux/slab.h>

#include "../fail.h"
#include "../lower/lower.h"
#include "log.h"
#include "premise.h"

#define FB_TRIM_DELAY	(10 * HZ)
#define FB_OFF_DELAY	HZ

/* In ns. A change that comes later than this after a heartbeat needs another heartbeat first. */
#define FB_BEAT_SPAN	(2 * NSEC_PER_SEC)
#define FB_BEAT_DELAY	(HZ / 2)

/**
 * fb_names_next() - the place behind all records that there are
 * @names: log
 *
 * Context: any.
 * Return: for fb_names_commit() and fb_names_let_go().
 */
u64 fb_names_next(struct fb_names *names)
{
	u64 next;

	spin_lock(&names->place_lock);
	next = nl_next(&names->nl);
	spin_unlock(&names->place_lock);
	return next;
}

/*
 * A lower sync is about to begin, after which all records that there are leave. Returns their end. A file
 * that gets its first name later leaves a barrier if its creation is among them. If the link below was made
 * before, the lower sync makes it durable.
 */
static u64 fb_names_leave(struct fb_names *names)
{
	u64 end;

	/* Under the lock, so that of two lower syncs at once the later end stays. */
	spin_lock(&names->place_lock);
	end = nl_next(&names->nl);
	WRITE_ONCE(names->leaving, end);
	spin_unlock(&names->place_lock);
	smp_mb();	/* pairs with fb_names_need_storage() */
	return end;
}

/**
 * fb_names_let_go() - storage has the changes of all records before a place
 * @names: log
 * @end: from fb_names_next(), before a lower sync that has returned
 *
 * Context: process. Sleeps.
 */
void fb_names_let_go(struct fb_names *names, u64 end)
{
	spin_lock(&names->place_lock);
	nl_settle(&names->nl, end);
	spin_unlock(&names->place_lock);
	mutex_lock(&names->commit_lock);
	/* A record before it that isn't whole yet: the next time, then. */
	nl_trim(&names->nl, end);
	mutex_unlock(&names->commit_lock);
}

/*
 * A system clock that was set back gives changes earlier times than records have. Heartbeats say so until
 * these records have left, which begins here. No change since the newest heartbeat is earlier than that one
 * is by the clock as it is now.
 */
static void fb_names_note_clock(struct fb_names *names)
{
	s64 clock = ktime_to_ns(ktime_mono_to_real(0)), back = names->beaten + clock;
	bool set_back = clock < names->clock;

	lockdep_assert_held(&names->commit_lock);
	if (set_back) {
		WRITE_ONCE(names->back, names->back ? min(names->back, back) : back);
		WRITE_ONCE(names->back_end, fb_names_next(names));
	}
	WRITE_ONCE(names->clock, clock);
	if (names->nl.trim >= names->back_end)
		WRITE_ONCE(names->back, 0);
	else if (set_back)
		fb_names_trim_soon(names);
}

/**
 * fb_names_beat() - say in the log until when its records explain what storage has
 * @names: log
 *
 * All whole records are durable on return, too.
 *
 * Context: process; commit_lock is held.
 */
void fb_names_beat(struct fb_names *names)
{
	s64 now, until;

	lockdep_assert_held(&names->commit_lock);
	fb_names_note_clock(names);
	now = ktime_get_real_ns();
	until = now + FB_BEAT_SPAN;
	if (names->back)
		until = max(until, names->until);	/* of changes before the clock was set back */
	nl_beat(&names->nl, now, until, names->back);
	names->beaten = ktime_get_ns();
	WRITE_ONCE(names->until, until);
}

/* Some changes of the next second may have times that no heartbeat speaks of. */
static bool fb_names_beat_is_due(const struct fb_names *names)
{
	return READ_ONCE(names->until) - (s64)ktime_get_coarse_real_ns() <= NSEC_PER_SEC ||
	       ktime_to_ns(ktime_mono_to_real(0)) != READ_ONCE(names->clock) ||
	       (READ_ONCE(names->back) && READ_ONCE(names->nl.trim) >= READ_ONCE(names->back_end));
}

/**
 * fb_names_beat_if_due() - see to it that a heartbeat covers the changes of the next second
 * @names: log
 *
 * With or without a record: storage may have one without while the log still has what came before it. After
 * a change, too: it may have been slow, or the clock was set meanwhile.
 *
 * Context: process. Sleeps.
 */
void fb_names_beat_if_due(struct fb_names *names)
{
	if (!fb_names_beat_is_due(names))
		return;
	mutex_lock(&names->commit_lock);
	if (fb_names_beat_is_due(names))
		fb_names_beat(names);
	mutex_unlock(&names->commit_lock);
}

/*
 * As long as the log has records, a heartbeat speaks of now, also if nothing changes. So what was read after
 * a crash has a later access time than the last heartbeat, and all else has not (replay/decide.c).
 */
static void fb_names_beat_work(struct work_struct *work)
{
	struct fb_names *names = container_of(to_delayed_work(work), struct fb_names, beat_work);

	fb_names_beat_if_due(names);
	if (fb_names_next(names) > READ_ONCE(names->nl.trim))
		queue_delayed_work(names->fsb->wq, &names->beat_work, FB_BEAT_DELAY);
}

/**
 * fb_names_switch_off() - a change was made, or will be, that leaves no record
 * @names: log
 *
 * The log stays off for a second at least. Changes that can't be recorded may come again and again, and to
 * switch the log on costs a commit of the lower journal.
 *
 * Context: process; fb_sb.changes is held, so that the log isn't switched on meanwhile.
 */
void fb_names_switch_off(struct fb_names *names)
{
	lockdep_assert_held(&names->fsb->changes);
	if (READ_ONCE(names->on)) {
		WRITE_ONCE(names->on, false);
		atomic64_inc(&names->nr_off);
	}
	mod_delayed_work(names->fsb->wq, &names->trim_work, FB_OFF_DELAY);
}

/* Tells of a failure of the lower journal, once. */
static int fb_names_below(struct fb_names *names, int err)
{
	if (err && !names->failed)
		pr_warn("%s: the name log is off: the file system below can't commit its journal (error %d)\n",
			names->fsb->cache_name, err);
	names->failed = err;
	return err;
}

/**
 * fb_names_empty() - have storage hold all changes, and the log none; then it is on
 * @names: log; NULL: there is none
 *
 * No name is changed meanwhile.
 *
 * Context: process. Takes s_umount of the lower super block and fb_sb.changes, so no inode's lock comes
 * before. Sleeps for a commit of the lower journal.
 * Return: 0; or the lower file system's error: then the log stays as it is.
 */
int fb_names_empty(struct fb_names *names)
{
	struct super_block *lower;
	u64 end;
	int err;

	if (!names || names->unfit)
		return 0;
	lower = names->fsb->lower.mnt->mnt_sb;
	down_read(&lower->s_umount);
	down_write(&names->fsb->changes);
	end = fb_names_leave(names);
	err = fb_names_below(names, fb_commit_lower_fs_locked(names->fsb));
	if (!err) {
		fb_names_let_go(names, end);
		mutex_lock(&names->commit_lock);
		fb_names_beat(names);
		mutex_unlock(&names->commit_lock);
		names->life++;
		WRITE_ONCE(names->on, true);
	}
	up_write(&names->fsb->changes);
	up_read(&lower->s_umount);
	return err;
}

/* Records whose changes storage has leave the log. */
static int fb_names_trim(struct fb_names *names)
{
	u64 end = fb_names_leave(names);
	int err = fb_names_below(names, fb_commit_lower_fs(names->fsb));

	if (!err)
		fb_names_let_go(names, end);
	return err;
}

/**
 * fb_names_commit_lower() - changes of names that have ended become durable below
 * @fsb: the mount, with or without a name log
 *
 * By a commit of the lower journal alone, where the file system could have a name log. A sync of everything
 * would wait for all that users have written, and a user's cgroup may write little in a second.
 *
 * Context: process. Sleeps.
 * Return: 0 or the lower file system's error.
 */
int fb_names_commit_lower(struct fb_sb *fsb)
{
	if (fsb->names ? fsb->names->unfit : fb_names_unfit(fsb))
		return fb_sync_lower_fs(fsb);
	return fsb->names ? fb_names_trim(fsb->names) : fb_commit_lower_fs(fsb);
}

/**
 * fb_names_sync_lower() - everything that the lower file system holds becomes durable, and leaves the log
 * @fsb: the mount
 *
 * Context: process. Sleeps.
 * Return: 0 or the lower file system's error.
 */
int fb_names_sync_lower(struct fb_sb *fsb)
{
	u64 end = fsb->names ? fb_names_leave(fsb->names) : 0;
	int err = fb_sync_lower_fs(fsb);

	if (!err && fsb->names)
		fb_names_let_go(fsb->names, end);
	return err;
}

static void fb_names_trim_work(struct work_struct *work)
{
	struct fb_names *names = container_of(to_delayed_work(work), struct fb_names, trim_work);

	/* Another commit has emptied the log. A record that comes now has the work queued again. */
	if (READ_ONCE(names->on) && fb_names_next(names) == READ_ONCE(names->nl.trim))
		return;
	if (READ_ONCE(names->on) ? fb_names_trim(names) : fb_names_empty(names))
		queue_delayed_work(names->fsb->wq, &names->trim_work, FB_RETRY_DELAY);
}

/**
 * fb_names_trim_soon() - have the worker trim the log now
 * @names: log
 *
 * Context: any.
 */
void fb_names_trim_soon(struct fb_names *names)
{
	mod_delayed_work(names->fsb->wq, &names->trim_work, 0);
}

/**
 * fb_names_trim_later() - the log has a new record
 * @names: log
 *
 * Context: any.
 */
void fb_names_trim_later(struct fb_names *names)
{
	const struct nl *nl = &names->nl;

	if (READ_ONCE(nl->next) - READ_ONCE(nl->trim) > nl->nr_lines / 2)
		fb_names_trim_soon(names);
	else
		queue_delayed_work(names->fsb->wq, &names->trim_work, FB_TRIM_DELAY);
	queue_delayed_work(names->fsb->wq, &names->beat_work, FB_BEAT_DELAY);
}

/**
 * fb_names_open() - open the name log of a mount's cache, if it has one
 * @fsb: the mount; its cache is open
 * @fc: for messages
 *
 * Directories' access times stay as they are below: replay reads directories, and on xfs a new access time
 * may raise the change counter, without a record.
 *
 * Return: 0, or a negative errno after a message.
 */
int fb_names_open(struct fb_sb *fsb, struct fs_context *fc)
{
	u32 flags = fsb->ps.flush_caches ? NL_OPEN_FLUSH_CACHES : 0;
	struct fb_names *names;
	enum nl_error err;

	if (!fsb->ps.names)
		return 0;
	names = kzalloc(sizeof(*names), GFP_KERNEL);
	if (!names)
		return -ENOMEM;
	names->fsb = fsb;
	spin_lock_init(&names->place_lock);
	mutex_init(&names->commit_lock);
	INIT_DELAYED_WORK(&names->trim_work, fb_names_trim_work);
	INIT_DELAYED_WORK(&names->beat_work, fb_names_beat_work);
	err = nl_open(&names->nl, fsb->ps.names, fsb->ps.names_size, flags);
	if (err) {
		kfree(names);
		return fb_fail(fc, -EUCLEAN, "the name log of %s: %s; see forebay check %s", fsb->cache_path,
			       nl_strerror(err), fsb->cache_path);
	}
	fsb->names = names;
	names->unfit = fb_names_unfit(fsb);
	if (!names->unfit)
		fsb->lower.mnt->mnt_flags |= MNT_NODIRATIME;
	return 0;
}

/**
 * fb_names_start() - switch the log on, if the lower file system can have one
 * @fsb: the mount; its log was emptied after recovery
 * @fc: for messages
 *
 * Return: 0, or an error of the lower file system after a message.
 */
int fb_names_start(struct fb_sb *fsb, struct fs_context *fc)
{
	const struct fb_names *names = fsb->names;
	int err;

	if (names && names->unfit)
		pr_warn("%s: the name log is not used: the file system below %s\n", fsb->cache_name,
			names->unfit);
	err = fb_names_empty(fsb->names);
	return err ? fb_fail(fc, err, "%s: the file system below can't commit its journal: error %d; mount again when the cause is gone",
			     fsb->cache_path, err) : 0;
}

static void fb_names_end_work(struct fb_names *names)
{
	cancel_delayed_work_sync(&names->beat_work);	/* it may queue the other one */
	cancel_delayed_work_sync(&names->trim_work);
}

/**
 * fb_names_stop() - empty the log at unmount
 * @fsb: the mount; nothing changes it any more. If it was never mounted, the log stays as it is
 *
 * Return: 0, or the lower file system's error: then the next mount finds what there is.
 */
int fb_names_stop(struct fb_sb *fsb)
{
	int err;

	if (!fsb->names || !fsb->names->life)
		return 0;
	err = fb_names_empty(fsb->names);
	fb_names_end_work(fsb->names);
	return err;
}

/**
 * fb_names_close() - forget the log, in DRAM
 * @fsb: the mount, being taken down
 */
void fb_names_close(struct fb_sb *fsb)
{
	if (fsb->names)
		fb_names_end_work(fsb->names);
	kfree(fsb->names);
}
