// SPDX-License-Identifier: GPL-2.0-only
/*
 * Copies that the kernel makes between memory and PMem: how many bytes, how many a second a mount and
 * each user of it may have copied, and how many tasks may copy at a time.
 *
 * Each copy to or from pages of files is counted here when it is made, whatever file system call or worker
 * it is for. The counters are per CPU. Two readers of them don't agree while copies are made.
 *
 * Stores and loads of programs in mappings pass the kernel by. FB_MAPPED_STORES estimates the stores: each
 * page that becomes writable in a mapping, and each that a sync call flushes and leaves mapped.
 *
 * A limit is a time, `due`. A copy moves it ahead by what its bytes are worth at the limit's rate. A call
 * that begins before `due` waits until then, before it takes a lock of ours, or the inode's. A call that has
 * begun is not held up. So no task waits for one that waits here, unless they share an open file: the kernel
 * has locked its position then. After an idle time, calls may copy FB_COPY_BURST's worth at once.
 *
 * One call may copy much more than its limit is worth in a second. Its user pays for all of that, at the
 * lower of the two rates. Other users wait for it no longer than FB_COPY_OTHERS, and a sync call, whosever,
 * no longer than FB_COPY_SYNC: what waits to become durable does so soon.
 *
 * Past the device's peak, more tasks that copy bring no more bytes, and each takes CPU time while its stores
 * wait for the device. So there may be a bound on tasks that write in place at a time. A task takes a slot
 * for the copies that it makes under one hold of io_sem, 256 KiB at most. A task that waits for one sleeps.
 * A task that has one waits for io_sem and for nothing else, and no task waits for a slot with io_sem held.
 * So a slot is free again after a copy, whatever lock the waiting task holds. Slots are handed out in the
 * order of requests.
 *
 * Never limited:
 *   - writeback, drain and unmount, which make the room that tasks wait for. Storage bounds them;
 *   - kernel threads (nfsd, loop devices), since each of them serves several users;
 *   - page faults, and splices to and from a pipe that other tasks may have: they begin with a lock held.
 *     What they copy counts, so the user's next call waits;
 *   - stores and loads of programs in mappings.
 */
#include <linux/cred.h>
#include <linux/freezer.h>
#include <linux/hrtimer.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>

#include "../trace.h"
#include "copies.h"

#define FB_COPY_BURST	(100 * NSEC_PER_MSEC)
#define FB_COPY_OTHERS	(5LL * NSEC_PER_SEC)
#define FB_COPY_SYNC	(1LL * NSEC_PER_SEC)
/* No task sleeps for less, and it may sleep for so much longer. */
#define FB_COPY_SLACK	(50 * NSEC_PER_USEC)
/* So often a waiting task looks whether the limits have changed, or something freezes. */
#define FB_COPY_LOOK	(100 * NSEC_PER_MSEC)

struct fb_copy_user {
	atomic64_t due;			/* as fb_sb->copies.due */
};

/* Moves @due ahead by @cost, but not beyond @max from now. */
static void fb_copy_charge(atomic64_t *due, u64 cost, s64 max)
{
	s64 now = ktime_get_ns(), old = atomic64_read(due), new;

	do {
		new = max_t(s64, old, now - FB_COPY_BURST) + cost;
		new = max(old, min(new, now + max));
	} while (!atomic64_try_cmpxchg(due, &old, new));
}

static struct fb_copy_user *fb_copy_user(struct fb_sb *fsb)
{
	return xa_load(&fsb->copies.users, __kuid_val(current_uid()));
}

/* The same, made if there is none yet. NULL: no memory. */
static struct fb_copy_user *fb_copy_user_make(struct fb_sb *fsb, gfp_t gfp)
{
	struct fb_copy_user *user = fb_copy_user(fsb), *other;

	if (user)
		return user;
	gfp |= __GFP_ACCOUNT;
	user = kzalloc(sizeof(*user), gfp);
	if (!user)
		return NULL;
	other = xa_cmpxchg(&fsb->copies.users, __kuid_val(current_uid()), NULL, user, gfp);
	if (!other)
		return user;
	kfree(user);
	return xa_is_err(other) ? NULL : other;
}

static void fb_copies_charge(struct fb_sb *fsb, size_t bytes)
{
	u64 all = READ_ONCE(fsb->copies.limits.all), rate = READ_ONCE(fsb->copies.limits.user);
	struct fb_copy_user *user = fb_copy_user(fsb);

	if (all)
		fb_copy_charge(&fsb->copies.due, div64_u64(bytes * NSEC_PER_SEC, all), FB_COPY_OTHERS);
	rate = min_not_zero(all, rate);
	if (user && rate)	/* else the user's first call under a limit is still to come */
		fb_copy_charge(&user->due, div64_u64(bytes * NSEC_PER_SEC, rate), KTIME_MAX / 2);
}

/**
 * fb_copied() - bytes were copied between memory and PMem, or may have been stored there through a mapping
 * @fsb: the mount
 * @which: the counter of such bytes
 * @bytes: how many
 *
 * Any context. Doesn't sleep.
 */
void fb_copied(struct fb_sb *fsb, enum fb_counter which, size_t bytes)
{
	percpu_counter_add_local(&fsb->counters[which], bytes);
	trace_fb_copy(fsb, which, bytes);
	if (fb_copies_limited(fsb) && (which == FB_COPIED_IN || which == FB_COPIED_OUT) &&
	    !(current->flags & PF_KTHREAD))
		fb_copies_charge(fsb, bytes);
}

/* In ns, until a call of this user may begin. @user may be NULL. */
static s64 fb_copy_wait_time(struct fb_sb *fsb, struct fb_copy_user *user)
{
	s64 due = 0;

	if (READ_ONCE(fsb->copies.limits.all))
		due = atomic64_read(&fsb->copies.due);
	if (user && fb_copies_limited(fsb))
		due = max_t(s64, due, atomic64_read(&user->due));
	return due - (s64)ktime_get_ns();
}

/*
 * Waits, at most until @until. While a write waits, the mount can't be frozen, nor the machine sent to sleep.
 * So a freeze ends the wait. Returns -EINTR if the task is killed.
 */
static int fb_copy_sleep(struct fb_sb *fsb, struct fb_copy_user *user, s64 until)
{
	ktime_t step;
	s64 ns;

	while (READ_ONCE(fsb->sb->s_writers.frozen) == SB_UNFROZEN && !freezing(current)) {
		ns = min_t(s64, fb_copy_wait_time(fsb, user), until - (s64)ktime_get_ns());
		if (ns <= FB_COPY_SLACK)
			break;
		step = min_t(s64, ns, FB_COPY_LOOK);
		set_current_state(TASK_KILLABLE);
		schedule_hrtimeout_range(&step, FB_COPY_SLACK, HRTIMER_MODE_REL);
		if (fatal_signal_pending(current))
			return -EINTR;
	}
	return 0;
}

/**
 * fb_wait_for_copies() - a read or write that may copy to or from PMem begins, on a mount with a limit
 * @fsb: the mount
 * @nowait: don't wait
 *
 * Without memory for the user's entry the limit of the mount alone holds.
 *
 * Context: process, without a lock that another task may want. Sleeps.
 * Return: 0; -EINTR if the task is killed; -EAGAIN if it had to wait.
 */
int fb_wait_for_copies(struct fb_sb *fsb, bool nowait)
{
	struct fb_copy_user *user;

	might_sleep_if(!nowait);
	if (current->flags & PF_KTHREAD)
		return 0;
	user = fb_copy_user_make(fsb, nowait ? GFP_NOWAIT | __GFP_NOWARN : GFP_NOFS);
	if (nowait)
		return fb_copy_wait_time(fsb, user) > FB_COPY_SLACK ? -EAGAIN : 0;
	return fb_copy_sleep(fsb, user, KTIME_MAX);
}

/**
 * fb_sync_wait_for_copies() - the same for a sync call, which waits no longer than FB_COPY_SYNC
 * @fsb: the mount
 *
 * Context: as there. Sleeps.
 * Return: 0; -EINTR if the task is killed.
 */
int fb_sync_wait_for_copies(struct fb_sb *fsb)
{
	might_sleep();
	if (current->flags & PF_KTHREAD)
		return 0;
	return fb_copy_sleep(fsb, fb_copy_user_make(fsb, GFP_NOFS),
			     (s64)ktime_get_ns() + FB_COPY_SYNC);
}

/**
 * fb_copy_begin() - a task is about to copy to PMem
 * @fi: the inode
 * @nowait: don't wait
 *
 * A task that is killed doesn't wait any longer.
 *
 * Context: process, without io_sem. Sleeps.
 * Return: slots that fb_copy_end() gives back, 0 or 1; -EAGAIN if it had to wait.
 */
int fb_copy_begin(struct fb_inode *fi, bool nowait)
{
	struct fb_sb *fsb = FB_SB(fi->vfs_inode.i_sb);

	lockdep_assert_not_held(&fi->io_sem);
	if (!READ_ONCE(fsb->copies.limits.tasks))
		return 0;
	if (nowait)
		return down_trylock(&fsb->copies.slots) ? -EAGAIN : 1;
	return down_killable(&fsb->copies.slots) ? 0 : 1;
}

/**
 * fb_copy_end() - the task has copied
 * @fsb: the mount
 * @slots: from fb_copy_begin()
 */
void fb_copy_end(struct fb_sb *fsb, int slots)
{
	if (slots)
		up(&fsb->copies.slots);
}

/* Without a bound, slots stay as they are: tasks may still wait for them. */
static void fb_set_copy_tasks(struct fb_sb *fsb, unsigned int tasks)
{
	for (; tasks && fsb->copies.nr_slots < tasks; fsb->copies.nr_slots++)
		up(&fsb->copies.slots);
	for (; tasks && fsb->copies.nr_slots > tasks; fsb->copies.nr_slots--)
		down(&fsb->copies.slots);
	WRITE_ONCE(fsb->copies.limits.tasks, tasks);
}

/**
 * fb_set_copy_limits() - how much the kernel may copy from now on
 * @fsb: the mount; no other task sets them
 * @limits: all three, or those that change
 *
 * What calls have copied beyond the limits before is forgotten.
 *
 * Context: process. Sleeps, until tasks have ended their copies.
 */
void fb_set_copy_limits(struct fb_sb *fsb, const struct fb_copy_limits *limits)
{
	struct fb_copy_user *user;
	unsigned long uid;

	if (limits->all != FB_NO_LIMIT)
		WRITE_ONCE(fsb->copies.limits.all, limits->all);
	if (limits->user != FB_NO_LIMIT)
		WRITE_ONCE(fsb->copies.limits.user, limits->user);
	if (limits->tasks != FB_TASKS_AS_IS)
		fb_set_copy_tasks(fsb, limits->tasks);
	atomic64_set(&fsb->copies.due, 0);
	xa_for_each(&fsb->copies.users, uid, user)
		atomic64_set(&user->due, 0);
	WRITE_ONCE(fsb->copies.limited, fsb->copies.limits.all || fsb->copies.limits.user);
}

/**
 * fb_copies_init() - nothing is limited
 * @fsb: the mount
 */
void fb_copies_init(struct fb_sb *fsb)
{
	xa_init_flags(&fsb->copies.users, XA_FLAGS_ACCOUNT);
	sema_init(&fsb->copies.slots, 1);
	fsb->copies.nr_slots = 1;
}

/**
 * fb_copies_free() - forget the users
 * @fsb: the mount, being taken down
 */
void fb_copies_free(struct fb_sb *fsb)
{
	struct fb_copy_user *user;
	unsigned long uid;

	xa_for_each(&fsb->copies.users, uid, user)
		kfree(user);
	xa_destroy(&fsb->copies.users);
}
