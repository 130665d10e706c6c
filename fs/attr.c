// SPDX-License-Identifier: GPL-2.0-only
/*
 * Attributes: those of the lower inode, except the size of a regular file, which
 * is ours. An upper inode has a copy of what the VFS looks at; time stamps are
 * set below only, and getattr fetches them there.
 *
 * Permissions are checked by the VFS on the copy, in RCU walk too: there is no
 * ->permission(). ACLs are cached here as by any file system and forgotten when
 * the mode or the ACL changes.
 */
#include <linux/fs.h>
#include <linux/fileattr.h>
#include <linux/posix_acl.h>
#include <linux/posix_acl_xattr.h>

#include "forebay.h"
#include "range.h"

#define FB_COPY_I_FLAGS	(S_SYNC | S_DIRSYNC | S_APPEND | S_IMMUTABLE)

/**
 * fb_copy_attr() - make an upper inode look like its lower inode
 * @inode: the upper inode
 *
 * The size of a regular file is left alone, see fb_size_grew().
 */
void fb_copy_attr(struct inode *inode)
{
	struct inode *lower = FB_I(inode)->lower;

	inode->i_mode = lower->i_mode;
	inode->i_uid = lower->i_uid;
	inode->i_gid = lower->i_gid;
	inode->i_rdev = lower->i_rdev;
	inode->i_blkbits = lower->i_blkbits;
	inode->i_blocks = lower->i_blocks;
	inode->i_generation = lower->i_generation;
	set_nlink(inode, lower->i_nlink);
	inode_set_atime_to_ts(inode, inode_get_atime(lower));
	inode_set_mtime_to_ts(inode, inode_get_mtime(lower));
	inode_set_ctime_to_ts(inode, inode_get_ctime(lower));
	inode_set_flags(inode, lower->i_flags & FB_COPY_I_FLAGS, FB_COPY_I_FLAGS);
	if (!S_ISREG(inode->i_mode))
		i_size_write(inode, i_size_read(lower));
}

/**
 * fb_attr_changed() - attributes were changed below
 * @inode: the upper inode, which is brought up to date and owes an fsync now
 */
void fb_attr_changed(struct inode *inode)
{
	fb_copy_attr(inode);
	forget_all_cached_acls(inode);
	set_bit(FB_OWES_ATTR, &FB_I(inode)->flags);
}

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

/**
 * fb_lower_setattr() - change attributes below
 * @idmap: of the upper mount
 * @dentry: upper dentry
 * @attr: what setattr_prepare() has agreed to; unchanged
 *
 * The caller holds the upper inode's lock and calls fb_attr_changed().
 *
 * Return: 0 or an error.
 */
int fb_lower_setattr(struct mnt_idmap *idmap, struct dentry *dentry, struct iattr *attr)
{
	struct user_namespace *fs_userns = dentry->d_sb->s_user_ns;
	struct path lower = fb_lower_path(dentry);
	struct iattr lower_attr = *attr;
	const struct cred *old;
	int err;

	if (attr->ia_valid & ATTR_UID)
		lower_attr.ia_vfsuid = VFSUIDT_INIT(from_vfsuid(idmap, fs_userns, attr->ia_vfsuid));
	if (attr->ia_valid & ATTR_GID)
		lower_attr.ia_vfsgid = VFSGIDT_INIT(from_vfsgid(idmap, fs_userns, attr->ia_vfsgid));
	if (attr->ia_valid & ATTR_FILE)
		lower_attr.ia_file = fb_lower_file(attr->ia_file);
	/* The mode comes from these bits then; below they are turned into one again. */
	if (attr->ia_valid & (ATTR_KILL_SUID | ATTR_KILL_SGID))
		lower_attr.ia_valid &= ~ATTR_MODE;
	/* The lower file was opened without O_TRUNC. */
	lower_attr.ia_valid &= ~ATTR_OPEN;

	err = fb_begin_below(idmap, FB_SB(dentry->d_sb), &old);
	if (err)
		return err;
	inode_lock(d_inode(lower.dentry));
	err = notify_change(mnt_idmap(lower.mnt), lower.dentry, &lower_attr, NULL);
	inode_unlock(d_inode(lower.dentry));
	fb_end_below(FB_SB(dentry->d_sb), old);
	return err;
}

/*
 * Mode and owner stay, and so does the time of change, which has the resolution of a tick: as when
 * tar gives a file that it has just made to who has it already. Then nothing need be done below.
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
	if ((attr->ia_valid & ATTR_SIZE) && d_is_reg(dentry))
		err = fb_setattr_size(idmap, dentry, attr);
	else
		err = fb_lower_setattr(idmap, dentry, attr);
	if (!err)
		fb_attr_changed(d_inode(dentry));
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
 * fb_get_acl() - the ACL for a user who reads it
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
	return fb_lower_setattr(idmap, dentry, &attr);
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
	const struct cred *old;
	int err;

	err = type == ACL_TYPE_ACCESS ? fb_acl_drop_sgid(idmap, dentry) : 0;
	if (err)
		return err;
	err = fb_begin_below(idmap, FB_SB(dentry->d_sb), &old);
	if (err)
		return err;
	if (acl)
		err = vfs_set_acl(mnt_idmap(lower.mnt), lower.dentry, name, acl);
	else
		err = vfs_remove_acl(mnt_idmap(lower.mnt), lower.dentry, name);
	fb_end_below(FB_SB(dentry->d_sb), old);
	fb_attr_changed(d_inode(dentry));
	return err;
}

/**
 * fb_fileattr_get() - lsattr, project id
 * @dentry: upper dentry
 * @fa: filled in
 *
 * Return: 0 or an error.
 */
int fb_fileattr_get(struct dentry *dentry, struct fileattr *fa)
{
	return vfs_fileattr_get(fb_lower_dentry(dentry), fa);
}

/**
 * fb_fileattr_set() - chattr, project id
 * @idmap: of the upper mount
 * @dentry: upper dentry
 * @fa: what shall change
 *
 * Return: 0 or an error.
 */
int fb_fileattr_set(struct mnt_idmap *idmap, struct dentry *dentry, struct fileattr *fa)
{
	struct path lower = fb_lower_path(dentry);
	struct inode *inode = d_inode(dentry);
	/* Then nothing can be written back any more, and nobody may store to it. */
	bool freezes = S_ISREG(inode->i_mode) && !IS_IMMUTABLE(inode) && fa->fsx_xflags & FS_XFLAG_IMMUTABLE;
	bool thaws = S_ISREG(inode->i_mode) && IS_IMMUTABLE(inode);
	const struct cred *old;
	int err;

	err = freezes ? fb_hand_over(FB_I(inode), 0, LLONG_MAX, true) : 0;
	if (err)
		return err;
	/* Nor can recovery do what the record says. */
	if (freezes)
		err = fb_settle_size(FB_I(inode));
	err = err ?: fb_begin_below(idmap, FB_SB(dentry->d_sb), &old);
	if (!err) {
		err = vfs_fileattr_set(mnt_idmap(lower.mnt), lower.dentry, fa);
		fb_end_below(FB_SB(dentry->d_sb), old);
	}
	if (!err)
		fb_attr_changed(inode);
	/* What a MAP_SYNC mapping has of an immutable file is no DAX page: it has to look again. */
	if (!err && thaws)
		unmap_mapping_pages(FB_I(inode)->lower->i_mapping, 0, 0, false);
	if (freezes)
		fb_take_back(FB_I(inode));
	return err;
}

const struct inode_operations fb_file_inode_operations = {
	.setattr	= fb_setattr,
	.getattr	= fb_getattr,
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
	.listxattr	= fb_listxattr,
	.get_inode_acl	= fb_get_inode_acl,
	.get_acl	= fb_get_acl,
	.set_acl	= fb_set_acl,
};
