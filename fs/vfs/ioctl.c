// SPDX-License-Identifier: GPL-2.0-only
/*
 * What a program may ask of a file or directory on a mount; include/uapi/linux/forebay.h
 * is the contract.
 */
#include <linux/capability.h>
#include <linux/uaccess.h>

#include "../lower/lower.h"
#include "../writeback/evict.h"
#include "../writeback/recover.h"
#include "drain.h"
#include "info.h"
#include "ioctl.h"
#include "lower_ioctl.h"
#include "range_ioctl.h"

static int fb_ioctl_drain(struct fb_sb *fsb)
{
	return capable(CAP_SYS_ADMIN) ? fb_drain(fsb) : -EPERM;
}

static int fb_ioctl_discard(struct fb_sb *fsb)
{
	if (!capable(CAP_SYS_ADMIN))
		return -EPERM;
	pr_notice("%s: %lu pages without a lower file were given up\n", fsb->cache_name,
		  fb_recover_discard(fsb));
	return 0;
}

/*
 * Copies a struct from user memory that may be of another version: @known is its size as we know it, and as
 * its first version had it; @user begins with the size that the user says. Returns 0; -EINVAL if it is too
 * small, -E2BIG if it asks for what we don't know, -EFAULT.
 */
static int fb_copy_struct(void *to, size_t known, const void __user *user)
{
	u32 size;
	int err;

	if (get_user(size, (const u32 __user *)user))
		return -EFAULT;
	if (size < known)
		return -EINVAL;
	if (size > PAGE_SIZE)
		return -E2BIG;
	err = copy_struct_from_user(to, known, user, size);
	*(u32 *)to = size;	/* it may have changed between two looks */
	return err;
}

static long fb_ioctl_drop(struct fb_inode *fi, struct forebay_dropped __user *user)
{
	struct forebay_dropped drop;
	pgoff_t last;
	u64 end;
	int err;

	err = fb_copy_struct(&drop, sizeof(drop), user);
	if (err)
		return err;
	if (drop.flags || drop.offset > LLONG_MAX || check_add_overflow(drop.offset, drop.length, &end) ||
	    end > LLONG_MAX)
		return -EINVAL;
	last = drop.length ? (end - 1) >> PAGE_SHIFT : LLONG_MAX >> PAGE_SHIFT;
	err = fb_evict_unpinned(fi, drop.offset >> PAGE_SHIFT, last, &drop);
	return err ?: copy_to_user(user, &drop, sizeof(drop)) ? -EFAULT : 0;
}

static long fb_ioctl_info(struct fb_inode *fi, struct forebay_info __user *user)
{
	struct forebay_info info;
	int err;

	err = fb_copy_struct(&info, sizeof(info), user) ?: fb_info(fi, &info);
	return err ?: copy_to_user(user, &info, sizeof(info)) ? -EFAULT : 0;
}

static long fb_ioctl_copied_range(struct file *file, unsigned int nr, const struct forebay_range __user *user)
{
	struct forebay_range range;

	return fb_copy_struct(&range, sizeof(range), user) ?: fb_ioctl_range(file, nr, &range);
}

/*
 * Calls with structs that may grow: the size in the command's number doesn't count, that in the
 * struct does.
 */
static long fb_ioctl_sized(struct file *file, unsigned int cmd, void __user *user)
{
	struct fb_inode *fi = FB_I(file_inode(file));

	if (_IOC_NR(cmd) < _IOC_NR(FOREBAY_IOC_PIN) || _IOC_NR(cmd) > _IOC_NR(FOREBAY_IOC_INFO))
		return -ENOTTY;
	if (!S_ISREG(fi->vfs_inode.i_mode))
		return -EINVAL;
	/* To attach takes a descriptor to write: range_ioctl.c. */
	if (_IOC_NR(cmd) != _IOC_NR(FOREBAY_IOC_ATTACH) && _IOC_NR(cmd) != _IOC_NR(FOREBAY_IOC_DETACH) &&
	    !fb_may_steer(file))
		return -EPERM;
	switch (_IOC_NR(cmd)) {
	case _IOC_NR(FOREBAY_IOC_DROP):
		return fb_ioctl_drop(fi, user);
	case _IOC_NR(FOREBAY_IOC_INFO):
		return fb_ioctl_info(fi, user);
	default:
		return fb_ioctl_copied_range(file, _IOC_NR(cmd), user);
	}
}

/**
 * fb_ioctl() - ioctl(2)
 * @file: upper file or directory
 * @cmd: FOREBAY_IOC_*, or one of the lower file system's
 * @arg: as the command says
 *
 * Return: 0 or a negative errno; -ENOTTY for a command that is not ours and doesn't pass (lower_ioctl.c).
 */
long fb_ioctl(struct file *file, unsigned int cmd, unsigned long arg)
{
	struct inode *inode = file_inode(file);

	switch (cmd) {
	case FOREBAY_IOC_DRAIN:
		return fb_ioctl_drain(FB_SB(inode->i_sb));
	case FOREBAY_IOC_DISCARD_UNPLACED:
		return fb_ioctl_discard(FB_SB(inode->i_sb));
	default:
		if (_IOC_TYPE(cmd) == _IOC_TYPE(FOREBAY_IOC_PIN))
			return fb_ioctl_sized(file, cmd, (void __user *)arg);
		return fb_lower_ioctl(file, cmd, arg);
	}
}
