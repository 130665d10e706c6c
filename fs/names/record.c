// SPDX-License-Identifier: GPL-2.0-only
/*
 * What a change of names or attributes leaves in the log.
 *
 *	fb_names_begin_*()	before the change below: begin.c
 *	(the change below)
 *	fb_names_end()		its record, before the locks below are given back
 *	fb_names_note()		the inode knows what a sync call has to commit
 *
 * All three are called between fb_begin_below() and fb_end_below(), under the lock of the upper inodes that
 * change. The first two are called under the locks of the lower directories, too.
 *
 * A change that the log holds only in part has a barrier before its record: commits wait until storage has
 * the change. A directory whose counter is not what our last change has left there, and a change for which
 * there is no space, switch the log off.
 */
#include <linux/iversion.h>

#include "extra.h"
#include "log.h"
#include "object.h"
#include "record.h"

/* Writes may move the times meanwhile. Then the record has the older ones, and inodes are told of these. */
static void fb_record_times(struct fb_name_record *rec, const struct inode *lower)
{
	struct timespec64 mtime = inode_get_mtime(lower);

	rec->mtime = timespec64_to_ns(&mtime);
	rec->ctime = fb_inode_ctime(lower);
}

static bool fb_is_creation(const struct nl_change *c)
{
	return c->kind == NL_CREATE || c->kind == NL_TMPFILE;
}

/*
 * Records what a new object has from its directory or from a security module. xfs sets an inherited ACL
 * after the creation. So the ctime of a new directory says that storage has the ACL, and its counter
 * doesn't. A file's counter is asked for, as in fb_record_counts(): otherwise xfs may leave it alone when
 * the ACL goes within the same tick of the clock, while the log is off.
 */
static void fb_record_extras(struct fb_name_record *rec, struct dentry *lower)
{
	struct nl_count self = { .ctime = rec->ctime };
	struct inode *inode = d_inode(lower);

	if (!S_ISDIR(inode->i_mode))
		self.before = inode_query_iversion(inode);
	rec->extras = fb_extras_find(lower);
	if (rec->extras && !fb_extras_reserve(rec->names, rec->extras, &rec->change, &self)) {
		fb_extras_free(rec->extras);
		rec->extras = NULL;
	}
	rec->wants_barrier |= !rec->extras;
}

/* The object of the change, as it is now. False: it can't be described. */
static bool fb_record_result(struct fb_name_record *rec, struct fb_sb *fsb, struct dentry *lower)
{
	struct nl_change *c = &rec->change;
	struct inode *inode;

	if (!(c->has & FB_FIELD(ATTR))) {
		fb_record_times(rec, rec->object);
		return true;
	}
	if (d_really_is_negative(lower))
		return false;
	inode = d_inode(lower);
	fb_record_times(rec, inode);
	fb_describe(&c->attr, inode, rec->mtime);
	if (c->kind == NL_IFLAGS) {
		c->attr.mask |= NL_ATTR_IFLAGS;
		c->attr.iflags = rec->iflags;
	}
	if (!fb_is_creation(c))
		return true;
	if (c->has & FB_FIELD(SELF))
		c->self.ctime = rec->ctime;
	return fb_identify(fsb, inode, lower, &c->object);
}

/*
 * Whether a directory's extended attributes or flags are as they were, for they were set to what they are. A
 * record of that would be made again whatever came after it, since no counter tells that storage has it. An
 * ACL may be a new mode and nothing else. To ext4 that is no extended attribute, and raises no counter.
 */
static bool fb_changed_nothing(const struct fb_name_record *rec)
{
	const struct fb_name_dir *dir = &rec->dirs[0];

	return (rec->change.kind == NL_XATTR_SET || rec->change.kind == NL_XATTR_REMOVE ||
		rec->change.kind == NL_IFLAGS) && dir->must && rec->ctime == dir->ctime_before &&
	       rec->change.attr.mode == rec->mode_before &&
	       inode_peek_iversion(dir->fi->lower) == dir->count->before;
}

/*
 * A fault on purpose: storage has a change only if the counter is at least what it was after the change. The
 * record has room for the counter from before alone, so that one is made later.
 */
#ifdef FB_BREAK_COUNTER_AFTER
#define FB_BREAK_AFTER	1
#else
#define FB_BREAK_AFTER	0
#endif

/*
 * The directories' counters and times after the change. False: a counter didn't rise that has to. That of a
 * file is asked for, so that it rises with the next change of any kind: a write within the same tick of the
 * clock is found to be later.
 */
static bool fb_record_counts(struct fb_name_record *rec)
{
	for (unsigned int i = 0; i < rec->nr_dirs; i++) {
		struct fb_name_dir *dir = &rec->dirs[i];
		bool is_dir = S_ISDIR(dir->fi->lower->i_mode);
		u64 now = is_dir ? inode_peek_iversion(dir->fi->lower) :
				   inode_query_iversion(dir->fi->lower);

		if (now <= dir->count->before && dir->must)
			return false;
		if (!is_dir)
			dir->count->before = now;
		else if (now <= dir->count->before)
			dir->count->before = 0;		/* it says nothing */
		else if (FB_BREAK_AFTER)
			dir->count->before = now - 1;
		dir->count->ctime = is_dir ? fb_inode_ctime(dir->fi->lower) : rec->ctime;
		if (is_dir && dir->count->ctime == dir->ctime_before)
			rec->change.flags |= NL_SAME_CTIME(dir->field);
		if (dir->stepped)
			rec->change.flags |= NL_STEPPED;
		dir->fi->names.counter = now;
		dir->fi->names.life = rec->names->life;
	}
	return true;
}

/* Directories that haven't changed get the counters back that they have on storage. */
static void fb_names_step_back(struct fb_name_record *rec)
{
	for (unsigned int i = 0; i < rec->nr_dirs; i++) {
		struct fb_name_dir *dir = &rec->dirs[i];
		s64 raised = dir->count->before << I_VERSION_QUERIED_SHIFT | I_VERSION_QUERIED;
		s64 back = raised - ((s64)NL_STEP << I_VERSION_QUERIED_SHIFT);

		if (!dir->stepped || !atomic64_try_cmpxchg(&dir->fi->lower->i_version, &raised, back))
			continue;
		dir->count->before -= NL_STEP;
		dir->stepped = false;
	}
}

/* True if a directory has changed although the change has failed. */
static bool fb_record_counts_moved(const struct fb_name_record *rec)
{
	for (unsigned int i = 0; i < rec->nr_dirs; i++)
		if (inode_peek_iversion(rec->dirs[i].fi->lower) != rec->dirs[i].count->before)
			return true;
	return false;
}

/*
 * A file gets its first name. If storage lacks the name, it deletes the file after a crash, and replay makes
 * the file again. That needs the creation in the log, and would lose data that a sync call has made durable
 * below.
 */
static bool fb_names_need_storage(const struct fb_name_record *rec)
{
	if (!rec->nameless)
		return false;
	/* The lower link comes first: pairs with fb_sync_nameless() and fb_names_leave(). */
	smp_mb();
	return rec->nameless->names.birth < READ_ONCE(rec->names->leaving) ||
	       test_bit(FB_NAMELESS_SYNCED, &rec->nameless->flags);
}

/* Writes the record. Commits of other tasks wait for it, so no other task takes the processor. */
static void fb_record_write(struct fb_name_record *rec)
{
	static const struct nl_change barrier = { .kind = NL_OPAQUE };
	struct fb_names *names = rec->names;
	struct nl *nl = &names->nl;
	int lines = nl_change_lines(&rec->change);

	preempt_disable();
	spin_lock(&names->place_lock);
	if (rec->wants_barrier)
		nl_take(nl, &rec->barrier, 1, true);
	else
		nl_cancel(nl, &rec->barrier);
	nl_take(nl, &rec->place, lines, false);
	if (rec->extras)
		fb_extras_take(names, rec->extras);
	rec->end = nl_next(nl);
	spin_unlock(&names->place_lock);
	if (fb_is_creation(&rec->change))
		rec->change.object.birth = rec->place.start;
	if (rec->wants_barrier)
		nl_write(nl, &rec->barrier, &barrier);
	nl_write(nl, &rec->place, &rec->change);
	if (rec->extras)
		fb_extras_write(nl, rec->extras, rec->place.start);
	spin_lock(&names->place_lock);
	if (rec->wants_barrier)
		nl_done(nl, &rec->barrier);
	nl_done(nl, &rec->place);
	if (rec->extras)
		fb_extras_done(names, rec->extras);
	spin_unlock(&names->place_lock);
	preempt_enable();
	atomic64_add(1 + (rec->extras ? rec->extras->nr : 0), &names->nr_records);
	atomic64_add(rec->wants_barrier, &names->nr_barriers);
}

/* A record, or space for one that is not to be. Returns whether the change is explained. */
static bool fb_names_finish(struct fb_name_record *rec, struct dentry *lower, int err)
{
	struct fb_names *names = rec->names;
	bool described, nothing;

	fb_names_step_back(rec);
	described = !err && fb_record_result(rec, names->fsb, lower);
	nothing = described && fb_changed_nothing(rec);
	if (described && !nothing && fb_record_counts(rec)) {
		if (fb_is_creation(&rec->change) && fb_has_more(lower))
			fb_record_extras(rec, lower);
		rec->wants_barrier |= fb_names_need_storage(rec);
		fb_record_write(rec);
		fb_extras_free(rec->extras);
		return true;
	}
	spin_lock(&names->place_lock);
	nl_cancel(&names->nl, &rec->barrier);
	nl_cancel(&names->nl, &rec->place);
	if (nothing)
		rec->end = nl_next(&names->nl);
	spin_unlock(&names->place_lock);
	return nothing || (err && !fb_record_counts_moved(rec));
}

/**
 * fb_names_end() - a change was made below, or has failed
 * @rec: from fb_names_begin_*()
 * @lower: lower dentry of what was created, or whose attributes changed; else NULL
 * @err: what the change below has returned
 *
 * Context: process, under the same locks. May sleep.
 */
void fb_names_end(struct fb_name_record *rec, struct dentry *lower, int err)
{
	struct fb_names *names = rec->names;

	if (!names)
		return;
	if (rec->fits && !fb_names_finish(rec, lower, err))
		fb_names_switch_off(names);
	fb_names_beat_if_due(names);
	if (rec->fits)
		fb_names_trim_later(names);
}

/*
 * A record of attributes has the file's times. Any other change is of a name, and moves ctime alone. Replay
 * gives the file back the ctime that it had. So an fsync only has to store an mtime that isn't durable yet,
 * and page/times.c is told of the ctime that goes with it.
 */
static void fb_names_note_times(const struct fb_name_record *rec, struct fb_inode *fi)
{
	if (rec->mtime != rec->ctime)
		WRITE_ONCE(fi->names.apart, rec->ctime);
	if (!(rec->change.has & FB_FIELD(ATTR)) && rec->mtime != fi->names.mtime &&
	    rec->mtime != READ_ONCE(fi->durable_time)) {
		WRITE_ONCE(fi->names.named, rec->ctime);
		return;
	}
	WRITE_ONCE(fi->names.mtime, rec->mtime);
	WRITE_ONCE(fi->names.ctime, rec->ctime);
}

/**
 * fb_names_note() - tell an inode what its sync calls have to commit
 * @rec: after fb_names_end()
 * @inode: upper inode that the change is about; locked exclusively, or not known to other tasks yet
 *
 * Return: true; false if the change left no record, and has to be made durable below.
 */
bool fb_names_note(const struct fb_name_record *rec, struct inode *inode)
{
	struct fb_inode *fi = FB_I(inode);

	if (!rec->end)
		return false;
	WRITE_ONCE(fi->names.end, rec->end);
	if (fb_is_creation(&rec->change)) {
		fi->names.birth = rec->change.object.birth;
		WRITE_ONCE(fi->names.btime, rec->change.object.btime);
	}
	if (!rec->object || rec->object == fi->lower)
		fb_names_note_times(rec, fi);
	return true;
}
