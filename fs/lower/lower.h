/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Calls into the file system below: lower.c
 *
 * Floor 1, lower: the file system below. It has the credentials and the rights that a call below takes,
 * opens lower files, and reads and sets what a lower inode has. It knows nothing of PMem. May use:
 * forebay.h and the kernel. Used by: every floor above.
 */
#ifndef FOREBAY_LOWER_LOWER_H
#define FOREBAY_LOWER_LOWER_H

#include "../forebay.h"

int fb_begin_below(struct mnt_idmap *idmap, struct fb_sb *fsb, const struct cred **old);
void fb_end_below(struct fb_sb *fsb, const struct cred *old);
const struct cred *fb_space_cred(void);
int fb_run_as_mounter(struct fb_sb *fsb, int (*run)(void *arg), void *arg);
bool fb_may_steer_inode(struct mnt_idmap *idmap, struct inode *inode);
bool fb_may_steer(struct file *file);
struct file *fb_open_lower(struct file *file, struct inode *inode);
struct file *fb_open_quietly(struct fb_sb *fsb, const struct path *path);
struct file *fb_open_below(struct fb_inode *fi);
int fb_fsync_lower(struct file *lower, int datasync);
int fb_fsync_below(struct fb_inode *fi, int datasync);
void fb_write_before_replacing(struct inode *lower);
int fb_encode_handle(struct inode *lower, struct ps_handle *handle);
int fb_sync_lower_fs(struct fb_sb *fsb);
int fb_commit_lower_fs_locked(struct fb_sb *fsb);
int fb_commit_lower_fs(struct fb_sb *fsb);

/*
 * O_NOATIME, if the upper mount says that no access time moves. What is open at a remount keeps what it
 * had.
 */
static inline unsigned int fb_lower_atime(const struct file *file)
{
	struct vfsmount *mnt = file->f_path.mnt;

	return __mnt_is_readonly(mnt) || (mnt->mnt_flags & MNT_NOATIME) ? O_NOATIME : 0;
}

#endif
