// SPDX-License-Identifier: GPL-2.0-only
/*
 * What a change of names or attributes leaves in the log.
 *
 *	fb_names_begin_*()	before the change below: the counters of its directories, space for the record
 *	(the change below)
 *	fb_names_end()		its record, before the locks below are given back
 *	fb_names_note()		the inode knows what a sync call has to commit
 *
 * All three are called under the lock of the upper inodes that change, and the first two under the locks
 * of the lower directories, between fb_begin_below() and fb_end_below().
 *
 * A change that the log holds only in part has a barrier before its record: commits wait until storage has
 * the change. A directory whose counter is not what our last change has left there, and a change for which
 * there is no space, switch the log off.
 */
#include <linux/iversion.h>
#include <linux/xattr.h>

#include "../../compat/attr.h"
#include "../lower/lower.h"
#include "log.h"
#include "record.h"

#define HAS(field)	(1u << NL_F_##field)

/* Inode flags that say how an inode is stored, not how it behaves. */
#define FB_PLAIN_FLAGS	(FS_EXTENT_FL | FS_INDEX_FL | FS_INLINE_DATA_FL | FS_HUGE_FILE_FL)

static s64 fb_ctime(const struct inode *inode)
{
	struct timespec64 ctime = inode_get_ctime(inode);

	return timespec64_to_ns(&ctime);
}

/* The heartbeat covers the changes of the next second. */
static void fb_beat_if_due(struct fb_names *names)
{
	if (READ_ONCE(names->until) - (s64)ktime_get_coarse_real_ns() > NSEC_PER_SEC)
		return;
	mutex_lock(&names->commit_lock);
	if (names->until - (s64)ktime_get_coarse_real_ns() <= NSEC_PER_SEC)
		fb_names_beat(names);
	mutex_unlock(&names->commit_lock);
}

/* False: the lower file system has no handle for it. */
static bool fb_identify(struct fb_sb *fsb, struct inode *lower, struct dentry *lower_dentry,
			struct nl_identity *id)
{
	struct path path = { .mnt = fsb->lower.mnt, .dentry = lower_dentry };
	struct ps_handle handle;
	struct kstat stat;

	if (fb_encode_handle(lower, &handle) ||
	    vfs_getattr_nosec(&path, &stat, STATX_BTIME, AT_STATX_DONT_SYNC))
		return false;
	id->btime = stat.result_mask & STATX_BTIME ? timespec64_to_ns(&stat.btime) : 0;
	id->type = handle.type;
	id->len = handle.len;
	memcpy(id->handle, handle.bytes, handle.len);
	return true;
}

/* Of an object that has an upper inode. */
static void fb_record_object(struct fb_name_record *rec, struct inode *inode, struct dentry *lower_dentry,
			     struct nl_identity *id, u32 field)
{
	id->birth = FB_I(inode)->names.birth;
	rec->fits &= fb_identify(FB_SB(inode->i_sb), FB_I(inode)->lower, lower_dentry, id);
	rec->change.has |= field;
}

/* Notes an inode's counter from before the change. Only that of a directory says anything. */
static void fb_record_count(struct fb_name_record *rec, struct inode *inode, struct nl_count *count,
			    u32 field, bool must)
{
	struct fb_inode *fi = FB_I(inode);

	/* Asked for, it rises with the next change. xfs may leave it alone otherwise. */
	count->before = inode_query_iversion(fi->lower);
	/* Something else has changed the directory since our last change. */
	if (S_ISDIR(inode->i_mode) && fi->names.life == rec->names->life &&
	    fi->names.counter != count->before)
		rec->fits = false;
	rec->dirs[rec->nr_dirs++] = (struct fb_name_dir){ fi, count, must };
	rec->change.has |= field;
}

/* Names of an encrypted directory don't go to PMem as plain text. */
static void fb_record_dir(struct fb_name_record *rec, struct dentry *dir, struct nl_dir *to, u32 field)
{
	rec->fits &= !IS_ENCRYPTED(FB_I(d_inode(dir))->lower);
	fb_record_object(rec, d_inode(dir), fb_lower_dentry(dir), &to->id, field);
	fb_record_count(rec, d_inode(dir), &to->count, field, true);
}

static void fb_record_name(struct fb_name_record *rec, const struct dentry *dentry, struct nl_text *to,
			   u32 field)
{
	to->bytes = dentry->d_name.name;
	to->len = dentry->d_name.len;
	rec->change.has |= field;
}

/*
 * Is the log on? Then it stays on until the record is whole, or is switched off by this change or one
 * beside it. If it is off, it stays off until the change has been made.
 */
static bool fb_names_enter(struct fb_name_record *rec, struct fb_sb *fsb, enum nl_kind kind)
{
	struct fb_names *names = fsb->names;

	rec->names = NULL;
	rec->end = 0;
	if (!names || names->unfit)
		return false;
	lockdep_assert_held_read(&fsb->changes);
	rec->names = names;
	rec->fits = READ_ONCE(names->on);
	if (!rec->fits)
		return false;
	rec->nr_dirs = 0;
	rec->object = NULL;
	rec->nameless = NULL;
	rec->wants_barrier = false;
	memset(&rec->change, 0, sizeof(rec->change));
	rec->change.kind = kind;
	fb_beat_if_due(names);
	return true;
}

static bool fb_reserve_places(struct fb_name_record *rec)
{
	int lines = nl_change_lines(&rec->change);
	struct fb_names *names = rec->names;
	bool reserved;

	if (lines < 0)
		return false;
	spin_lock(&names->place_lock);
	reserved = !nl_reserve(&names->nl, &rec->barrier, 1);
	if (reserved && nl_reserve(&names->nl, &rec->place, lines)) {
		nl_cancel(&names->nl, &rec->barrier);
		reserved = false;
	}
	spin_unlock(&names->place_lock);
	return reserved;
}

/* Sets space aside; without it, or if the change can't be described, the log is switched off. */
static void fb_names_reserve(struct fb_name_record *rec)
{
	rec->fits = rec->fits && fb_reserve_places(rec);
	if (!rec->fits)
		fb_names_switch_off(rec->names);
}

/* The handle and the attributes come when the object is there. */
static void fb_record_new(struct fb_name_record *rec)
{
	rec->change.object.len = NL_HANDLE_MAX;
	rec->change.has |= HAS(OBJECT) | HAS(ATTR);
}

/**
 * fb_names_begin_create() - a file, directory, symbolic link or special file is about to be made below
 * @rec: the change; for fb_names_end()
 * @dentry: upper dentry; its lower directory is locked
 * @mode: with its type
 * @target: of a symbolic link
 *
 * Context: process, after fb_begin_below(). Sleeps.
 */
void fb_names_begin_create(struct fb_name_record *rec, struct dentry *dentry, umode_t mode,
			   const char *target)
{
	struct fb_sb *fsb = FB_SB(dentry->d_sb);

	if (!fb_names_enter(rec, fsb, NL_CREATE))
		return;
	fb_record_dir(rec, dentry->d_parent, &rec->change.dir, HAS(DIR));
	fb_record_name(rec, dentry, &rec->change.name, HAS(NAME));
	fb_record_new(rec);
	if (S_ISDIR(mode))
		rec->change.has |= HAS(SELF);
	if (target) {
		rec->change.target.bytes = target;
		rec->change.target.len = strlen(target);
		rec->change.has |= HAS(TARGET);
	}
	fb_names_reserve(rec);
}

/**
 * fb_names_begin_tmpfile() - a file without a name is about to be made below
 * @rec: the change; for fb_names_end()
 * @fsb: the mount
 *
 * Context: process, after fb_begin_below(). Sleeps.
 */
void fb_names_begin_tmpfile(struct fb_name_record *rec, struct fb_sb *fsb)
{
	if (!fb_names_enter(rec, fsb, NL_TMPFILE))
		return;
	fb_record_new(rec);
	fb_names_reserve(rec);
}

/**
 * fb_names_begin_link() - a file is about to get one more name below
 * @rec: the change; for fb_names_end()
 * @dentry: the new name; its lower directory is locked
 * @old: a name that the file has
 *
 * Context: process, after fb_begin_below(). Sleeps.
 */
void fb_names_begin_link(struct fb_name_record *rec, struct dentry *dentry, struct dentry *old)
{
	struct fb_sb *fsb = FB_SB(dentry->d_sb);

	if (!fb_names_enter(rec, fsb, NL_LINK))
		return;
	fb_record_dir(rec, dentry->d_parent, &rec->change.dir, HAS(DIR));
	fb_record_name(rec, dentry, &rec->change.name, HAS(NAME));
	fb_record_object(rec, d_inode(old), fb_lower_dentry(old), &rec->change.object, HAS(OBJECT));
	rec->object = FB_I(d_inode(old))->lower;
	if (!d_inode(old)->i_nlink)
		rec->nameless = FB_I(d_inode(old));
	fb_names_reserve(rec);
}

/**
 * fb_names_begin_remove() - a name is about to be removed below
 * @rec: the change; for fb_names_end()
 * @dentry: the name; its lower directory is locked
 *
 * Context: process, after fb_begin_below(). Sleeps.
 */
void fb_names_begin_remove(struct fb_name_record *rec, struct dentry *dentry)
{
	struct fb_sb *fsb = FB_SB(dentry->d_sb);
	struct inode *inode = d_inode(dentry);

	if (!fb_names_enter(rec, fsb, d_is_dir(dentry) ? NL_RMDIR : NL_UNLINK))
		return;
	fb_record_dir(rec, dentry->d_parent, &rec->change.dir, HAS(DIR));
	fb_record_name(rec, dentry, &rec->change.name, HAS(NAME));
	fb_record_object(rec, inode, fb_lower_dentry(dentry), &rec->change.object, HAS(OBJECT));
	rec->object = FB_I(inode)->lower;
	if (S_ISDIR(inode->i_mode))
		fb_record_count(rec, inode, &rec->change.self, HAS(SELF), false);
	fb_names_reserve(rec);
}

/**
 * fb_names_begin_rename() - a name is about to be moved below
 * @rec: the change; for fb_names_end()
 * @old: the name; both lower directories are locked
 * @new: its new place
 * @flags: of renameat2()
 * @unsynced: the file has data that no sync call has made durable
 *
 * A file that takes the place of another has its data first, as on the file system below: what was synced
 * in the other is not lost for something that nothing has synced. So commits wait for storage then.
 *
 * Context: process, after fb_begin_below(). Sleeps.
 */
void fb_names_begin_rename(struct fb_name_record *rec, struct dentry *old, struct dentry *new,
			   unsigned int flags, bool unsynced)
{
	struct inode *inode = d_inode(old), *target = d_inode(new);
	struct fb_sb *fsb = FB_SB(old->d_sb);
	struct nl_change *c = &rec->change;

	if (!fb_names_enter(rec, fsb, NL_RENAME))
		return;
	rec->fits = !(flags & RENAME_WHITEOUT);
	c->flags = (flags & RENAME_EXCHANGE ? NL_EXCHANGE : 0) |
		   (flags & RENAME_NOREPLACE ? NL_NOREPLACE : 0);
	fb_record_dir(rec, old->d_parent, &c->dir, HAS(DIR));
	if (new->d_parent != old->d_parent)
		fb_record_dir(rec, new->d_parent, &c->dir2, HAS(DIR2));
	fb_record_name(rec, old, &c->name, HAS(NAME));
	fb_record_name(rec, new, &c->name2, HAS(NAME2));
	fb_record_object(rec, inode, fb_lower_dentry(old), &c->object, HAS(OBJECT));
	rec->object = FB_I(inode)->lower;
	if (S_ISDIR(inode->i_mode))
		fb_record_count(rec, inode, &c->self, HAS(SELF), false);
	if (target) {
		fb_record_object(rec, target, fb_lower_dentry(new), &c->object2, HAS(OBJECT2));
		if (S_ISDIR(target->i_mode))
			fb_record_count(rec, target, &c->self2, HAS(SELF2), false);
		rec->wants_barrier = unsynced && !(flags & RENAME_EXCHANGE);
	}
	fb_names_reserve(rec);
}

/**
 * fb_names_begin_attr() - attributes are about to be changed below
 * @rec: the change; for fb_names_end()
 * @dentry: upper dentry
 * @whole: owner, mode and times are all that changes
 *
 * Context: process, after fb_begin_below(); the upper inode is locked exclusively. Sleeps.
 */
void fb_names_begin_attr(struct fb_name_record *rec, struct dentry *dentry, bool whole)
{
	struct fb_sb *fsb = FB_SB(dentry->d_sb);
	struct inode *inode = d_inode(dentry);

	if (!fb_names_enter(rec, fsb, NL_SETATTR))
		return;
	fb_record_object(rec, inode, fb_lower_dentry(dentry), &rec->change.object, HAS(OBJECT));
	fb_record_count(rec, inode, &rec->change.self, HAS(SELF), false);
	rec->change.has |= HAS(ATTR);
	rec->wants_barrier = !whole;
	fb_names_reserve(rec);
}

/* Writes may move the times meanwhile. Then the record has the older ones, and inodes are told of these. */
static void fb_record_times(struct fb_name_record *rec, const struct inode *lower)
{
	struct timespec64 mtime = inode_get_mtime(lower);

	rec->mtime = timespec64_to_ns(&mtime);
	rec->ctime = fb_ctime(lower);
}

static void fb_record_attr(struct nl_attr *attr, const struct inode *lower, s64 mtime)
{
	struct timespec64 atime = inode_get_atime(lower);

	*attr = (struct nl_attr){
		.mask = NL_ATTR_MODE | NL_ATTR_UID | NL_ATTR_GID | NL_ATTR_RDEV | NL_ATTR_ATIME |
			NL_ATTR_MTIME,
		.mode = lower->i_mode,
		.uid = from_kuid(&init_user_ns, lower->i_uid),
		.gid = from_kgid(&init_user_ns, lower->i_gid),
		.rdev = new_encode_dev(lower->i_rdev),
		.atime = timespec64_to_ns(&atime),
		.mtime = mtime,
	};
}

/* A new object that has more than a record of its creation says: from its directory, or a security module. */
static bool fb_has_more(struct dentry *lower)
{
	struct inode *inode = d_inode(lower);
	struct file_kattr fa;
	ssize_t xattrs;

	if (IS_ENCRYPTED(inode))
		return true;
	xattrs = vfs_listxattr(lower, NULL, 0);
	if (xattrs && xattrs != -EOPNOTSUPP)
		return true;
	if (!S_ISREG(inode->i_mode) && !S_ISDIR(inode->i_mode))
		return false;
	return vfs_fileattr_get(lower, &fa) || (fa.flags & ~FB_PLAIN_FLAGS) || fa.fsx_projid ||
	       fa.fsx_extsize || fa.fsx_cowextsize;
}

/* The object of the change, as it is now. False: it can't be described. */
static bool fb_record_result(struct fb_name_record *rec, struct fb_sb *fsb, struct dentry *lower)
{
	struct nl_change *c = &rec->change;
	struct inode *inode;

	if (!(c->has & HAS(ATTR))) {
		fb_record_times(rec, rec->object);
		return true;
	}
	if (d_really_is_negative(lower))
		return false;
	inode = d_inode(lower);
	fb_record_times(rec, inode);
	fb_record_attr(&c->attr, inode, rec->mtime);
	if (c->kind == NL_SETATTR)
		return true;
	if (c->has & HAS(SELF))
		c->self.ctime = rec->ctime;
	rec->wants_barrier |= fb_has_more(lower);
	return fb_identify(fsb, inode, lower, &c->object);
}

/* The directories' counters and times after the change. False: a counter didn't rise that has to. */
static bool fb_record_counts(struct fb_name_record *rec)
{
	for (unsigned int i = 0; i < rec->nr_dirs; i++) {
		struct fb_name_dir *dir = &rec->dirs[i];
		bool is_dir = S_ISDIR(dir->fi->lower->i_mode);
		u64 now = inode_peek_iversion(dir->fi->lower);

		if (now <= dir->count->before && dir->must)
			return false;
		if (!is_dir)
			dir->count->before = now;
		else if (now <= dir->count->before)
			dir->count->before = 0;		/* it says nothing */
		dir->count->ctime = is_dir ? fb_ctime(dir->fi->lower) : rec->ctime;
		dir->fi->names.counter = now;
		dir->fi->names.life = rec->names->life;
	}
	return true;
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
 * A file gets its first name. Without that storage deletes the file after a crash, and replay makes it again:
 * as it was created, if the log still has that, and without data that a sync call has made durable below.
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
	spin_unlock(&names->place_lock);
	if (rec->change.kind == NL_CREATE || rec->change.kind == NL_TMPFILE)
		rec->change.object.birth = rec->place.start;
	if (rec->wants_barrier)
		nl_write(nl, &rec->barrier, &barrier);
	nl_write(nl, &rec->place, &rec->change);
	spin_lock(&names->place_lock);
	if (rec->wants_barrier)
		nl_done(nl, &rec->barrier);
	nl_done(nl, &rec->place);
	spin_unlock(&names->place_lock);
	preempt_enable();
	rec->end = rec->place.end;
	atomic64_inc(&names->nr_records);
	atomic64_add(rec->wants_barrier, &names->nr_barriers);
}

/* The change was slow: no heartbeat has spoken of its time. */
static void fb_beat_if_late(struct fb_names *names)
{
	if ((s64)ktime_get_coarse_real_ns() < READ_ONCE(names->until))
		return;
	mutex_lock(&names->commit_lock);
	fb_names_beat(names);
	mutex_unlock(&names->commit_lock);
}

/* A record, or space for one that is not to be. Returns whether the change is explained. */
static bool fb_names_finish(struct fb_name_record *rec, struct dentry *lower, int err)
{
	struct fb_names *names = rec->names;

	if (!err && fb_record_result(rec, names->fsb, lower) && fb_record_counts(rec)) {
		rec->wants_barrier |= fb_names_need_storage(rec);
		fb_record_write(rec);
		return true;
	}
	spin_lock(&names->place_lock);
	nl_cancel(&names->nl, &rec->barrier);
	nl_cancel(&names->nl, &rec->place);
	spin_unlock(&names->place_lock);
	return err && !fb_record_counts_moved(rec);
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

	if (!names || !rec->fits)
		return;
	if (!fb_names_finish(rec, lower, err))
		fb_names_switch_off(names);
	fb_beat_if_late(names);
	fb_names_trim_later(names);
}

/*
 * A record of attributes has the file's times. Any other change moves ctime alone. After a crash ctime may
 * then be that of replay, so an fsync owes only an mtime that isn't durable yet.
 */
static void fb_names_note_times(const struct fb_name_record *rec, struct fb_inode *fi)
{
	if (!(rec->change.has & HAS(ATTR)) && rec->mtime != fi->names.mtime &&
	    rec->mtime != READ_ONCE(fi->durable_time))
		return;
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
	if (rec->change.kind == NL_CREATE || rec->change.kind == NL_TMPFILE)
		fi->names.birth = rec->change.object.birth;
	if (!rec->object || rec->object == fi->lower)
		fb_names_note_times(rec, fi);
	return true;
}
