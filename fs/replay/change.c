// SPDX-License-Identifier: GPL-2.0-only
/*
 * One change of a name or an attribute below, with the right to write to the lower mount and the lower
 * locks that the change takes. Each call is one transaction of the lower journal, or a few.
 *
 * The caller runs with the mounter's credentials.
 */
#include "../../compat/attr.h"
#include "../../compat/names.h"
#include "../lower/attr.h"
#include "../names/object.h"
#include "change.h"

#ifdef FB_BREAK_REPLAY
/* The number of the change before which replay ends; 0: it doesn't. It counts down to 1, and stays there. */
static unsigned int replay_stop;
module_param(replay_stop, uint, 0600);
MODULE_PARM_DESC(replay_stop, "end replay before this change");

/**
 * fb_replay_stops() - whether replay ends here
 *
 * Called before each step that changes anything durable, here and in the other files of this folder.
 *
 * Return: true from the chosen change on, until the parameter is set again.
 */
bool fb_replay_stops(void)
{
	if (replay_stop > 1)
		replay_stop--;
	else if (replay_stop)
		return true;
	return false;
}
#endif

/**
 * fb_find_name() - look a name up below
 * @fsb: the mount
 * @dir: lower directory, not locked
 * @name: the name
 *
 * Return: its dentry with a reference, negative if there is no such name; or an ERR_PTR.
 */
struct dentry *fb_find_name(struct fb_sb *fsb, struct dentry *dir, const struct qstr *name)
{
	return compat_lookup_one_unlocked(mnt_idmap(fsb->lower.mnt), name, dir);
}

/*
 * Replay makes its folder in a root that is immutable or append-only, too, and takes it away again. The flags
 * are lifted in memory alone, under the root's lock. So no other task makes use of that, and storage keeps
 * them. A mkdir that fails gives the lock back by itself, just before fb_put_flags_back().
 */
static unsigned int fb_lift_flags(const struct fb_sb *fsb, struct inode *dir)
{
	unsigned int flags = dir == d_inode(fsb->lower.dentry) ? dir->i_flags & (S_IMMUTABLE | S_APPEND) : 0;

	lockdep_assert_held_write(&dir->i_rwsem);
	inode_set_flags(dir, 0, flags);
	return flags;
}

static void fb_put_flags_back(struct inode *dir, unsigned int flags)
{
	inode_set_flags(dir, flags, flags);
}

static int fb_begin_change(struct fb_sb *fsb)
{
	return fb_replay_stops() ? -ECANCELED : mnt_want_write(fsb->lower.mnt);
}

/* The lower directory is locked. The return value takes the place of @child. */
static struct dentry *fb_make_there(struct mnt_idmap *idmap, struct inode *dir, struct dentry *child,
				    umode_t mode, dev_t rdev, const char *target)
{
	int err;

	switch (mode & S_IFMT) {
	case S_IFDIR:
		return compat_vfs_mkdir(idmap, dir, child, mode & S_IALLUGO);
	case S_IFREG:
		err = compat_vfs_create(idmap, dir, child, mode);
		break;
	case S_IFLNK:
		err = compat_vfs_symlink(idmap, dir, child, target);
		break;
	default:
		err = compat_vfs_mknod(idmap, dir, child, mode, rdev);
		break;
	}
	if (!err)
		return child;
	compat_end_changing(child);
	return ERR_PTR(err);
}

/**
 * fb_make_name() - make an object below
 * @fsb: the mount
 * @dir: lower directory, not locked
 * @name: the name, which isn't there
 * @mode: type and permissions
 * @rdev: of a special file
 * @target: of a symbolic link
 *
 * Return: its dentry with a reference, or an ERR_PTR.
 */
struct dentry *fb_make_name(struct fb_sb *fsb, struct dentry *dir, const struct qstr *name, umode_t mode,
			    dev_t rdev, const char *target)
{
	struct mnt_idmap *idmap = mnt_idmap(fsb->lower.mnt);
	int err = fb_begin_change(fsb);
	struct dentry *child;
	unsigned int flags;

	if (err)
		return ERR_PTR(err);
	child = compat_start_changing(idmap, dir, name, false);
	if (!IS_ERR(child)) {
		flags = fb_lift_flags(fsb, d_inode(dir));
		child = fb_make_there(idmap, d_inode(dir), child, mode, rdev, target);
		fb_put_flags_back(d_inode(dir), flags);
	}
	if (!IS_ERR(child)) {
		dget(child);
		compat_end_changing(child);
	}
	mnt_drop_write(fsb->lower.mnt);
	if (!IS_ERR(child) && d_really_is_negative(child)) {
		dput(child);
		return ERR_PTR(-ESTALE);
	}
	return child;
}

/*
 * A new name, or one less, moves a file's ctime. It goes back to what it was: fb_recover_attach() and attr.c
 * take it for the time of the last change of data or attributes. If power fails in between, the file may
 * have an older mtime than it should; its attributes were set before.
 */
static void fb_keep_ctime(struct fb_sb *fsb, struct inode *inode, struct timespec64 ctime)
{
	struct iattr attr = { };
	struct dentry *alias;

	if (!S_ISREG(inode->i_mode) || !inode->i_nlink || fb_replay_stops())
		return;
	ihold(inode);
	alias = d_obtain_alias(inode);	/* the name may be gone; takes the reference */
	if (IS_ERR(alias))
		return;
	inode_lock(inode);
	fb_set_attr_at(mnt_idmap(fsb->lower.mnt), alias, &attr, ctime);
	inode_unlock(inode);
	dput(alias);
}

/* The inode of a name, with a reference, and its ctime; NULL: there is no such name. */
static struct inode *fb_hold(const struct dentry *dentry, struct timespec64 *ctime)
{
	struct inode *inode = d_inode(dentry);

	if (!inode)
		return NULL;
	ihold(inode);
	*ctime = inode_get_ctime(inode);
	return inode;
}

/**
 * fb_link_name() - give an object below one more name
 * @fsb: the mount
 * @object: its dentry; no directory
 * @dir: lower directory, not locked
 * @name: the name, which isn't there
 * @keep: what becomes of its ctime
 *
 * Return: 0 or an error.
 */
int fb_link_name(struct fb_sb *fsb, struct dentry *object, struct dentry *dir, const struct qstr *name,
		 enum fb_ctime keep)
{
	struct timespec64 ctime = inode_get_ctime(d_inode(object));
	struct mnt_idmap *idmap = mnt_idmap(fsb->lower.mnt);
	int err = fb_begin_change(fsb);
	struct dentry *child;

	if (err)
		return err;
	child = compat_start_changing(idmap, dir, name, false);
	err = PTR_ERR_OR_ZERO(child);
	if (!err)
		err = vfs_link(object, idmap, d_inode(dir), child, NULL);
	compat_end_changing(child);
	if (!err && keep == FB_KEEP_CTIME)
		fb_keep_ctime(fsb, d_inode(object), ctime);
	mnt_drop_write(fsb->lower.mnt);
	return err;
}

/**
 * fb_remove_name() - remove a name below
 * @fsb: the mount
 * @dir: lower directory, not locked
 * @name: the name, which is there
 * @is_dir: it is an empty directory
 * @keep: what becomes of a file's ctime
 *
 * Return: 0 or an error.
 */
int fb_remove_name(struct fb_sb *fsb, struct dentry *dir, const struct qstr *name, bool is_dir,
		   enum fb_ctime keep)
{
	struct mnt_idmap *idmap = mnt_idmap(fsb->lower.mnt);
	int err = fb_begin_change(fsb);
	struct timespec64 ctime;
	struct inode *inode = NULL;
	struct dentry *child;
	unsigned int flags;

	if (err)
		return err;
	child = compat_start_changing(idmap, dir, name, true);
	err = PTR_ERR_OR_ZERO(child);
	if (!err && d_really_is_negative(child))
		err = -ESTALE;
	if (!err && is_dir) {
		flags = fb_lift_flags(fsb, d_inode(dir));
		err = compat_vfs_rmdir(idmap, d_inode(dir), child);
		fb_put_flags_back(d_inode(dir), flags);
	} else if (!err) {
		inode = fb_hold(child, &ctime);
		err = vfs_unlink(idmap, d_inode(dir), child, NULL);
	}
	compat_end_changing(child);
	if (inode && !err && keep == FB_KEEP_CTIME)
		fb_keep_ctime(fsb, inode, ctime);
	iput(inode);
	mnt_drop_write(fsb->lower.mnt);
	return err;
}

/**
 * fb_move_name() - rename below, also over a file, which keeps its ctime if it has other names
 * @fsb: the mount
 * @from: lower directory, not locked
 * @old_name: there
 * @to: lower directory, not locked
 * @new_name: there; no directory has it
 * @keep: what becomes of a file's ctime
 *
 * Return: 0 or an error.
 */
int fb_move_name(struct fb_sb *fsb, struct dentry *from, const struct qstr *old_name, struct dentry *to,
		 const struct qstr *new_name, enum fb_ctime keep)
{
	struct compat_renamedata rd = {
		.mnt_idmap = mnt_idmap(fsb->lower.mnt),
		.old_parent = from,
		.new_parent = to,
	};
	struct timespec64 ctime, replaced_ctime;
	struct inode *inode, *replaced;
	int err = fb_begin_change(fsb);
	unsigned int flags;

	if (err)
		return err;
	err = compat_start_renaming(&rd, old_name, new_name);
	if (err)
		goto drop;
	inode = fb_hold(rd.old_dentry, &ctime);
	replaced = fb_hold(rd.new_dentry, &replaced_ctime);
	flags = fb_lift_flags(fsb, d_inode(from));
	err = inode ? compat_vfs_rename(&rd) : -ESTALE;
	fb_put_flags_back(d_inode(from), flags);
	compat_end_renaming(&rd);
	if (!err && keep == FB_KEEP_CTIME)
		fb_keep_ctime(fsb, inode, ctime);
	if (!err && replaced)
		fb_keep_ctime(fsb, replaced, replaced_ctime);
	iput(replaced);
	iput(inode);
drop:
	mnt_drop_write(fsb->lower.mnt);
	return err;
}

/**
 * fb_change_attr() - change attributes of an object below
 * @fsb: the mount
 * @lower: its dentry
 * @attr: what to change; overwritten
 * @ctime: the object's, afterwards; NULL: now
 *
 * Return: 0 or an error.
 */
int fb_change_attr(struct fb_sb *fsb, struct dentry *lower, struct iattr *attr,
		   const struct timespec64 *ctime)
{
	struct mnt_idmap *idmap = mnt_idmap(fsb->lower.mnt);
	int err = fb_begin_change(fsb);
	unsigned int flags;

	if (err)
		return err;
	inode_lock(d_inode(lower));
	flags = fb_lift_flags(fsb, d_inode(lower));
	if (ctime)
		err = fb_set_attr_at(idmap, lower, attr, *ctime);
	else
		err = notify_change(idmap, lower, attr, NULL);
	fb_put_flags_back(d_inode(lower), flags);
	inode_unlock(d_inode(lower));
	mnt_drop_write(fsb->lower.mnt);
	return err;
}

/**
 * fb_change_flags() - change an object's inode flags below, those that the log can hold
 * @fsb: the mount
 * @object: its dentry
 * @flags: FB_LOGGED_FLAGS that it has afterwards
 *
 * Moves the object's ctime.
 *
 * Return: 0 or an error.
 */
int fb_change_flags(struct fb_sb *fsb, struct dentry *object, u32 flags)
{
	struct file_kattr fa = { };
	int err = vfs_fileattr_get(object, &fa);

	if (err)
		return err;
	flags = (fa.flags & ~FB_LOGGED_FLAGS) | (flags & FB_LOGGED_FLAGS);
	if (flags == fa.flags)
		return 0;
	err = fb_begin_change(fsb);
	if (err)
		return err;
	fileattr_fill_flags(&fa, flags);
	err = vfs_fileattr_set(mnt_idmap(fsb->lower.mnt), object, &fa);
	mnt_drop_write(fsb->lower.mnt);
	return err;
}
