// SPDX-License-Identifier: GPL-2.0-only
/*
 * Opens a device, or an image of one, and maps it, so that core/ can read or format it. There is one at a
 * time.
 *
 * A block device is opened exclusively: no mount and no other exclusive user has it, or gets it meanwhile.
 * Its page cache is emptied first, since the kernel's modules write past that. An image file is locked
 * against other commands: a repair that waits for its confirmation knows the records by number.
 */
#include <fcntl.h>
#include <linux/fs.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <uuid.h>

#include "../core/pm/host.h"
#include "base/message.h"
#include "base/shell.h"
#include "base/verb.h"
#include "mapped/holders.h"
#include "sys/namespace.h"
#include "sys/rights.h"
#include "sys/sysfs.h"
#include "device.h"

static const char *mapped_path;

/* Called in a signal handler. The command cannot continue. */
static void unexpected(void)
{
	static const char text[] = ": reading failed: a bad block, or an image that shrank meanwhile\n";

	if (write(STDERR_FILENO, "forebay: ", 9) > 0 &&
	    write(STDERR_FILENO, mapped_path, strlen(mapped_path)) > 0 &&
	    write(STDERR_FILENO, text, sizeof(text) - 1) > 0)
		_exit(FAILED);
	_exit(FAILED);
}

static bool say_kind(const char *path, const struct stat *st)
{
	struct pm_namespace ns;

	if (S_ISBLK(st->st_mode) || S_ISREG(st->st_mode))
		return true;
	if (S_ISCHR(st->st_mode) && namespace_of_dax(st->st_rdev, &ns)) {
		problem("%s is %s in devdax mode; it must be in fsdax mode", path, ns.name);
		advice("Convert it (its contents are lost): ndctl create-namespace -f -e %s -m fsdax --map=mem",
		       ns.name);
	} else {
		problem("%s is neither a block device nor an image file", path);
		advice("Caches and write logs are on block devices like /dev/pmem0.");
	}
	return false;
}

static bool say_open_failed(const char *path, const struct stat *st)
{
	int err = errno;

	if (err == EBUSY && S_ISBLK(st->st_mode)) {
		if (!say_user(path, st->st_rdev)) {
			problem("%s is in use", path);
			advice("`lsblk %s` may show by what.", in_shell(path));
		}
		return false;
	}
	problem("cannot open %s: %s", path, strerror(err));
	if (err == EACCES || err == EPERM)
		advice("%s", geteuid() ? "This needs root, or the rights to the device." : rights_advice());
	else if (err == ENOENT)
		advice("`lsblk` lists the block devices there are.");
	return false;
}

/* The path may lead elsewhere when it is opened than when it was looked at. */
static bool is_same(const struct stat *a, const struct stat *b)
{
	return a->st_mode == b->st_mode && a->st_rdev == b->st_rdev && a->st_ino == b->st_ino &&
	       a->st_dev == b->st_dev;
}

/* Some network file systems have no locks. */
static bool lock_image(const struct device *dev, unsigned int flags)
{
	int lock = flags & DEVICE_WRITE ? LOCK_EX : LOCK_SH;

	if (flags & DEVICE_SHARED || !flock(dev->fd, lock | LOCK_NB) || errno != EWOULDBLOCK)
		return true;
	problem("%s is in use by another command", dev->path);
	advice("`fuser -v %s` shows by which.", in_shell(dev->path));
	return false;
}

/* The kernel opens such a device for writing, and would refuse the mapping with EINVAL. */
static bool is_writable(const struct device *dev)
{
	int read_only = 0;

	if (ioctl(dev->fd, BLKROGET, &read_only) || !read_only)
		return true;
	problem("%s is read-only", dev->path);
	advice("`blockdev --setrw %s` ends that, unless the hardware is to blame (dmesg).",
	       in_shell(dev->path));
	return false;
}

static bool open_and_measure(struct device *dev, unsigned int flags)
{
	int mode = O_CLOEXEC | O_NONBLOCK | (flags & DEVICE_WRITE ? O_RDWR : O_RDONLY);
	struct stat st, opened;

	if (stat(dev->path, &st))
		return say_open_failed(dev->path, &st);
	if (!say_kind(dev->path, &st))
		return false;
	dev->is_disk = S_ISBLK(st.st_mode);
	dev->rdev = st.st_rdev;
	if (!dev->is_disk || !disk_name(dev->rdev, dev->name))
		snprintf(dev->name, sizeof(dev->name), "%s", basename(dev->path));
	if (dev->is_disk && !(flags & DEVICE_SHARED))
		mode |= O_EXCL;
	dev->fd = open(dev->path, mode);
	if (dev->fd < 0)
		return say_open_failed(dev->path, &st);
	if (fstat(dev->fd, &opened) || !is_same(&st, &opened)) {
		problem("%s was replaced while it was being opened", dev->path);
		return false;
	}
	dev->size = opened.st_size;
	if (!dev->is_disk)
		return lock_image(dev, flags);
	if (flags & DEVICE_WRITE && !is_writable(dev))
		return false;
	if (ioctl(dev->fd, BLKGETSIZE64, &dev->size)) {
		problem("cannot tell the size of %s: %s", dev->path, strerror(errno));
		return false;
	}
	ioctl(dev->fd, BLKFLSBUF);	/* fails without root: pages may then be out of date */
	return true;
}

static bool map_device(struct device *dev, unsigned int flags)
{
	int protection = PROT_READ | (flags & DEVICE_WRITE ? PROT_WRITE : 0);

	if (!dev->size) {
		problem("%s is empty", dev->path);
		return false;
	}
	dev->base = mmap(NULL, dev->size, protection, MAP_SHARED, dev->fd, 0);
	if (dev->base == MAP_FAILED) {
		problem("cannot map %s: %s", dev->path, strerror(errno));
		return false;
	}
	mapped_path = dev->path;
	pm_host_map(dev->base, dev->size);
	pm_host_guard(dev->fd, unexpected);
	return true;
}

/**
 * device_open - open and map a device or an image
 * @dev: filled in; the caller calls device_close() if that succeeded
 * @path: of the device
 * @flags: DEVICE_*
 *
 * Bad blocks count as damage, and are rewritten where something is stored: see core/pm/host.c.
 *
 * Return: false, after a message, if it is in use, empty, or can't be opened.
 */
bool device_open(struct device *dev, const char *path, unsigned int flags)
{
	*dev = (struct device){ .path = path, .fd = -1, .base = MAP_FAILED };
	if (open_and_measure(dev, flags) && map_device(dev, flags))
		return true;
	device_close(dev);
	return false;
}

/**
 * device_close - unmap and close a device
 * @dev: from device_open()
 */
void device_close(struct device *dev)
{
	if (dev->base != MAP_FAILED) {
		pm_host_guard(-1, NULL);
		munmap(dev->base, dev->size);
	}
	if (dev->fd >= 0)
		close(dev->fd);
}

/**
 * uuid_text - a UUID as text
 * @text: where to put it
 * @uuid: its bytes
 *
 * Return: @text.
 */
const char *uuid_text(char text[37], const u8 uuid[PS_UUID_SIZE])
{
	uuid_unparse_lower(uuid, text);
	return text;
}
