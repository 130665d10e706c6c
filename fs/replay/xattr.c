// SPDX-License-Identifier: GPL-2.0-only
/*
 * Extended attributes that replay sets, in the order of their records; and an object's ACL, once: those that
 * it had before would let users in that have no right any more.
 */
#include <linux/fs.h>
#include <linux/posix_acl.h>
#include <linux/posix_acl_xattr.h>
#include <linux/xattr.h>

#include "change.h"
#include "make.h"
#include "xattr.h"

/* ACLs have calls of their own. @mode: gives the ACL its permissions; or NULL. */
static int fb_replay_acl(struct mnt_idmap *idmap, struct dentry *object, const char *name,
			 const struct nl_text *value, const u32 *mode)
{
	struct posix_acl *acl = posix_acl_from_xattr(&init_user_ns, value->bytes, value->len);
	int err = 0;

	if (IS_ERR_OR_NULL(acl))
		return PTR_ERR_OR_ZERO(acl) ?: vfs_remove_acl(idmap, object, name);
	if (mode)
		err = __posix_acl_chmod(&acl, GFP_KERNEL, *mode);
	err = err ?: vfs_set_acl(idmap, object, name, acl);
	posix_acl_release(acl);
	return err;
}

/* @name has a final 0. @mode: as for fb_replay_acl(). */
static int fb_change_xattr(struct fb_replay *run, struct dentry *object, const struct nl_change *change,
			   const char *name, const u32 *mode)
{
	struct mnt_idmap *idmap = mnt_idmap(run->fsb->lower.mnt);
	int err = fb_replay_stops() ? -ECANCELED : mnt_want_write(run->fsb->lower.mnt);

	if (err)
		return err;
	if (change->kind == NL_XATTR_SET && is_posix_acl_xattr(name))
		err = fb_replay_acl(idmap, object, name, &change->value, mode);
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
 * fb_is_access_acl() - whether an extended attribute is the ACL that gives users their permissions
 * @name: of the attribute
 *
 * Return: true if it is.
 */
bool fb_is_access_acl(const struct nl_text *name)
{
	return name->len == strlen(XATTR_NAME_POSIX_ACL_ACCESS) &&
	       !memcmp(name->bytes, XATTR_NAME_POSIX_ACL_ACCESS, name->len);
}

/**
 * fb_replay_access_acl() - set or remove an object's ACL
 * @run: the replay; its @scratch is overwritten
 * @object: the object
 * @place: of the last record about its ACL
 * @mode: what the object has in the end: its ACL never gives more. NULL: this isn't known
 *
 * Moves the object's ctime. Can be made any number of times.
 *
 * Return: 0 or an error.
 */
int fb_replay_access_acl(struct fb_replay *run, struct dentry *object, u64 place, const u32 *mode)
{
	if (nl_read(run->nl, place, &run->scratch))
		return -EUCLEAN;
	return fb_change_xattr(run, object, &run->scratch.change, XATTR_NAME_POSIX_ACL_ACCESS, mode);
}

/**
 * fb_replay_xattr() - set or remove an extended attribute or a default ACL, as a record says
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
		err = name ? fb_change_xattr(run, object, change, name, NULL) : -ENOMEM;
		kfree(name);
	}
	dput(object);
	return err;
}
