// SPDX-License-Identifier: GPL-2.0-only
/*
 * What a program may ask of a file or directory on a mount; include/uapi/linux/forebay.h
 * is the contract.
 */
#include <linux/capability.h>
#include <linux/uaccess.h>

#include "forebay.h"
#include "recover.h"
#include "settle.h"
#include "writeback.h"

static int fb_ioctl_drain(struct fb_sb *fsb)
{
	int err;

	if (!capable(CAP_SYS_ADMIN))
		return -EPERM;
	err = fb_settle_all(fsb);
	return fb_writeback_all(fsb, true) ?: err;
}

static int fb_ioctl_discard(struct fb_sb *fsb)
{
	if (!capable(CAP_SYS_ADMIN))
		return -EPERM;
	pr_notice("%s: %lu pages without a lower file were given up\n", fsb->cache_name,
		  fb_recover_discard(fsb));
	return 0;
}

static int fb_ioctl_counts(struct fb_inode *fi, struct forebay_counts __user *user)
{
	struct forebay_counts counts = {};
	struct fb_page *page;
	unsigned long index;
	u32 status;

	if (!S_ISREG(fi->vfs_inode.i_mode))
		return -EINVAL;
	down_read(&fi->io_sem);
	xa_for_each(&fi->index, index, page) {
		status = READ_ONCE(page->status);
		counts.clean += (status & FB_STATUS_STATE) == FB_STATUS_CLEAN;
		counts.out_of_sync += (status & FB_STATUS_STATE) == FB_STATUS_OUT_OF_SYNC;
		counts.dirty += !!(status & FB_STATUS_DIRTY);
	}
	up_read(&fi->io_sem);
	return copy_to_user(user, &counts, sizeof(counts)) ? -EFAULT : 0;
}

/**
 * fb_ioctl() - ioctl(2)
 * @file: upper file or directory
 * @cmd: FOREBAY_IOC_*
 * @arg: as the command says
 *
 * Return: 0 or a negative errno; -ENOTTY for a command that is not ours.
 */
long fb_ioctl(struct file *file, unsigned int cmd, unsigned long arg)
{
	struct inode *inode = file_inode(file);

	switch (cmd) {
	case FOREBAY_IOC_DRAIN:
		return fb_ioctl_drain(FB_SB(inode->i_sb));
	case FOREBAY_IOC_DISCARD_UNPLACED:
		return fb_ioctl_discard(FB_SB(inode->i_sb));
	case FOREBAY_IOC_COUNTS:
		return fb_ioctl_counts(FB_I(inode), (void __user *)arg);
	default:
		return -ENOTTY;
	}
}

/**
 * fb_compat_ioctl() - ioctl(2) of a 32-bit program; the layouts are the same
 * @file: upper file or directory
 * @cmd: FOREBAY_IOC_*
 * @arg: as the command says
 */
long fb_compat_ioctl(struct file *file, unsigned int cmd, unsigned long arg)
{
	return fb_ioctl(file, cmd, arg);
}
