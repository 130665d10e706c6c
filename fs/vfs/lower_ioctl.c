// SPDX-License-Identifier: GPL-2.0-only
/*
 * The lower file system's own ioctls. A command passes if it is in the table below. Such a command asks for
 * something, or its change of the lower file system leaves what Forebay knows true. All others are -ENOTTY,
 * for a command may:
 *   - move or exchange blocks below pages that are in PMem (EXT4_IOC_MOVE_EXT, XFS_IOC_SWAPEXT,
 *     XFS_IOC_EXCHANGE_RANGE, EXT4_IOC_SWAP_BOOT, BTRFS_IOC_DEFRAG, ...);
 *   - change what a file record or the cache is bound to: the generation in a file handle
 *     (FS_IOC_SETVERSION), the UUID (EXT4_IOC_SETFSUUID);
 *   - make a file read-only or encrypted whose pages have still to be written back (FS_IOC_ENABLE_VERITY,
 *     FS_IOC_SET_ENCRYPTION_POLICY), or take its keys away (FS_IOC_REMOVE_ENCRYPTION_KEY);
 *   - name files and snapshots that are not reached through this mount (BTRFS_IOC_SNAP_CREATE, ...).
 * A tool for these, and for the size of the lower file system, works on the lower mount.
 *
 * The VFS handles some commands itself, for the upper file: FS_IOC_GETFLAGS and its like (attr.c),
 * FICLONE (range.c), FS_IOC_FIEMAP, FIFREEZE. It refuses FIBMAP, and swapon(2), with -EINVAL, for the upper
 * file's mapping has no operations.
 */
#include <linux/capability.h>
#include <linux/compat.h>
#include <linux/fscrypt.h>
#include <linux/fsverity.h>
#include <linux/mount.h>

#include "lower_ioctl.h"

/* ext4, xfs, f2fs and others have agreed on it, but not on a name. */
#define FB_IOC_SHUTDOWN		_IOR('X', 125, __u32)

enum fb_lower_need {
	FB_ANYONE,		/* the lower file system asks for what it wants itself */
	FB_ANYONE_WRITES,	/* the same; but not on a read-only mount */
	FB_ADMIN,		/* CAP_SYS_ADMIN */
	FB_ADMIN_WRITES,	/* both */
};

static const struct fb_lower_command {
	unsigned int cmd;
	enum fb_lower_need need;
} fb_lower_commands[] = {
	{ FITRIM,				FB_ADMIN },
	{ FS_IOC_GETFSLABEL,			FB_ANYONE },
	{ FS_IOC_SETFSLABEL,			FB_ADMIN_WRITES },
	{ FS_IOC_GETVERSION,			FB_ANYONE },
	{ FS_IOC32_GETVERSION,			FB_ANYONE },
	{ FS_IOC_GET_ENCRYPTION_POLICY,		FB_ANYONE },
	{ FS_IOC_GET_ENCRYPTION_POLICY_EX,	FB_ANYONE },
	{ FS_IOC_GET_ENCRYPTION_KEY_STATUS,	FB_ANYONE },
	{ FS_IOC_GET_ENCRYPTION_NONCE,		FB_ANYONE },
	/* Makes one at the first call. */
	{ FS_IOC_GET_ENCRYPTION_PWSALT,		FB_ANYONE_WRITES },
	{ FS_IOC_MEASURE_VERITY,		FB_ANYONE },
	{ FS_IOC_READ_VERITY_METADATA,		FB_ANYONE },
	/* Storage refuses everything from then on. What is in PMem stays there for the next mount. */
	{ FB_IOC_SHUTDOWN,			FB_ADMIN },
};

static const struct fb_lower_command *fb_lower_command(unsigned int cmd)
{
	for (unsigned int i = 0; i < ARRAY_SIZE(fb_lower_commands); i++) {
		if (fb_lower_commands[i].cmd == cmd)
			return &fb_lower_commands[i];
	}
	return NULL;
}

/* The file system below may read a 32-bit program's structs differently. */
static long fb_call_lower(struct file *lower, unsigned int cmd, unsigned long arg)
{
	const struct file_operations *ops = lower->f_op;

	if (in_compat_syscall())
		return ops->compat_ioctl ? ops->compat_ioctl(lower, cmd, arg) : -ENOTTY;
	return ops->unlocked_ioctl ? ops->unlocked_ioctl(lower, cmd, arg) : -ENOTTY;
}

/**
 * fb_lower_ioctl() - a command that is not ours
 * @file: upper file or directory
 * @cmd: the command
 * @arg: its argument
 *
 * Return: what the lower file system says; -ENOTTY if the command doesn't pass; -EPERM without the
 * capability that it takes; -EROFS where it would write and the mount is read-only.
 */
long fb_lower_ioctl(struct file *file, unsigned int cmd, unsigned long arg)
{
	const struct fb_lower_command *command = fb_lower_command(cmd);
	long ret;

	if (!command)
		return -ENOTTY;
	if ((command->need == FB_ADMIN || command->need == FB_ADMIN_WRITES) && !capable(CAP_SYS_ADMIN))
		return -EPERM;
	if (command->need == FB_ANYONE || command->need == FB_ADMIN)
		return fb_call_lower(fb_lower_file(file), cmd, arg);
	ret = mnt_want_write_file(file);
	if (ret)
		return ret;
	ret = fb_call_lower(fb_lower_file(file), cmd, arg);
	mnt_drop_write_file(file);
	return ret;
}
