// SPDX-License-Identifier: GPL-2.0-only
/*
 * Names: every change is made below first and mirrored here on success.
 *
 * Every name is looked up again under the lock of the lower directory before it is changed. So a tree that
 * was changed underneath gives -ESTALE and does no harm. dentry.c says what an upper dentry has.
 *
 * The VFS checks permissions here, with the idmapping of the mount. Below it
 * checks once more, with the credentials of fb_begin_below().
 */
#include <linux/cred.h>
#include <linux/file.h>

#include "../../compat/names.h"
#include "../lower/attr.h"
#include "../lower/lower.h"
#include "../names/begin.h"
#include "../sync/replace.h"
#include "attr.h"
#include "dentry.h"
#include "inode.h"
#include "namei.h"
#include "xattr.h"

/* Lower dentries that do not go by their names alone, or that lead elsewhere. */
#define FB_WEIRD_DENTRY	(DCACHE_OP_HASH | DCACHE_OP_COMPARE | DCACHE_NEED_AUTOMOUNT | \
			 DCACHE_MANAGE_TRANSIT)

static struct mnt_idmap *fb_lower_idmap(const struct dentry *dentry)
{
	return mnt_idmap(FB_SB(dentry->d_sb)->lower.mnt);
}

static struct inode *fb_lower_dir(const struct dentry *dentry)
{
	return d_inode(fb_lower_dentry(dentry->d_parent));
}

/*
 * @lower was found below by @dentry's name, and the lower directory is locked. 0: it is what @dentry stands
 * for, and is fb_lower_dentry() from now on.
 */
static int fb_found(struct dentry *dentry, struct dentry *lower)
{
	struct inode *inode = d_inode(dentry);

	if (inode ? lower != fb_lower_dentry(dentry) || d_inode(lower) != FB_I(inode)->lower :
		    d_really_is_positive(lower)) {
		d_drop(dentry);
		return -ESTALE;
	}
	if (!inode)
		dput(xchg(&dentry->d_fsdata, dget(lower)));
	return 0;
}

/*
 * Begin to change a name: may write below, credentials, lock, look-up. Returns the lower dentry, with a
 * reference, or an ERR_PTR.
 */
static struct dentry *fb_begin(struct mnt_idmap *idmap, struct dentry *dentry, const struct cred **old)
{
	struct fb_sb *fsb = FB_SB(dentry->d_sb);
	struct dentry *lower;
	int err;

	err = fb_begin_below(idmap, fsb, old);
	if (err)
		return ERR_PTR(err);
	lower = compat_start_changing(fb_lower_idmap(dentry), fb_lower_dentry(dentry->d_parent),
				      &dentry->d_name, d_really_is_positive(dentry));
	if (lower == ERR_PTR(-ESTALE))
		d_drop(dentry);
	err = PTR_ERR_OR_ZERO(lower) ?: fb_found(dentry, lower);
	if (!err)
		return lower;
	compat_end_changing(lower);
	fb_end_below(fsb, *old);
	return ERR_PTR(err);
}

/* @lower is from fb_begin(), or an ERR_PTR after a failure that has unlocked the lower directory. */
static void fb_end(struct dentry *dentry, struct dentry *lower, const struct cred *old)
{
	compat_end_changing(lower);
	fb_end_below(FB_SB(dentry->d_sb), old);
	fb_copy_attr(d_inode(dentry->d_parent));
}

static struct dentry *fb_lookup(struct inode *dir, struct dentry *dentry, unsigned int flags)
{
	struct fb_sb *fsb = FB_SB(dir->i_sb);
	struct inode *lower_inode, *inode = NULL;
	struct dentry *lower, *alias;
	const struct cred *old;

	/* We aren't told the idmapping, and the VFS has checked the permission. */
	old = override_creds(fsb->cred);
	lower = compat_lookup_one_unlocked(fb_lower_idmap(dentry), &dentry->d_name,
					   fb_lower_dentry(dentry->d_parent));
	revert_creds(old);
	if (IS_ERR(lower))
		return lower;
	dentry->d_fsdata = lower;	/* d_release() puts it */
	if (lower->d_flags & FB_WEIRD_DENTRY)
		return ERR_PTR(-EREMOTE);

	lower_inode = READ_ONCE(lower->d_inode);
	if (lower_inode)
		inode = fb_iget(dir->i_sb, lower_inode);
	alias = d_splice_alias(inode, dentry);
	if (!IS_ERR_OR_NULL(alias))
		fb_set_lower(alias, lower);
	return alias;
}

/*
 * The inode that was just made below is ours alone, so all of it is durable but its creation. The name log
 * may have that.
 */
static void fb_is_new(struct inode *inode, const struct fb_name_record *rec)
{
	struct fb_inode *fi = FB_I(inode);

	clear_bit(FB_NEEDS_SYNC, &fi->flags);
	clear_bit(FB_NEEDS_FSYNC, &fi->flags);
	fb_name_changed(inode, rec);
}

/* The VFS dentry of a name that was just made below. */
static int fb_instantiate(struct dentry *dentry, const struct fb_name_record *rec)
{
	struct dentry *lower = fb_lower_dentry(dentry);
	struct inode *inode = ERR_PTR(-ESTALE);

	if (d_really_is_positive(lower))
		inode = fb_iget(dentry->d_sb, d_inode(lower));
	if (IS_ERR(inode)) {
		d_drop(dentry);
		return PTR_ERR(inode);
	}
	if (S_ISREG(inode->i_mode))
		inode_has_no_xattr(inode);	/* none that a write would have to remove */
	fb_is_new(inode, rec);	/* before a task can open it, and sync it */
	d_instantiate(dentry, inode);
	return 0;
}

/* Makes a directory; the return value takes the place of @lower. */
static struct dentry *fb_make_dir(struct dentry *dentry, struct dentry *lower, umode_t mode)
{
	lower = compat_vfs_mkdir(fb_lower_idmap(dentry), fb_lower_dir(dentry), lower, mode);
	/* The file system may have had a dentry for it already. */
	if (!IS_ERR(lower) && lower != fb_lower_dentry(dentry))
		dput(xchg(&dentry->d_fsdata, dget(lower)));
	return lower;
}

static int fb_make(struct mnt_idmap *idmap, struct dentry *dentry, umode_t mode, dev_t rdev,
		   const char *target)
{
	struct mnt_idmap *lower_idmap = fb_lower_idmap(dentry);
	struct inode *lower_dir = fb_lower_dir(dentry);
	struct fb_name_record rec;
	const struct cred *old;
	struct dentry *lower;
	int err;

	lower = fb_begin(idmap, dentry, &old);
	if (IS_ERR(lower))
		return PTR_ERR(lower);
	fb_names_begin_create(&rec, dentry, mode, target);
	switch (mode & S_IFMT) {
	case S_IFREG:
		err = compat_vfs_create(lower_idmap, lower_dir, lower, mode);
		break;
	case S_IFDIR:
		lower = fb_make_dir(dentry, lower, mode);
		err = PTR_ERR_OR_ZERO(lower);
		break;
	case S_IFLNK:
		err = compat_vfs_symlink(lower_idmap, lower_dir, lower, target);
		break;
	default:
		err = compat_vfs_mknod(lower_idmap, lower_dir, lower, mode, rdev);
		break;
	}
	fb_names_end(&rec, lower, err);
	fb_end(dentry, lower, old);
	return err ?: fb_instantiate(dentry, &rec);
}

static int fb_create(struct mnt_idmap *idmap, struct inode *dir, struct dentry *dentry,
		     umode_t mode)
{
	return fb_make(idmap, dentry, mode | S_IFREG, 0, NULL);
}

COMPAT_DEFINE_CREATE(fb_create)

static struct dentry *fb_mkdir(struct mnt_idmap *idmap, struct inode *dir, struct dentry *dentry,
			       umode_t mode)
{
	return ERR_PTR(fb_make(idmap, dentry, mode | S_IFDIR, 0, NULL));
}

COMPAT_DEFINE_MKDIR(fb_mkdir)

static int fb_mknod(struct mnt_idmap *idmap, struct inode *dir, struct dentry *dentry,
		    umode_t mode, dev_t rdev)
{
	return fb_make(idmap, dentry, mode, rdev, NULL);
}

static int fb_symlink(struct mnt_idmap *idmap, struct inode *dir, struct dentry *dentry,
		      const char *target)
{
	return fb_make(idmap, dentry, S_IFLNK, 0, target);
}

static int fb_link(struct dentry *old_dentry, struct inode *dir, struct dentry *dentry)
{
	struct inode *inode = d_inode(old_dentry);
	struct fb_name_record rec;
	const struct cred *old;
	struct dentry *lower;
	int err;

	lower = fb_begin(NULL, dentry, &old);
	if (IS_ERR(lower))
		return PTR_ERR(lower);
	fb_names_begin_link(&rec, dentry, old_dentry);
	err = vfs_link(fb_lower_dentry(old_dentry), fb_lower_idmap(dentry), fb_lower_dir(dentry), lower,
		       NULL);
	fb_names_end(&rec, lower, err);
	fb_end(dentry, lower, old);
	if (err)
		return err;
	fb_copy_attr(inode);
	fb_name_changed(inode, &rec);	/* before a task can open it by that name, and sync it */
	ihold(inode);
	d_instantiate(dentry, inode);
	return 0;
}

/* Both unlink and rmdir. */
static int fb_remove(struct inode *dir, struct dentry *dentry)
{
	struct inode *inode = d_inode(dentry);
	struct fb_name_record rec;
	const struct cred *old;
	struct dentry *lower;
	int err;

	fb_last_name_goes(inode, true);
	lower = fb_begin(NULL, dentry, &old);
	err = PTR_ERR_OR_ZERO(lower);
	if (err)
		goto failed;
	fb_names_begin_remove(&rec, dentry);
	/* With our reference and the upper dentry's, d_delete() doesn't make it negative. */
	if (d_is_dir(lower))
		err = compat_vfs_rmdir(fb_lower_idmap(dentry), fb_lower_dir(dentry), lower);
	else
		err = vfs_unlink(fb_lower_idmap(dentry), fb_lower_dir(dentry), lower, NULL);
	fb_names_end(&rec, lower, err);
	fb_end(dentry, lower, old);
	if (err)
		goto failed;
	fb_copy_attr(inode);
	d_drop(dentry);		/* as a cached negative one it would pin the lower inode */
	fb_name_removed(inode, &rec);
	return 0;
failed:
	fb_last_name_goes(inode, false);
	return err;
}

/*
 * A rename within one directory locks no subdirectory that it renames. Its counter and times change, and a
 * task that makes something in it meanwhile changes them, too: neither could say what it has done.
 */
static bool fb_renames_alone(const struct dentry *old_dentry, const struct dentry *new_dentry)
{
	return FB_SB(old_dentry->d_sb)->names && old_dentry->d_parent == new_dentry->d_parent &&
	       (d_is_dir(old_dentry) || d_is_dir(new_dentry));
}

/*
 * The rename below, with the lower mount's right to write and the credentials for it. @unsynced: as
 * fb_names_begin_rename() has it.
 */
static int fb_rename_there(struct dentry *old_dentry, struct dentry *new_dentry, unsigned int flags,
			   bool unsynced, struct fb_name_record *rec)
{
	struct compat_renamedata rd = {
		.mnt_idmap = fb_lower_idmap(old_dentry),
		.old_parent = fb_lower_dentry(old_dentry->d_parent),
		.new_parent = fb_lower_dentry(new_dentry->d_parent),
		.flags = flags,
	};
	int err;

	err = compat_start_renaming(&rd, &old_dentry->d_name, &new_dentry->d_name);
	if (err == -ESTALE) {		/* of one of them, which the next look-up finds out */
		d_drop(old_dentry);
		d_drop(new_dentry);
	}
	if (err)
		return err;
	err = fb_found(old_dentry, rd.old_dentry) ?: fb_found(new_dentry, rd.new_dentry);
	if (!err) {
		fb_names_begin_rename(rec, old_dentry, new_dentry, flags, unsynced);
		err = compat_vfs_rename(&rd);
		fb_names_end(rec, rd.old_dentry, err);
	}
	compat_end_renaming(&rd);
	return err;
}

static int fb_rename_below(struct mnt_idmap *idmap, struct dentry *old_dentry,
			   struct dentry *new_dentry, unsigned int flags, bool unsynced,
			   struct fb_name_record *rec)
{
	bool alone = fb_renames_alone(old_dentry, new_dentry);
	struct fb_sb *fsb = FB_SB(old_dentry->d_sb);
	const struct cred *old;
	int err;

	err = fb_begin_below(idmap, fsb, &old);
	if (err)
		return err;
	if (alone) {
		up_read(&fsb->changes);
		down_write(&fsb->changes);
	}
	err = fb_rename_there(old_dentry, new_dentry, flags, unsynced, rec);
	if (alone)
		downgrade_write(&fsb->changes);
	fb_end_below(fsb, old);
	return err;
}

static int fb_rename(struct mnt_idmap *idmap, struct inode *old_dir, struct dentry *old_dentry,
		     struct inode *new_dir, struct dentry *new_dentry, unsigned int flags)
{
	struct inode *inode = d_inode(old_dentry), *target = d_inode(new_dentry);
	bool replaces = target && !(flags & RENAME_EXCHANGE), unsynced;
	struct fb_name_record rec;
	int err;

	unsynced = replaces && FB_SB(old_dir->i_sb)->names && !fb_may_replace(FB_I(inode), idmap);
	if (replaces)
		fb_last_name_goes(target, true);
	err = fb_rename_below(idmap, old_dentry, new_dentry, flags, unsynced, &rec);
	if (err && replaces)
		fb_last_name_goes(target, false);
	if (err)
		return err;
	fb_copy_attr(old_dir);
	fb_copy_attr(new_dir);
	fb_copy_attr(inode);
	fb_name_changed(inode, &rec);
	if (!target)
		return 0;
	fb_copy_attr(target);
	if (replaces)
		fb_name_removed(target, &rec);
	else
		fb_name_changed(target, &rec);
	return 0;
}

static int fb_tmpfile(struct mnt_idmap *idmap, struct inode *dir, struct file *file, umode_t mode)
{
	struct dentry *dentry = file->f_path.dentry;
	struct path parent = fb_lower_path(dentry->d_parent);
	struct fb_sb *fsb = FB_SB(dir->i_sb);
	struct fb_name_record rec;
	const struct cred *old;
	struct file *lower;
	struct inode *inode;
	int err;

	err = fb_begin_below(idmap, fsb, &old);
	if (err)
		return err;
	fb_names_begin_tmpfile(&rec, fsb);
	/* This only makes the inode: ->open() opens it like any other file. */
	lower = kernel_tmpfile_open(mnt_idmap(parent.mnt), &parent, mode,
				    O_RDWR | O_LARGEFILE | (file->f_flags & O_EXCL), fsb->cred);
	fb_names_end(&rec, IS_ERR(lower) ? NULL : lower->f_path.dentry, PTR_ERR_OR_ZERO(lower));
	fb_end_below(fsb, old);
	if (IS_ERR(lower))
		return PTR_ERR(lower);
	inode = fb_iget(dir->i_sb, file_inode(lower));
	if (IS_ERR(inode)) {
		err = PTR_ERR(inode);
		goto put_lower;
	}
	dentry->d_fsdata = dget(lower->f_path.dentry);
	d_mark_tmpfile(file, inode);
	fb_is_new(inode, &rec);
	d_instantiate(dentry, inode);
	err = finish_open_simple(file, 0);
put_lower:
	fput(lower);
	return err;
}

static const char *fb_get_link(struct dentry *dentry, struct inode *inode,
			       struct delayed_call *done)
{
	if (!dentry)
		return ERR_PTR(-ECHILD);
	return vfs_get_link(fb_lower_dentry(dentry), done);
}

const struct inode_operations fb_dir_inode_operations = {
	.lookup		= fb_lookup,
	.create		= COMPAT_CREATE(fb_create),
	.link		= fb_link,
	.unlink		= fb_remove,
	.symlink	= fb_symlink,
	.mkdir		= COMPAT_MKDIR(fb_mkdir),
	.rmdir		= fb_remove,
	.mknod		= fb_mknod,
	.rename		= fb_rename,
	.tmpfile	= fb_tmpfile,
	.setattr	= fb_setattr,
	.getattr	= fb_getattr,
	.permission	= fb_permission,
	.listxattr	= fb_listxattr,
	.get_inode_acl	= fb_get_inode_acl,
	.get_acl	= fb_get_acl,
	.set_acl	= fb_set_acl,
	.fileattr_get	= fb_fileattr_get,
	.fileattr_set	= fb_fileattr_set,
};

const struct inode_operations fb_symlink_inode_operations = {
	.get_link	= fb_get_link,
	.setattr	= fb_setattr,
	.getattr	= fb_getattr,
	.permission	= fb_permission,
	.listxattr	= fb_listxattr,
};
