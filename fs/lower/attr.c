// SPDX-License-Identifier: GPL-2.0-only
/*
 * Attributes of a lower inode: copied up, changed, and its size and times set as they are above.
 */
#include <linux/fs.h>
#include <linux/posix_acl.h>

#include "../../compat/attr.h"
#include "attr.h"
#include "lower.h"

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
 * @inode: the upper inode, which is brought up to date
 * @noted: the name log has the change; otherwise the next fsync has to go below
 */
void fb_attr_changed(struct inode *inode, bool noted)
{
	fb_copy_attr(inode);
	forget_all_cached_acls(inode);
	if (!noted)
		set_bit(FB_NEEDS_FSYNC, &FB_I(inode)->flags);
}

/**
 * fb_set_times() - set a lower file's times, ctime as well
 * @file: lower file, open for writing; its inode is locked, and a freeze held off
 * @mtime: to be set
 * @ctime: to be set
 *
 * notify_change() would set ctime to now. File systems take it from ia_ctime (setattr_copy()).
 *
 * Return: 0 or an error of the lower file system.
 */
int fb_set_times(struct file *file, struct timespec64 mtime, struct timespec64 ctime)
{
	struct iattr attr = { .ia_valid = ATTR_FORCE, .ia_mtime = mtime, .ia_ctime = ctime };
	struct inode *lower = file_inode(file);

	if (!lower->i_op->setattr)
		return -EOPNOTSUPP;
	attr.ia_valid |= compat_prepare_times(lower, mtime, ctime);
	return lower->i_op->setattr(file_mnt_idmap(file), file_dentry(file), &attr);
}

/**
 * fb_set_attr_at() - change a lower inode's attributes, as they were changed at another time
 * @idmap: of the lower mount
 * @lower: the inode's dentry; the inode is locked, and a freeze held off
 * @attr: what to change; overwritten
 * @ctime: the inode's, afterwards
 *
 * For recovery, which compares ctime with that of a file record. Asks no permission.
 *
 * Return: 0 or an error of the lower file system.
 */
int fb_set_attr_at(struct mnt_idmap *idmap, struct dentry *lower, struct iattr *attr,
		   struct timespec64 ctime)
{
	struct inode *inode = d_inode(lower);

	lockdep_assert_held_write(&inode->i_rwsem);
	if (!inode->i_op->setattr)
		return -EOPNOTSUPP;
	if (!(attr->ia_valid & ATTR_MTIME))
		attr->ia_mtime = inode_get_mtime(inode);
	attr->ia_ctime = ctime;
	attr->ia_valid |= ATTR_FORCE | compat_prepare_times(inode, attr->ia_mtime, attr->ia_ctime);
	return inode->i_op->setattr(idmap, lower, attr);
}

struct fb_resize {
	struct file *file;
	loff_t size;
};

static int fb_resize(void *arg)
{
	struct fb_resize *resize = arg;
	struct file *file = resize->file;
	struct iattr attr = { .ia_valid = ATTR_SIZE | ATTR_FILE | ATTR_FORCE | ATTR_MTIME | ATTR_MTIME_SET,
			      .ia_size = resize->size, .ia_file = file };
	struct inode *lower = file_inode(file);
	struct timespec64 ctime;
	int err;

	file_start_write(file);
	inode_lock(lower);
	attr.ia_mtime = inode_get_mtime(lower);
	ctime = inode_get_ctime(lower);
	err = notify_change(file_mnt_idmap(file), file_dentry(file), &attr, NULL) ?:
	      fb_set_times(file, attr.ia_mtime, ctime);
	inode_unlock(lower);
	file_end_write(file);
	return err;
}

/**
 * fb_set_lower_size() - set the size of a lower file to what it is above
 * @fsb: the mount
 * @file: the lower file, open for writing
 * @size: in bytes
 *
 * mtime and ctime stay: the user has changed nothing now. For the same reason it is done as the mounter.
 *
 * Return: 0 or an error of the lower file system.
 */
int fb_set_lower_size(struct fb_sb *fsb, struct file *file, loff_t size)
{
	struct fb_resize resize = { .file = file, .size = size };

	return fb_run_as_mounter(fsb, fb_resize, &resize);
}
