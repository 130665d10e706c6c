// SPDX-License-Identifier: GPL-2.0-only
/* Extended attributes and ACLs that replay sets, in the order of their records. */
#include <linux/fs.h>
#include <linux/posix_acl.h>
#include <linux/posix_acl_xattr.h>
#include <linux/xattr.h>

#include "change.h"
#include "make.h"
#include "xattr.h"

/* ACLs have calls of their own. */
static int fb_replay_acl(struct mnt_idmap *idmap, struct dentry *object, const char *name,
			 const struct nl_text *value)
{
	struct posix_acl *acl = posix_acl_from_xattr(&init_user_ns, value->bytes, value->len);
	int err;

	if (IS_ERR_OR_NULL(acl))
		return PTR_ERR_OR_ZERO(acl) ?: vfs_remove_acl(idmap, object, name);
	err = vfs_set_acl(idmap, object, name, acl);
	posix_acl_release(acl);
	return err;
}

/* @name has a final 0. */
static int fb_change_xattr(struct fb_replay *run, struct dentry *object, const struct nl_change *change,
			   const char *name)
{
	struct mnt_idmap *idmap = mnt_idmap(run->fsb->lower.mnt);
	int err = fb_replay_stops() ? -ECANCELED : mnt_want_write(run->fsb->lower.mnt);

	if (err)
		return err;
	if (change->kind == NL_XATTR_SET && is_posix_acl_xattr(name))
		err = fb_replay_acl(idmap, object, name, &change->value);
	else if (change->kind == NL_XATTR_SET)
		err = vfs_setxattr(idmap, object, name, change->value.bytes, change->value.len, 0);
	else if (is_posix_acl_xattr(name))
		err = vfs_remove_acl(idmap, object, name);
	else
		err = vfs_removexattr(idmap, object, name);
	mnt_drop_write(run->fsb->lower.mnt);
	return err == -ENODATA ? 0 : err;
}

/**
 * fb_replay_xattr() - set or remove an extended attribute or an ACL, as a record says
 * @run: the replay
 * @node: the object, which fb_find_object() may find now
 * @change: NL_XATTR_SET or NL_XATTR_REMOVE
 *
 * An object that is gone needs nothing. Neither does one that is immutable: that can't be logged, so
 * storage has a later state than the record.
 *
 * Moves the object's ctime. Can be made any number of times.
 *
 * Return: 0 or an error.
 */
int fb_replay_xattr(struct fb_replay *run, const struct nl_node *node, const struct nl_change *change)
{
	struct dentry *object = fb_find_object(run, node);
	char *name;
	int err = 0;

	if (IS_ERR(object))
		return object == ERR_PTR(-ESTALE) ? 0 : PTR_ERR(object);
	if (!IS_IMMUTABLE(d_inode(object)) && !IS_APPEND(d_inode(object))) {
		name = kmemdup_nul(change->xattr.bytes, change->xattr.len, GFP_KERNEL);
		err = name ? fb_change_xattr(run, object, change, name) : -ENOMEM;
		kfree(name);
	}
	dput(object);
	return err;
}
