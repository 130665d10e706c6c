// SPDX-License-Identifier: GPL-2.0-only
/*
 * Attributes: those of the lower inode, except the size of a regular file, which
 * is ours. An upper inode has a copy of what the VFS looks at; time stamps are
 * set below only, and getattr fetches them there.
 *
 * Permissions are checked by the VFS on the copy, in RCU walk too. It calls fb_permission() only where the
 * lower file system has rules besides (inode.c). ACLs are cached here as by any file system and forgotten
 * when the mode or the ACL changes.
 */
#include <linux/cred.h>
#include <linux/fs.h>
#include <linux/posix_acl.h>
#include <linux/posix_acl_xattr.h>

#include "../../compat/acl.h"
#include "../lower/attr.h"
#include "../lower/lower.h"
#include "../names/attr.h"
#include "../names/begin.h"
#include "../names/object.h"
#include "../page/size.h"
#include "../sync/mapped.h"
#include "attr.h"
#include "range.h"
#include "truncate.h"
#include "xattr.h"

/* A look at how a file's mappings are stored to takes them away: not more often than this. */
#define FB_STAT_INTERVAL	HZ

/**
 * fb_getattr() - stat
 * @idmap: of the upper mount
 * @path: upper path
 * @stat: filled in
 * @mask: what is wanted, STATX_*
 * @flags: AT_*
 *
 * Return: 0 or an error of the file system below.
 */
int fb_getattr(struct mnt_idmap *idmap, const struct path *path, struct kstat *stat, u32 mask,
	       unsigned int flags)
{
	struct inode *inode = d_inode(path->dentry);
	struct user_namespace *fs_userns = i_user_ns(inode);
	struct path lower = fb_lower_path(path->dentry);
	u64 blocks;
	int err;

	if (S_ISREG(inode->i_mode) && mask & (STATX_MTIME | STATX_CTIME))
		fb_see_stores(FB_I(inode), FB_STAT_INTERVAL);
	err = vfs_getattr_nosec(&lower, stat, mask, flags);
	if (err)
		return err;
	/* A subvolume of btrfs in the tree has one of its own, and numbers its inodes by itself. */
	if (stat->dev == FB_SB(inode->i_sb)->lower_dev)
		stat->dev = inode->i_sb->s_dev;
	stat->uid = vfsuid_into_kuid(make_vfsuid(idmap, fs_userns, stat->uid));
	stat->gid = vfsgid_into_kgid(make_vfsgid(idmap, fs_userns, stat->gid));
	if (!S_ISREG(inode->i_mode))
		return 0;
	stat->size = i_size_read(inode);
	/* Programs that save sparse files take no blocks for no data. */
	blocks = (u64)READ_ONCE(FB_I(inode)->nr_pages) << (PAGE_SHIFT - SECTOR_SHIFT);
	stat->blocks = max(stat->blocks, blocks);
	return 0;
}

/*
 * True if mode and owner stay, and so does the time of change, which has the resolution of a tick. Then
 * nothing need be done below. An example is tar, which sets the owner of a file that it has just made, and
 * that has this owner already.
 */
static bool fb_changes_nothing(struct mnt_idmap *idmap, const struct inode *inode, const struct iattr *attr)
{
	const unsigned int known = ATTR_MODE | ATTR_UID | ATTR_GID | ATTR_CTIME | ATTR_KILL_SUID |
				   ATTR_KILL_SGID;
	struct timespec64 ctime = inode_get_ctime(FB_I(inode)->lower);

	return !(attr->ia_valid & ~known) && timespec64_equal(&attr->ia_ctime, &ctime) &&
	       !((attr->ia_valid & ATTR_MODE) && attr->ia_mode != inode->i_mode) &&
	       !i_uid_needs_update(idmap, attr, inode) && !i_gid_needs_update(idmap, attr, inode);
}

/**
 * fb_setattr() - chmod, chown, truncate, utimes
 * @idmap: of the upper mount
 * @dentry: upper dentry
 * @attr: what shall change
 *
 * Return: 0 or an error.
 */
int fb_setattr(struct mnt_idmap *idmap, struct dentry *dentry, struct iattr *attr)
{
	int err;

	err = setattr_prepare(idmap, dentry, attr);
	if (err || fb_changes_nothing(idmap, d_inode(dentry), attr))
		return err;
	/* No sync call may take a store from before for one that comes after the new time. */
	if (d_is_reg(dentry) && attr->ia_valid & ATTR_MTIME)
		err = fb_end_stores(FB_I(d_inode(dentry)));
	if (err)
		return err;
	if ((attr->ia_valid & ATTR_SIZE) && d_is_reg(dentry))
		return fb_setattr_size(idmap, dentry, attr);
	return fb_names_setattr(idmap, dentry, attr);
}

/**
 * fb_permission() - whether the caller may access an inode whose lower file system has rules of its own
 * @idmap: of the upper mount
 * @inode: upper inode
 * @mask: MAY_*
 *
 * btrfs has one: no file of a read-only subvolume is written. It looks at that when the file is opened, and
 * not when it is written. Such a rule is the same for all callers, and on an idmapped mount the caller's ids
 * mean nothing below. So it is asked as the mounter.
 *
 * Return: 0 or a negative errno.
 */
int fb_permission(struct mnt_idmap *idmap, struct inode *inode, int mask)
{
	struct inode *lower = FB_I(inode)->lower;
	struct fb_sb *fsb = FB_SB(inode->i_sb);
	const struct cred *old;
	int err = generic_permission(idmap, inode, mask);

	if (err || !(mask & MAY_WRITE))
		return err;
	if (mask & MAY_NOT_BLOCK)
		return -ECHILD;
	old = override_creds(fsb->cred);
	err = lower->i_op->permission(mnt_idmap(fsb->lower.mnt), lower, MAY_WRITE);
	revert_creds(old);
	return err;
}

/**
 * fb_get_inode_acl() - the ACL for a permission check
 * @inode: upper inode
 * @type: ACL_TYPE_*
 * @rcu: asked in RCU walk
 *
 * Return: the ACL, NULL if there is none, or an ERR_PTR.
 */
struct posix_acl *fb_get_inode_acl(struct inode *inode, int type, bool rcu)
{
	if (rcu)
		return ERR_PTR(-ECHILD);
	return get_inode_acl(FB_I(inode)->lower, type);
}

/**
 * fb_get_acl() - the ACL for a user that reads it
 * @idmap: of the upper mount, which the VFS applies
 * @dentry: upper dentry
 * @type: ACL_TYPE_*
 *
 * Return: the ACL or an ERR_PTR.
 */
struct posix_acl *fb_get_acl(struct mnt_idmap *idmap, struct dentry *dentry, int type)
{
	struct path lower = fb_lower_path(dentry);

	return vfs_get_acl(mnt_idmap(lower.mnt), lower.dentry, posix_acl_xattr_name(type));
}

/* With the mounter's capabilities the set-group-ID bit would survive below. */
static int fb_acl_drop_sgid(struct mnt_idmap *idmap, struct dentry *dentry)
{
	struct iattr attr = { .ia_valid = ATTR_KILL_SGID };
	struct inode *inode = d_inode(dentry);

	if (idmap == &nop_mnt_idmap || !(inode->i_mode & S_ISGID) ||
	    vfsgid_in_group_p(i_gid_into_vfsgid(idmap, inode)) ||
	    capable_wrt_inode_uidgid(idmap, inode, CAP_FSETID))
		return 0;
	return fb_names_setattr(idmap, dentry, &attr);
}

/**
 * fb_set_acl() - set or remove an ACL
 * @idmap: of the upper mount
 * @dentry: upper dentry
 * @acl: the ACL, its ids mapped by the VFS; NULL removes
 * @type: ACL_TYPE_*
 *
 * Return: 0 or an error.
 */
int fb_set_acl(struct mnt_idmap *idmap, struct dentry *dentry, struct posix_acl *acl, int type)
{
	const char *name = posix_acl_xattr_name(type);
	struct path lower = fb_lower_path(dentry);
	struct fb_name_record rec;
	const struct cred *old;
	void *value = NULL;
	size_t size = 0;
	int err;

	err = type == ACL_TYPE_ACCESS ? fb_acl_drop_sgid(idmap, dentry) : 0;
	if (err)
		return err;
	if (acl) {
		value = compat_acl_to_xattr(acl, &size, GFP_KERNEL);
		if (!value)
			return -ENOMEM;
	}
	err = fb_begin_below(idmap, FB_SB(dentry->d_sb), &old);
	if (err)
		goto free;
	fb_names_begin_xattr(&rec, dentry, name, value, size);
	if (acl)
		err = vfs_set_acl(mnt_idmap(lower.mnt), lower.dentry, name, acl);
	else
		err = vfs_remove_acl(mnt_idmap(lower.mnt), lower.dentry, name);
	fb_names_end(&rec, lower.dentry, err);
	fb_end_below(FB_SB(dentry->d_sb), old);
	fb_attr_changed(d_inode(dentry), fb_names_note(&rec, d_inode(dentry)));
free:
	kfree(value);
	return err;
}

/**
 * fb_fileattr_get() - lsattr, project id
 * @dentry: upper dentry
 * @fa: filled in
 *
 * Return: 0 or an error.
 */
int fb_fileattr_get(struct dentry *dentry, struct file_kattr *fa)
{
	return vfs_fileattr_get(fb_lower_dentry(dentry), fa);
}

/*
 * Whether the name log holds all that changes. Immutable and append-only objects are not in the log: replay
 * could neither add nor remove a name of one.
 */
static bool fb_flags_fit(struct dentry *dentry, const struct file_kattr *fa)
{
	struct file_kattr old = { };

	return !vfs_fileattr_get(fb_lower_dentry(dentry), &old) &&
	       !((fa->flags ^ old.flags) & ~FB_LOGGED_FLAGS) &&
	       !((fa->fsx_xflags ^ old.fsx_xflags) & ~(FB_LOGGED_XFLAGS | FS_XFLAG_HASATTR)) &&
	       fa->fsx_projid == old.fsx_projid && fa->fsx_extsize == old.fsx_extsize &&
	       fa->fsx_cowextsize == old.fsx_cowextsize;
}

/**
 * fb_fileattr_set() - chattr, project id
 * @idmap: of the upper mount
 * @dentry: upper dentry
 * @fa: what shall change
 *
 * Return: 0 or an error.
 */
int fb_fileattr_set(struct mnt_idmap *idmap, struct dentry *dentry, struct file_kattr *fa)
{
	struct path lower = fb_lower_path(dentry);
	struct inode *inode = d_inode(dentry);
	/* An immutable file can't be written back any more, and no task may store to it. */
	bool freezes = S_ISREG(inode->i_mode) && !IS_IMMUTABLE(inode) && fa->fsx_xflags & FS_XFLAG_IMMUTABLE;
	bool thaws = S_ISREG(inode->i_mode) && IS_IMMUTABLE(inode);
	struct fb_inode *fi = FB_I(inode);
	struct fb_range range;
	struct fb_name_record rec;
	const struct cred *old;
	int err;

	err = freezes ? fb_hand_over(fi, &range, 0, LLONG_MAX, true) : 0;
	if (err)
		return err;
	/* Recovery can't give an immutable file the size in its record: it becomes durable below. */
	if (freezes) {
		fb_truncate_begin(fi);
		err = fb_flush_size(fi);
	}
	err = err ?: fb_begin_below(idmap, FB_SB(dentry->d_sb), &old);
	if (!err) {
		fb_names_begin_flags(&rec, dentry, fa->flags & FB_LOGGED_FLAGS, fb_flags_fit(dentry, fa));
		err = vfs_fileattr_set(mnt_idmap(lower.mnt), lower.dentry, fa);
		fb_names_end(&rec, lower.dentry, err);
		fb_end_below(FB_SB(dentry->d_sb), old);
	}
	if (!err)
		fb_attr_changed(inode, fb_names_note(&rec, inode));
	/* A MAP_SYNC mapping of an immutable file has lower pages: its next access must fault. */
	if (!err && thaws)
		unmap_mapping_pages(fi->lower->i_mapping, 0, 0, false);
	if (freezes) {
		fb_truncate_end(fi, i_size_read(inode));
		fb_take_back(fi, &range);
	}
	return err;
}

const struct inode_operations fb_file_inode_operations = {
	.setattr	= fb_setattr,
	.getattr	= fb_getattr,
	.permission	= fb_permission,
	.listxattr	= fb_listxattr,
	.get_inode_acl	= fb_get_inode_acl,
	.get_acl	= fb_get_acl,
	.set_acl	= fb_set_acl,
	.fiemap		= fb_fiemap,
	.fileattr_get	= fb_fileattr_get,
	.fileattr_set	= fb_fileattr_set,
};

const struct inode_operations fb_special_inode_operations = {
	.setattr	= fb_setattr,
	.getattr	= fb_getattr,
	.permission	= fb_permission,
	.listxattr	= fb_listxattr,
	.get_inode_acl	= fb_get_inode_acl,
	.get_acl	= fb_get_acl,
	.set_acl	= fb_set_acl,
};
