// SPDX-License-Identifier: GPL-2.0-only
/* Owner, mode, times and size of a lower inode, changed as a user asks and noted in the name log. */
#include "../lower/attr.h"
#include "../lower/lower.h"
#include "attr.h"
#include "begin.h"
#include "object.h"

/**
 * fb_names_setattr() - change attributes below, and note that
 * @idmap: of the upper mount
 * @dentry: upper dentry
 * @attr: what setattr_prepare() has agreed to; unchanged
 *
 * The upper inode is brought up to date.
 *
 * Context: process; the upper inode is locked exclusively. Sleeps.
 * Return: 0 or an error.
 */
int fb_names_setattr(struct mnt_idmap *idmap, struct dentry *dentry, struct iattr *attr)
{
	struct user_namespace *fs_userns = dentry->d_sb->s_user_ns;
	struct path lower = fb_lower_path(dentry);
	struct iattr lower_attr = *attr;
	struct inode *inode = d_inode(dentry);
	struct fb_name_record rec;
	const struct cred *old;
	bool whole;
	int err;

	lockdep_assert_held_write(&inode->i_rwsem);
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
	whole = !(attr->ia_valid & ATTR_MODE) || fb_mode_is_one(d_inode(lower.dentry));
	fb_names_begin_attr(&rec, dentry, whole);
	err = notify_change(mnt_idmap(lower.mnt), lower.dentry, &lower_attr, NULL);
	fb_names_end(&rec, lower.dentry, err);
	inode_unlock(d_inode(lower.dentry));
	fb_end_below(FB_SB(dentry->d_sb), old);
	if (!err)
		fb_attr_changed(inode, fb_names_note(&rec, inode));
	return err;
}
