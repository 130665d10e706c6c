// SPDX-License-Identifier: GPL-2.0-only
/* What a record says of one lower object: its identity and attributes, and whether it has more than these. */
#include <linux/fs.h>
#include <linux/magic.h>
#include <linux/posix_acl.h>
#include <linux/posix_acl_xattr.h>
#include <linux/xattr.h>

#include "../../compat/attr.h"
#include "../lower/lower.h"
#include "object.h"

/* When an object was made, in ns since 1970; 0: the lower file system doesn't know. */
static int fb_birth_time(struct fb_sb *fsb, struct dentry *lower_dentry, s64 *btime)
{
	struct path path = { .mnt = fsb->lower.mnt, .dentry = lower_dentry };
	struct kstat stat;
	int err = vfs_getattr_nosec(&path, &stat, STATX_BTIME, AT_STATX_DONT_SYNC);

	if (!err)
		*btime = stat.result_mask & STATX_BTIME ? timespec64_to_ns(&stat.btime) : 0;
	return err;
}

/**
 * fb_identify() - say which object it is
 * @fsb: the mount
 * @lower: its lower inode
 * @lower_dentry: a lower dentry of it
 * @id: handle and time of birth are set; a time of birth other than 0 stays
 *
 * Context: process. May sleep.
 * Return: false if the lower file system has no handle for it.
 */
bool fb_identify(struct fb_sb *fsb, struct inode *lower, struct dentry *lower_dentry,
		 struct nl_identity *id)
{
	struct ps_handle handle;

	if (fb_encode_handle(lower, &handle) ||
	    (!id->btime && fb_birth_time(fsb, lower_dentry, &id->btime)))
		return false;
	id->type = handle.type;
	id->len = handle.len;
	memcpy(id->handle, handle.bytes, handle.len);
	return true;
}

/**
 * fb_describe() - say what attributes an object has
 * @attr: set
 * @lower: its lower inode; locked
 * @mtime: of the object, in ns since 1970: a write may have moved it meanwhile
 *
 * Context: any.
 */
void fb_describe(struct nl_attr *attr, const struct inode *lower, s64 mtime)
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

/**
 * fb_inherits_project() - whether a new object has the project id of its directory
 * @lower: its lower dentry; the lower directory is locked
 *
 * Symbolic links and special files have one, too, and can't be asked. A name in such a directory is refused
 * to an object with another id, as one that replay makes again would have.
 *
 * Context: process. May sleep.
 * Return: true if it has, or if that can't be found out.
 */
bool fb_inherits_project(struct dentry *lower)
{
	struct file_kattr fa = { };

	return vfs_fileattr_get(lower->d_parent, &fa) || (fa.flags & FS_PROJINHERIT_FL);
}

/**
 * fb_flags_are_logged() - whether records hold all that an inode has of flags and of what goes with them
 * @fa: from vfs_fileattr_get()
 *
 * Some flags of xfs have no bit in @fa->flags, for example that files lie on the realtime device.
 *
 * Context: any.
 * Return: true if nothing else is set than what a record of NL_IFLAGS holds.
 */
bool fb_flags_are_logged(const struct file_kattr *fa)
{
	return !(fa->flags & ~(FB_PLAIN_FLAGS | FB_LOGGED_FLAGS)) &&
	       !(fa->fsx_xflags & ~(FB_LOGGED_XFLAGS | FS_XFLAG_HASATTR)) &&
	       !fa->fsx_projid && !fa->fsx_extsize && !fa->fsx_cowextsize;
}

/**
 * fb_has_more() - whether a new object has more than a record of its creation says
 * @lower: its lower dentry
 *
 * From its directory, or from a security module.
 *
 * Context: process. May sleep.
 * Return: true if it has, or if that can't be found out.
 */
bool fb_has_more(struct dentry *lower)
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
		return fb_inherits_project(lower);
	return vfs_fileattr_get(lower, &fa) || !fb_flags_are_logged(&fa) || (fa.flags & FB_LOGGED_FLAGS);
}

/**
 * fb_xattr_fits() - whether a record can hold an extended attribute
 * @name: with its prefix
 * @size: of its value, in bytes
 *
 * Hashes and signatures of the integrity subsystem are over contents and attributes, inode number and
 * generation included. Those of a file that replay makes again are others.
 *
 * Context: any.
 * Return: true if it fits, and replay can set it.
 */
bool fb_xattr_fits(const char *name, size_t size)
{
	if (size > NL_VALUE_MAX || strlen(name) > NL_NAME_MAX ||
	    !strcmp(name, XATTR_NAME_EVM) || !strcmp(name, XATTR_NAME_IMA))
		return false;
	return is_posix_acl_xattr(name) || str_has_prefix(name, XATTR_USER_PREFIX) ||
	       str_has_prefix(name, XATTR_TRUSTED_PREFIX) || str_has_prefix(name, XATTR_SECURITY_PREFIX);
}

/**
 * fb_xattr_is_one() - whether an extended attribute or ACL is in the transaction that raises the counter
 * @lower: the lower inode
 *
 * xfs has the counter in a transaction before that of the attribute, and a mode that comes with an ACL in one
 * behind it. Files are told by the counter from after all of them, directories by the one from before.
 *
 * Context: any.
 * Return: false: of a directory, storage may have the counter and lack the attribute.
 */
bool fb_xattr_is_one(const struct inode *lower)
{
	return !S_ISDIR(lower->i_mode) || strcmp(lower->i_sb->s_type->name, "xfs");
}

/**
 * fb_mode_is_one() - whether a new mode, with what goes with it, is in the counter's own transaction
 * @lower: the lower inode
 *
 * Where there is an ACL, its mask changes as well, in a transaction of its own.
 *
 * Context: process. Sleeps.
 * Return: as fb_xattr_is_one().
 */
bool fb_mode_is_one(struct inode *lower)
{
	struct posix_acl *acl;

	if (!S_ISDIR(lower->i_mode) || !IS_POSIXACL(lower))
		return true;
	acl = get_inode_acl(lower, ACL_TYPE_ACCESS);
	if (!acl)
		return true;
	if (!IS_ERR(acl))
		posix_acl_release(acl);
	return false;
}

/**
 * fb_has_many_names() - whether replay might give an object more names than the file system below allows
 * @lower: the lower inode
 *
 * Replay adds names before it removes others, and staging has one or two names besides. Of a file with fewer
 * names than half before each change that storage lacks, no more than all are there at once. xfs allows some
 * 2 billion, which is no limit.
 *
 * Context: any.
 * Return: true if storage has to have its names first.
 */
bool fb_has_many_names(const struct inode *lower)
{
	return !S_ISDIR(lower->i_mode) && lower->i_sb->s_magic == EXT4_SUPER_MAGIC &&
	       lower->i_nlink > FB_EXT4_NAMES / 2 - FB_STAGED_NAMES;
}
