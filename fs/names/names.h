/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The name log of a mount: changes of names and attributes, durable in PMem before storage has them.
 *
 * Floor 2, names: what is noted of a change that is made below, and when that is durable. The log itself is
 * core/names/; what a mount does with one that a crash left is fs/replay/. May use: lower, core/names. Used
 * by: every floor above.
 *
 * The log is on or off (fb_names.on). While it is on, every change of a directory and of an inode's owner,
 * mode and times leaves a record. A change that can't leave one switches the log off; then sync calls go to
 * the file system below, as they do without a log. After a commit of the lower journal, without any change
 * meanwhile, the log is empty and on again (log.c).
 *
 * Locks, outermost first:
 *	lower sb->s_umount, or the lower file system's freeze protection
 *	fb_sb.changes		shared: from before a change below until its record is whole, by
 *				fb_begin_below(); exclusively: the log is emptied and switched on
 *	locks of lower inodes
 *	fb_names.commit_lock
 *	fb_names.place_lock
 */
#ifndef FOREBAY_NAMES_NAMES_H
#define FOREBAY_NAMES_NAMES_H

#include "../forebay.h"
#include "../../core/names/names.h"

struct fb_names {
	struct fb_sb *fsb;
	struct nl nl;
	spinlock_t place_lock;		/* core/names/names.h says of what; */
	struct mutex commit_lock;	/* of this, too, and of until to back_end */
	bool on;			/* switched on under fb_sb.changes, held exclusively */
	bool failed;			/* the last try to switch it on; for one message */
	unsigned int life;		/* one more each time it is switched on; likewise */
	const char *unfit;		/* why the lower file system can't have a log; NULL: it can */
	s64 until;			/* of the newest heartbeat; */
	s64 beaten;			/* when it was made, on the monotonic clock; */
	s64 clock;			/* what the system clock was ahead of that one */
	s64 back;			/* the clock was set back: no change since is earlier; 0: it wasn't */
	u64 back_end;			/* records before it may have later times than changes since then */
	u64 leaving;			/* records before it leave with a lower sync that has begun */
	struct delayed_work trim_work, beat_work;
	atomic64_t nr_records;		/* since the mount; */
	atomic64_t nr_barriers;		/* changes that commits wait for, */
	atomic64_t nr_off;		/* how often it was switched off */
	u64 replayed;			/* records found at the mount */
};

#endif
