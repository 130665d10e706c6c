// SPDX-License-Identifier: GPL-2.0-only
/*
 * Before a change of names or attributes is made below: what its record will say, and space for it.
 *
 * A directory whose counter is not what our last change has left there, and a change for which there is no
 * space, switch the log off.
 *
 * On xfs, a directory that is read after a crash may get a higher counter, as by a change. So a change raises
 * it by a whole step (NL_STEP) and one more. The step is made here, in memory: xfs logs the counter with the
 * change itself. If the directory doesn't change, fb_names_end() takes the step back, so that records count
 * from what storage has. If xfs writes the inode between step and change, for an earlier change of it,
 * storage has the step alone: just the counter in the record, so the change is not there.
 */
#include <linux/iversion.h>
#include <linux/magic.h>

#include "../lower/lower.h"
#include "begin.h"
#include "log.h"
#include "object.h"

/* Notes an object that has an upper inode. */
static void fb_record_object(struct fb_name_record *rec, struct inode *inode, struct dentry *lower_dentry,
			     struct nl_identity *id, u32 field)
{
	struct fb_inode *fi = FB_I(inode);

	id->birth = fi->names.birth;
	id->btime = READ_ONCE(fi->names.btime);
	rec->fits &= fb_identify(FB_SB(inode->i_sb), fi->lower, lower_dentry, id);
	WRITE_ONCE(fi->names.btime, id->btime);	/* it never changes, so nothing need lock it */
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
	rec->dirs[rec->nr_dirs++] = (struct fb_name_dir){
		.fi = fi, .count = count, .must = must, .field = field,
		.ctime_before = fb_inode_ctime(fi->lower),
	};
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
 * True if the log is on. Then it stays on until the record is whole, or until this change or one beside it
 * switches it off. If the log is off, it stays off until the change has been made.
 */
static bool fb_names_enter(struct fb_name_record *rec, struct fb_sb *fsb, enum nl_kind kind)
{
	struct fb_names *names = fsb->names;

	rec->names = NULL;
	rec->end = 0;
	if (!names || names->unfit)
		return false;
	lockdep_assert_held(&fsb->changes);
	rec->names = names;
	rec->fits = READ_ONCE(names->on);
	fb_names_beat_if_due(names);
	if (!rec->fits)
		return false;
	rec->nr_dirs = 0;
	rec->object = NULL;
	rec->nameless = NULL;
	rec->wants_barrier = false;
	rec->extras = NULL;
	memset(&rec->change, 0, sizeof(rec->change));
	rec->change.kind = kind;
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

/* A fault on purpose: no step is made, so a read is taken for a change. */
#ifdef FB_BREAK_STEP
#define FB_STEPS	0
#else
#define FB_STEPS	1
#endif

/* The first raises of the step. The mark of a query stays, so the change itself raises the counter, too. */
static void fb_names_step(struct fb_name_record *rec)
{
	for (unsigned int i = 0; FB_STEPS && i < rec->nr_dirs; i++) {
		struct fb_name_dir *dir = &rec->dirs[i];
		struct inode *lower = dir->fi->lower;

		if (!S_ISDIR(lower->i_mode) || lower->i_sb->s_magic != XFS_SUPER_MAGIC)
			continue;
		atomic64_add(NL_STEP << I_VERSION_QUERIED_SHIFT, &lower->i_version);
		dir->count->before += NL_STEP;
		dir->stepped = true;
	}
}

/* Sets space aside; without it, or if the change can't be described, the log is switched off. */
static void fb_names_reserve(struct fb_name_record *rec)
{
	rec->fits = rec->fits && fb_reserve_places(rec);
	if (rec->fits)
		fb_names_step(rec);
	else
		fb_names_switch_off(rec->names);
}

/* The handle and the attributes come when the object is there. */
static void fb_record_new(struct fb_name_record *rec)
{
	rec->change.object.len = NL_HANDLE_MAX;
	rec->change.has |= FB_FIELD(OBJECT) | FB_FIELD(ATTR);
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
	fb_record_dir(rec, dentry->d_parent, &rec->change.dir, FB_FIELD(DIR));
	fb_record_name(rec, dentry, &rec->change.name, FB_FIELD(NAME));
	fb_record_new(rec);
	if (S_ISDIR(mode))
		rec->change.has |= FB_FIELD(SELF);
	if (target) {
		rec->change.target.bytes = target;
		rec->change.target.len = strlen(target);
		rec->change.has |= FB_FIELD(TARGET);
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
	fb_record_dir(rec, dentry->d_parent, &rec->change.dir, FB_FIELD(DIR));
	fb_record_name(rec, dentry, &rec->change.name, FB_FIELD(NAME));
	fb_record_object(rec, d_inode(old), fb_lower_dentry(old), &rec->change.object, FB_FIELD(OBJECT));
	rec->object = FB_I(d_inode(old))->lower;
	rec->wants_barrier = fb_has_many_names(rec->object);
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
	fb_record_dir(rec, dentry->d_parent, &rec->change.dir, FB_FIELD(DIR));
	fb_record_name(rec, dentry, &rec->change.name, FB_FIELD(NAME));
	fb_record_object(rec, inode, fb_lower_dentry(dentry), &rec->change.object, FB_FIELD(OBJECT));
	rec->object = FB_I(inode)->lower;
	rec->wants_barrier = fb_has_many_names(rec->object);
	if (S_ISDIR(inode->i_mode))
		fb_record_count(rec, inode, &rec->change.self, FB_FIELD(SELF), false);
	fb_names_reserve(rec);
}

/**
 * fb_names_begin_rename() - a name is about to be moved below
 * @rec: the change; for fb_names_end()
 * @old: the name; both lower directories are locked
 * @new: its new place
 * @flags: of renameat2()
 * @unsynced: the file has data that are not durable (sync/replace.c), and @new is replaced
 *
 * The data of a file that takes the place of another become durable first, as on the file system below.
 * Otherwise synced data of the other file would be lost for data that no call has synced. So commits wait
 * for storage then.
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
	fb_record_dir(rec, old->d_parent, &c->dir, FB_FIELD(DIR));
	if (new->d_parent != old->d_parent)
		fb_record_dir(rec, new->d_parent, &c->dir2, FB_FIELD(DIR2));
	fb_record_name(rec, old, &c->name, FB_FIELD(NAME));
	fb_record_name(rec, new, &c->name2, FB_FIELD(NAME2));
	fb_record_object(rec, inode, fb_lower_dentry(old), &c->object, FB_FIELD(OBJECT));
	rec->object = FB_I(inode)->lower;
	rec->wants_barrier = fb_has_many_names(rec->object);
	if (S_ISDIR(inode->i_mode))
		fb_record_count(rec, inode, &c->self, FB_FIELD(SELF), false);
	if (target) {
		fb_record_object(rec, target, fb_lower_dentry(new), &c->object2, FB_FIELD(OBJECT2));
		if (S_ISDIR(target->i_mode))
			fb_record_count(rec, target, &c->self2, FB_FIELD(SELF2), false);
		rec->wants_barrier |= unsynced || fb_has_many_names(FB_I(target)->lower);
	}
	fb_names_reserve(rec);
}

/* A change of attributes, whatever it is. @must: the counter rises, or nothing has changed. */
static void fb_record_attributes(struct fb_name_record *rec, struct dentry *dentry, bool must)
{
	struct inode *inode = d_inode(dentry);

	fb_record_object(rec, inode, fb_lower_dentry(dentry), &rec->change.object, FB_FIELD(OBJECT));
	fb_record_count(rec, inode, &rec->change.self, FB_FIELD(SELF), must);
	rec->mode_before = FB_I(inode)->lower->i_mode;
	rec->change.has |= FB_FIELD(ATTR);
}

/**
 * fb_names_begin_attr() - attributes are about to be changed below
 * @rec: the change; for fb_names_end()
 * @dentry: upper dentry
 * @whole: owner, mode and times are all that changes, and their counter says that storage has it
 *
 * Context: process, after fb_begin_below(); the upper inode is locked exclusively. Sleeps.
 */
void fb_names_begin_attr(struct fb_name_record *rec, struct dentry *dentry, bool whole)
{
	if (!fb_names_enter(rec, FB_SB(dentry->d_sb), NL_SETATTR))
		return;
	fb_record_attributes(rec, dentry, false);
	rec->wants_barrier = !whole;
	fb_names_reserve(rec);
}

/**
 * fb_names_begin_xattr() - an extended attribute or an ACL is about to be changed below
 * @rec: the change; for fb_names_end()
 * @dentry: upper dentry
 * @name: with its prefix
 * @value: NULL: it is removed. It stays there until fb_names_end()
 * @size: of @value, in bytes
 *
 * Context: process, after fb_begin_below(); the upper inode is locked exclusively. Sleeps.
 */
void fb_names_begin_xattr(struct fb_name_record *rec, struct dentry *dentry, const char *name,
			  const void *value, size_t size)
{
	struct nl_change *c = &rec->change;

	if (!fb_xattr_fits(name, size)) {
		fb_names_begin_attr(rec, dentry, false);
		return;
	}
	if (!fb_names_enter(rec, FB_SB(dentry->d_sb), value ? NL_XATTR_SET : NL_XATTR_REMOVE))
		return;
	fb_record_attributes(rec, dentry, d_is_dir(dentry));
	rec->wants_barrier = !fb_xattr_is_one(FB_I(d_inode(dentry))->lower);
	c->xattr = (struct nl_text){ .bytes = name, .len = strlen(name) };
	c->has |= FB_FIELD(XATTR);
	if (value) {
		c->value = (struct nl_text){ .bytes = value, .len = size };
		c->has |= FB_FIELD(VALUE);
	}
	fb_names_reserve(rec);
}

/**
 * fb_names_begin_flags() - inode flags are about to be changed below
 * @rec: the change; for fb_names_end()
 * @dentry: upper dentry
 * @iflags: which of FB_LOGGED_FLAGS the inode has afterwards
 * @whole: these are all that changes
 *
 * Context: process, after fb_begin_below(); the upper inode is locked exclusively. Sleeps.
 */
void fb_names_begin_flags(struct fb_name_record *rec, struct dentry *dentry, u32 iflags, bool whole)
{
	if (!whole) {
		fb_names_begin_attr(rec, dentry, false);
		return;
	}
	if (!fb_names_enter(rec, FB_SB(dentry->d_sb), NL_IFLAGS))
		return;
	fb_record_attributes(rec, dentry, d_is_dir(dentry));
	rec->iflags = iflags;
	fb_names_reserve(rec);
}
