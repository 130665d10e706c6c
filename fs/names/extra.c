// SPDX-License-Identifier: GPL-2.0-only
/*
 * Records behind that of a creation: extended attributes, ACLs and flags that a new object has from its
 * directory, or from a security module.
 *
 * They are found after the creation below. Their places are taken together with that of the creation, under
 * one hold of the place lock. So no commit falls between them.
 */
#include <linux/slab.h>
#include <linux/xattr.h>

#include "../../compat/acl.h"
#include "../../compat/attr.h"
#include "../lower/lower.h"
#include "extra.h"
#include "object.h"

#define FB_LIST_MAX	1024	/* bytes of the names; an object with more has a barrier */

static struct fb_name_extra *fb_extra_add(struct fb_name_extras *extras, enum nl_kind kind)
{
	struct fb_name_extra *extra;

	if (extras->nr == FB_MAX_EXTRAS)
		return NULL;
	extra = &extras->extra[extras->nr++];
	extra->change.kind = kind;
	return extra;
}

/* An ACL's value; NULL: it can't be read. */
static void *fb_acl_value(struct dentry *lower, const char *name, size_t *size)
{
	struct posix_acl *acl = vfs_get_acl(&nop_mnt_idmap, lower, name);
	void *value;

	if (IS_ERR_OR_NULL(acl))
		return NULL;
	value = compat_acl_to_xattr(acl, size, GFP_NOFS);
	posix_acl_release(acl);
	return value;
}

static void *fb_xattr_value(struct dentry *lower, const char *name, size_t *size)
{
	struct inode *inode = d_inode(lower);
	ssize_t len = __vfs_getxattr(lower, inode, name, NULL, 0);
	void *value;

	if (len < 0 || !fb_xattr_fits(name, len))
		return NULL;
	value = kmalloc(len + 1, GFP_NOFS);	/* the value may be empty */
	if (value && __vfs_getxattr(lower, inode, name, value, len) == len) {
		*size = len;
		return value;
	}
	kfree(value);
	return NULL;
}

static bool fb_extra_xattr(struct fb_name_extras *extras, struct dentry *lower, const char *name)
{
	struct fb_name_extra *extra = fb_xattr_fits(name, 0) ? fb_extra_add(extras, NL_XATTR_SET) : NULL;
	size_t size = 0;

	if (!extra)
		return false;
	extra->value = is_posix_acl_xattr(name) ? fb_acl_value(lower, name, &size) :
		       fb_xattr_value(lower, name, &size);
	extra->change.xattr = (struct nl_text){ .bytes = name, .len = strlen(name) };
	extra->change.value = (struct nl_text){ .bytes = extra->value, .len = size };
	return extra->value && size <= NL_VALUE_MAX;
}

static bool fb_extra_xattrs(struct fb_name_extras *extras, struct dentry *lower)
{
	ssize_t size = vfs_listxattr(lower, NULL, 0), at;

	if (!size || size == -EOPNOTSUPP)
		return true;
	if (size < 0 || size > FB_LIST_MAX)
		return false;
	extras->names = kmalloc(size, GFP_NOFS);
	if (!extras->names || vfs_listxattr(lower, extras->names, size) != size)
		return false;
	for (at = 0; at < size; at += strlen(extras->names + at) + 1)
		if (!fb_extra_xattr(extras, lower, extras->names + at))
			return false;
	return true;
}

static bool fb_extra_flags(struct fb_name_extras *extras, struct dentry *lower)
{
	struct inode *inode = d_inode(lower);
	struct fb_name_extra *extra;
	struct file_kattr fa = { };
	u32 flags;

	if (!S_ISREG(inode->i_mode) && !S_ISDIR(inode->i_mode))
		return !fb_inherits_project(lower);
	if (vfs_fileattr_get(lower, &fa) || !fb_flags_are_logged(&fa))
		return false;
	flags = fa.flags & FB_LOGGED_FLAGS;
	if (!flags)
		return true;
	extra = fb_extra_add(extras, NL_IFLAGS);
	if (extra)
		extra->change.attr.iflags = flags;
	return extra;
}

/**
 * fb_extras_find() - find out what a new object has beyond what the record of its creation says
 * @lower: its lower dentry; the lower directory is locked
 *
 * Context: process. Sleeps.
 * Return: for fb_extras_free(); NULL: records can't say all of it.
 */
struct fb_name_extras *fb_extras_find(struct dentry *lower)
{
	struct fb_name_extras *extras;

	if (IS_ENCRYPTED(d_inode(lower)))
		return NULL;
	extras = kzalloc(sizeof(*extras), GFP_NOFS);
	if (!extras || (fb_extra_xattrs(extras, lower) && fb_extra_flags(extras, lower)))
		return extras;
	fb_extras_free(extras);
	return NULL;
}

static void fb_extra_describe(struct fb_name_extra *extra, const struct nl_change *creation,
			      const struct nl_count *self)
{
	struct nl_change *c = &extra->change;
	u32 iflags = c->attr.iflags;

	c->object = creation->object;
	c->self = *self;
	c->attr = creation->attr;
	c->has = BIT(NL_F_OBJECT) | BIT(NL_F_SELF) | BIT(NL_F_ATTR);
	if (c->kind == NL_XATTR_SET) {
		c->has |= BIT(NL_F_XATTR) | BIT(NL_F_VALUE);
	} else {
		c->attr.mask |= NL_ATTR_IFLAGS;
		c->attr.iflags = iflags;
	}
}

/**
 * fb_extras_reserve() - describe the records, and set space aside for them
 * @names: log
 * @extras: from fb_extras_find()
 * @creation: complete, but for the birth
 * @self: of the records
 *
 * Context: process.
 * Return: false if there is no space; then none is set aside.
 */
bool fb_extras_reserve(struct fb_names *names, struct fb_name_extras *extras,
		       const struct nl_change *creation, const struct nl_count *self)
{
	unsigned int i, reserved = 0;
	int lines = 0;

	for (i = 0; i < extras->nr; i++)
		fb_extra_describe(&extras->extra[i], creation, self);
	spin_lock(&names->place_lock);
	while (reserved < extras->nr && lines >= 0) {
		lines = nl_change_lines(&extras->extra[reserved].change);
		if (lines < 0 || nl_reserve(&names->nl, &extras->extra[reserved].place, lines))
			break;
		reserved++;
	}
	for (i = 0; i < reserved && reserved < extras->nr; i++)
		nl_cancel(&names->nl, &extras->extra[i].place);
	spin_unlock(&names->place_lock);
	return reserved == extras->nr;
}

/**
 * fb_extras_take() - take the places of the records
 * @names: log
 * @extras: after fb_extras_reserve()
 *
 * Context: place_lock is held since the creation has its place.
 */
void fb_extras_take(struct fb_names *names, struct fb_name_extras *extras)
{
	lockdep_assert_held(&names->place_lock);
	for (unsigned int i = 0; i < extras->nr; i++)
		nl_take(&names->nl, &extras->extra[i].place, extras->extra[i].place.reserved, false);
}

/**
 * fb_extras_write() - write the records
 * @nl: log
 * @extras: after fb_extras_take()
 * @birth: of the new object
 *
 * Context: preemption is disabled: commits of other tasks wait.
 */
void fb_extras_write(const struct nl *nl, struct fb_name_extras *extras, u64 birth)
{
	for (unsigned int i = 0; i < extras->nr; i++) {
		extras->extra[i].change.object.birth = birth;
		nl_write(nl, &extras->extra[i].place, &extras->extra[i].change);
	}
}

/**
 * fb_extras_done() - the records are whole
 * @names: log
 * @extras: after fb_extras_write()
 *
 * Context: place_lock is held.
 */
void fb_extras_done(struct fb_names *names, struct fb_name_extras *extras)
{
	lockdep_assert_held(&names->place_lock);
	for (unsigned int i = 0; i < extras->nr; i++)
		nl_done(&names->nl, &extras->extra[i].place);
}

/**
 * fb_extras_free() - free the description
 * @extras: from fb_extras_find(), or NULL; its records are written, or have no places
 *
 * Context: process.
 */
void fb_extras_free(struct fb_name_extras *extras)
{
	if (!extras)
		return;
	for (unsigned int i = 0; i < extras->nr; i++)
		kfree(extras->extra[i].value);
	kfree(extras->names);
	kfree(extras);
}
