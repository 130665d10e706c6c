// SPDX-License-Identifier: GPL-2.0-only
/*
 * Extended attributes, all of them the lower file's. The VFS has checked here
 * what the caller may do; ACLs don't come this way (attr.c).
 */
#include <linux/cred.h>
#include <linux/xattr.h>

#include "../lower/attr.h"
#include "../lower/lower.h"
#include "../names/begin.h"
#include "xattr.h"

/**
 * fb_listxattr() - names of the extended attributes
 * @dentry: upper dentry
 * @list: where they go
 * @size: of it; 0 asks how much is needed
 *
 * Return: bytes, or an error.
 */
ssize_t fb_listxattr(struct dentry *dentry, char *list, size_t size)
{
	return vfs_listxattr(fb_lower_dentry(dentry), list, size);
}

static int fb_xattr_get(const struct xattr_handler *handler, struct dentry *dentry,
			struct inode *inode, const char *name, void *value, size_t size)
{
	return __vfs_getxattr(fb_lower_dentry(dentry), FB_I(inode)->lower, name, value, size);
}

/*
 * Not with the caller's credentials. A write to a file removes its security.capability, and the writer may
 * have no right to do that by a call. A capability that was set in a user namespace has been translated
 * already. The VFS leaves the names of the system class to the file system (f2fs: system.advise), which would
 * see the mounter's rights: the owner alone may set them.
 */
static int fb_xattr_set(const struct xattr_handler *handler, struct mnt_idmap *idmap,
			struct dentry *dentry, struct inode *inode, const char *name,
			const void *value, size_t size, int flags)
{
	struct path lower = fb_lower_path(dentry);
	struct fb_name_record rec;
	const struct cred *old;
	int err;

	if (!strncmp(name, XATTR_SYSTEM_PREFIX, XATTR_SYSTEM_PREFIX_LEN) &&
	    !inode_owner_or_capable(idmap, inode))
		return -EPERM;
	/*
	 * Else writing back might take a new capability away. Before the freeze protection below, as
	 * writing back does.
	 */
	mutex_lock(&FB_I(inode)->wb_lock);
	err = fb_begin_below(NULL, FB_SB(dentry->d_sb), &old);
	if (err)
		goto unlock;
	fb_names_begin_xattr(&rec, dentry, name, value, size);
	if (value)
		err = vfs_setxattr(mnt_idmap(lower.mnt), lower.dentry, name, value, size, flags);
	else
		err = vfs_removexattr(mnt_idmap(lower.mnt), lower.dentry, name);
	fb_names_end(&rec, lower.dentry, err);
	fb_end_below(FB_SB(dentry->d_sb), old);
unlock:
	mutex_unlock(&FB_I(inode)->wb_lock);
	if (!err)
		fb_attr_changed(inode, fb_names_note(&rec, inode));
	return err;
}

static const struct xattr_handler fb_xattr_handler = {
	.prefix	= "",		/* any name */
	.get	= fb_xattr_get,
	.set	= fb_xattr_set,
};

const struct xattr_handler * const fb_xattr_handlers[] = {
	&fb_xattr_handler,
	NULL
};
