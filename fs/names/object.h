/* SPDX-License-Identifier: GPL-2.0-only */
/* What a record says of one lower object: object.c */
#ifndef FOREBAY_NAMES_OBJECT_H
#define FOREBAY_NAMES_OBJECT_H

#include <linux/fs.h>

#include "../../compat/attr.h"
#include "names.h"

/* Inode flags that replay sets again. */
#define FB_LOGGED_FLAGS	(FS_SYNC_FL | FS_DIRSYNC_FL | FS_NODUMP_FL | FS_NOATIME_FL)
#define FB_LOGGED_XFLAGS (FS_XFLAG_SYNC | FS_XFLAG_NODUMP | FS_XFLAG_NOATIME)

/* Inode flags that say how an inode is stored, not how it behaves. */
#define FB_PLAIN_FLAGS	(FS_EXTENT_FL | FS_INDEX_FL | FS_INLINE_DATA_FL | FS_HUGE_FILE_FL)

/* How many names a file of ext4 can have: its EXT4_LINK_MAX. It doesn't set s_max_links. */
#define FB_EXT4_NAMES	65000

/* How many names replay gives a file besides its own at most, and one for the change under way. */
#define FB_STAGED_NAMES	4

static inline s64 fb_inode_ctime(const struct inode *inode)
{
	struct timespec64 ctime = inode_get_ctime(inode);

	return timespec64_to_ns(&ctime);
}

bool fb_identify(struct fb_sb *fsb, struct inode *lower, struct dentry *lower_dentry,
		 struct nl_identity *id);
void fb_describe(struct nl_attr *attr, const struct inode *lower, s64 mtime);
bool fb_inherits_project(struct dentry *lower);
bool fb_flags_are_logged(const struct file_kattr *fa);
bool fb_has_more(struct dentry *lower);
bool fb_xattr_fits(const char *name, size_t size);
bool fb_xattr_is_one(const struct inode *lower);
bool fb_mode_is_one(struct inode *lower);
bool fb_has_many_names(const struct inode *lower);

#endif
