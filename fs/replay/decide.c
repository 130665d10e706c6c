// SPDX-License-Identifier: GPL-2.0-only
/*
 * Decides which records of a name log storage has. core/names/judge.c asks, and this file looks at the lower
 * file system. If storage can't be explained, it says why mount fails.
 *
 * What is seen through the lower inodes is in memory. The caller has committed the lower journal before. So
 * what is seen is on storage, too, and a decision stays right if power fails after it.
 */
#include <linux/iversion.h>
#include <linux/magic.h>
#include <linux/mount.h>
#include <linux/vmalloc.h>

#include "../fail.h"
#include "change.h"
#include "decide.h"
#include "find.h"

/* In ns: relatime moves an access time that is older. */
#define FB_DAY		(24 * 3600 * NSEC_PER_SEC)
#define FB_WAY_OUT	"mount with -o names=discard gives up what is only in the log"

static const char *fb_damaged_part(enum nl_damage_kind kind)
{
	switch (kind) {
	case NL_BAD_TRIM_WORD:
		return "the trim word";
	case NL_BAD_COMMIT_WORD:
	case NL_BAD_COMMIT:
		return "the commit word";
	case NL_BAD_DECIDED_WORD:
		return "the decided word";
	case NL_BAD_DECISIONS:
		return "the decisions";
	default:
		return "a record";
	}
}

/**
 * fb_log_damaged() - say that the log is damaged
 * @run: the replay
 * @damage: what
 *
 * Return: -EUCLEAN, after a message.
 */
int fb_log_damaged(struct fb_replay *run, const struct nl_damage *damage)
{
	const char *why = damage->why ?: "can't be read";

	if (damage->kind & (NL_BAD_RECORD | NL_BAD_TAIL))
		fb_error(run->fc, "%s: the name log is damaged: the record at place %llu %s. See forebay check; "
			 FB_WAY_OUT, run->fsb->cache_name, damage->place, why);
	else
		fb_error(run->fc, "%s: the name log is damaged: %s %s. See forebay check; " FB_WAY_OUT,
			 run->fsb->cache_name, fb_damaged_part(damage->kind), why);
	return -EUCLEAN;
}

/**
 * fb_log_damaged_somewhere() - find out what is damaged, and say so
 * @run: the replay; a function that reads all records has returned -EUCLEAN
 *
 * Return: -EUCLEAN, after a message.
 */
int fb_log_damaged_somewhere(struct fb_replay *run)
{
	struct nl_cursor cursor;

	nl_cursor_start(&cursor, run->nl);
	while (nl_cursor_next(&cursor, &run->scratch) > 0)
		cond_resched();
	return fb_log_damaged(run, &cursor.damage);
}

/*
 * Whether an inode may have been read since the crash while the clock was behind: the access time is of this
 * boot, or from before the inode was made. ctime is not, so nothing has changed the inode then. A ctime that
 * lies ahead is one from before the crash, if it is not later than the last heartbeat allows.
 */
static bool fb_may_be_read_before(s64 atime, s64 ctime, s64 btime, s64 now, s64 until)
{
	s64 boot = now - ktime_get_boottime_ns();

	if (boot <= ctime && (ctime <= now || ctime > until))
		return false;
	return (boot <= atime && atime <= now) || (atime < btime && btime <= ctime);
}

/*
 * xfs raises an inode's counter once for a new access time, if nothing else has raised it since the inode
 * was read from storage. So an inode that was read since the crash, and not changed, may have one too many.
 * It may have one more for each time that it came into memory: with strictatime, and if it is read again a
 * day later. With lazytime the counter rises when the access time is written, which
 * fb_commit_and_write_times() has seen to. A user may have set such an access time before the crash, too: the
 * counter is right then. A ctime that lies ahead is from before the clock was set back.
 */
static enum nl_seen fb_may_be_read(const struct fb_replay *run, const struct inode *inode, s64 ctime,
				   s64 btime)
{
	struct timespec64 access = inode_get_atime(inode);
	s64 atime = timespec64_to_ns(&access), now = ktime_get_real_ns();
	struct nl_beat beat;

	nl_beat_read(run->nl, &beat);
	if (inode->i_sb->s_magic != XFS_SUPER_MAGIC || (ctime > beat.until && ctime <= now))
		return NL_SEEN_UNREAD;
	if (atime <= beat.until)
		return fb_may_be_read_before(atime, ctime, btime, now, beat.until) ? NL_SEEN_READ_BEFORE :
			NL_SEEN_UNREAD;
	if (atime > now)
		return NL_SEEN_UNREAD;
	return run->fsb->lower.mnt->mnt_flags & (MNT_RELATIME | MNT_NOATIME) && atime < beat.until + FB_DAY ?
	       NL_SEEN_READ : NL_SEEN_READ_OFTEN;
}

/* For nl_judge(). */
static int fb_look(void *arg, const struct nl_identity *object, u64 *counter, s64 *ctime)
{
	struct fb_replay *run = arg;
	struct dentry *dentry = fb_find_identity(run->fsb, object, false);
	struct timespec64 time;
	enum nl_seen seen;

	if (IS_ERR(dentry))
		return dentry == ERR_PTR(-ESTALE) ? -ENOENT : PTR_ERR(dentry);
	if (!d_inode(dentry)->i_nlink) {	/* the lower file system has yet to delete it */
		dput(dentry);
		return -ENOENT;
	}
	*counter = inode_peek_iversion(d_inode(dentry));
	time = inode_get_ctime(d_inode(dentry));
	*ctime = timespec64_to_ns(&time);
	seen = fb_may_be_read(run, d_inode(dentry), *ctime, object->btime);
	dput(dentry);
	return seen;
}

static const char *fb_verdict(enum nl_verdict verdict)
{
	switch (verdict) {
	case NL_ROLLED_BACK:
		return "the file system below is older than the name log (rolled back, or a copy)";
	case NL_CHANGED:
		return "the file system below was changed without Forebay since the crash";
	case NL_NO_CUT:
		return "the file system below has lost a change and has a later one";
	case NL_UNCLEAR:
		return "a directory below was read twice since the crash, and doesn't show what it has";
	default:
		return "the name log contradicts itself";
	}
}

/* Without the right time, an explained state may look like another one. */
static const char *fb_clock_hint(const struct fb_replay *run)
{
	struct nl_beat beat;

	nl_beat_read(run->nl, &beat);
	if (beat.back)
		return "; or the system clock was set back just before the crash, which can look the same";
	if ((s64)ktime_get_real_ns() < beat.time)
		return "; or it was only read while the system clock was behind, as that is now";
	return "";
}

/* Storage can't be explained: nothing is changed. */
static int fb_refuse(struct fb_replay *run, const struct nl_judge *judge)
{
	struct dentry *dir = judge->has_dir ? fb_find_identity(run->fsb, &judge->dir, true) : NULL;
	const char *name = run->fsb->cache_name;
	const char *why = fb_verdict(judge->verdict), *hint = fb_clock_hint(run);

	if (!IS_ERR_OR_NULL(dir))
		fb_error(run->fc, "%s: %s (directory '%pd4', record at place %llu)%s; nothing was changed. %s",
			 name, why, dir, judge->place, hint, FB_WAY_OUT);
	else if (judge->has_dir)
		fb_error(run->fc, "%s: %s (directory with handle %*phN, record at place %llu)%s; nothing was changed. %s",
			 name, why, judge->dir.len, judge->dir.handle, judge->place, hint, FB_WAY_OUT);
	else
		fb_error(run->fc, "%s: %s (record at place %llu)%s; nothing was changed. %s",
			 name, why, judge->place, hint, FB_WAY_OUT);
	if (!IS_ERR_OR_NULL(dir))
		dput(dir);
	return -EUCLEAN;
}

/* @judge has memory. */
static int fb_judge(struct fb_replay *run, struct nl_judge *judge)
{
	int err = nl_judge(judge);

	if (err == -EUCLEAN)
		return fb_log_damaged(run, &judge->damage);
	if (err)
		return fb_fail(run->fc, err,
			       "%s: the name log can't be replayed: a file or directory below can't be read (error %d); nothing was changed, mount again to try again",
			       run->fsb->cache_name, err);
	if (judge->verdict)
		return fb_refuse(run, judge);
	if (fb_replay_stops())
		return -ECANCELED;
	err = nl_decide(run->nl, judge->bits, judge->end);
	return err == -EUCLEAN ? fb_log_damaged_somewhere(run) : err;
}

/**
 * fb_decide() - make the decisions of a recovery
 * @run: the replay; the log has records and no decisions, @run->bind.nodes is empty, the lower journal was
 *	committed. The nodes are overwritten
 *
 * Return: 0; or an error, after a message unless it is -ENOMEM.
 */
int fb_decide(struct fb_replay *run)
{
	struct nl_judge judge = {
		.nl = run->nl, .record = &run->scratch, .nodes = run->bind.nodes, .look = fb_look,
		.arg = run,
	};
	int err;

	judge.bits = vzalloc(nl_bits_size(run->nl));
	if (!judge.bits)
		return -ENOMEM;
	err = fb_judge(run, &judge);
	vfree(judge.bits);
	return err;
}
