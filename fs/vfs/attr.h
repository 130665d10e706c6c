/* SPDX-License-Identifier: GPL-2.0-only */
/* Attributes: attr.c */
#ifndef FOREBAY_VFS_ATTR_H
#define FOREBAY_VFS_ATTR_H

#include <linux/posix_acl.h>

#include "../../compat/attr.h"
#include "../forebay.h"

int fb_getattr(struct mnt_idmap *idmap, const struct path *path, struct kstat *stat, u32 mask,
	       unsigned int flags);
int fb_setattr(struct mnt_idmap *idmap, struct dentry *dentry, struct iattr *attr);
int fb_permission(struct mnt_idmap *idmap, struct inode *inode, int mask);
struct posix_acl *fb_get_inode_acl(struct inode *inode, int type, bool rcu);
struct posix_acl *fb_get_acl(struct mnt_idmap *idmap, struct dentry *dentry, int type);
int fb_set_acl(struct mnt_idmap *idmap, struct dentry *dentry, struct posix_acl *acl, int type);
int fb_fileattr_get(struct dentry *dentry, struct file_kattr *fa);
int fb_fileattr_set(struct mnt_idmap *idmap, struct dentry *dentry, struct file_kattr *fa);
extern const struct inode_operations fb_file_inode_operations;
extern const struct inode_operations fb_special_inode_operations;

#endif
