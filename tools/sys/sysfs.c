// SPDX-License-Identifier: GPL-2.0-only
/*
 * Files in /sys and /proc that hold one value, and the kernel's names of block devices.
 *
 * With FOREBAY_SYSROOT set, /sys and /proc are looked for below that folder. So tests can show the command
 * mounts that don't exist.
 */
#include <dirent.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/message.h"
#include "sysfs.h"

/**
 * kernel_path - where a file in /sys or /proc is
 * @path: where to put it
 * @format: the absolute path, as for printf()
 *
 * Return: @path.
 */
const char *kernel_path(char path[PATH_MAX], const char *format, ...)
{
	const char *root = getenv("FOREBAY_SYSROOT");
	size_t len = root ? strnlen(root, PATH_MAX - 1) : 0;
	va_list args;

	memcpy(path, root ? root : "", len);
	va_start(args, format);
	vsnprintf(path + len, PATH_MAX - len, format, args);
	va_end(args);
	return path;
}

/**
 * sysfs_is_there - check that the kernel's devices can be seen
 *
 * Without sysfs, a folder of it that is missing doesn't tell that there are no devices.
 *
 * Return: false, after a message, if sysfs is not mounted.
 */
bool sysfs_is_there(void)
{
	char path[PATH_MAX];

	if (!access(kernel_path(path, "/sys/devices"), F_OK))
		return true;
	problem("cannot see the devices of the kernel: sysfs is not mounted at /sys");
	advice("Run: mount --types=sysfs none /sys (in a container: give it the /sys of the machine)");
	return false;
}

/**
 * kernel_read - read a file that holds one value
 * @path: from kernel_path()
 * @text: the value, without the newline
 * @size: of @text
 *
 * Return: false if it cannot be read.
 */
bool kernel_read(const char *path, char *text, size_t size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t len;

	if (fd < 0)
		return false;
	len = read(fd, text, size - 1);
	close(fd);
	if (len < 0)
		return false;
	while (len && text[len - 1] == '\n')
		len--;
	text[len] = '\0';
	return true;
}

static int is_name(const struct dirent *entry)
{
	return entry->d_name[0] != '.';
}

/**
 * names_in - call a function for every name in a folder
 * @folder: absolute; looked for below FOREBAY_SYSROOT
 * @fn: called with each name, in the order of versions
 * @arg: passed to @fn
 *
 * Return: false, with errno, if the folder is missing or can't be read.
 */
bool names_in(const char *folder, name_fn fn, void *arg)
{
	char path[PATH_MAX];
	struct dirent **entries;
	int n = scandir(kernel_path(path, "%s", folder), &entries, is_name, versionsort);

	for (int i = 0; i < n; i++) {
		fn(arg, entries[i]->d_name);
		free(entries[i]);
	}
	if (n >= 0)
		free(entries);
	return n >= 0;
}

/**
 * disk_name - the kernel's name of a block device
 * @rdev: its number
 * @name: where to put the name, as in /sys/class/block
 *
 * Return: false if the kernel knows no such device.
 */
bool disk_name(dev_t rdev, char name[NAME_MAX + 1])
{
	char path[PATH_MAX], target[PATH_MAX];
	ssize_t len;

	kernel_path(path, "/sys/dev/block/%u:%u", major(rdev), minor(rdev));
	len = readlink(path, target, sizeof(target) - 1);
	if (len < 0)
		return false;
	target[len] = '\0';
	snprintf(name, NAME_MAX + 1, "%s", basename(target));
	return true;
}

/**
 * disk_attribute - read an attribute of a disk
 * @rdev: number of the disk or of one of its partitions
 * @attribute: below the disk's folder, for example "queue/dax"
 * @text: the value
 * @size: of @text
 *
 * Return: false if there is no such attribute.
 */
bool disk_attribute(dev_t rdev, const char *attribute, char *text, size_t size)
{
	char path[PATH_MAX];
	unsigned int major = major(rdev), minor = minor(rdev);

	kernel_path(path, "/sys/dev/block/%u:%u/%s", major, minor, attribute);
	if (kernel_read(path, text, size))
		return true;
	kernel_path(path, "/sys/dev/block/%u:%u/../%s", major, minor, attribute);
	return kernel_read(path, text, size);
}

/**
 * disk_is_volatile - whether a block device is made of ordinary memory
 * @rdev: its number
 *
 * Return: true for devices of `forebay emu`. Of other devices made of ordinary memory nothing is known.
 */
bool disk_is_volatile(dev_t rdev)
{
	char text[32];

	return disk_attribute(rdev, "emu/persistence", text, sizeof(text));
}

/**
 * disk_path - the node in /dev of a block device
 * @numbers: "8:0"
 * @path: "/dev/sda"; of a mapped device, /dev/mapper/NAME
 *
 * Return: false if the kernel knows no such device; @path is @numbers then.
 */
bool disk_path(const char *numbers, char path[PATH_MAX])
{
	char name[NAME_MAX + 1], mapped[NAME_MAX + 1];
	unsigned int major, minor;
	dev_t rdev;

	snprintf(path, PATH_MAX, "%s", numbers);
	if (sscanf(numbers, "%u:%u", &major, &minor) != 2)
		return false;
	rdev = makedev(major, minor);
	if (!disk_name(rdev, name))
		return false;
	if (disk_attribute(rdev, "dm/name", mapped, sizeof(mapped)))
		snprintf(path, PATH_MAX, "/dev/mapper/%s", mapped);
	else
		snprintf(path, PATH_MAX, "/dev/%s", name);
	return true;
}

/**
 * cache_attribute - read a number that forebay.ko shows of a mount
 * @name: the kernel's name of the cache device
 * @attribute: see docs/sysfs.md
 * @value: the number
 *
 * Return: false if it cannot be read.
 */
bool cache_attribute(const char *name, const char *attribute, uint64_t *value)
{
	char path[PATH_MAX], text[32];

	kernel_path(path, FOREBAY_SYSFS "/%s/%s", name, attribute);
	if (!kernel_read(path, text, sizeof(text)))
		return false;
	*value = strtoull(text, NULL, 10);
	return true;
}

/**
 * disk_holder - look for a device that the kernel has made of a disk
 * @disk: the kernel's name of the disk
 * @wanted: called with the kernel's name of each such device, until it returns true; NULL: any device will
 *      do
 * @arg: passed to @wanted
 *
 * Return: true if there is one.
 */
bool disk_holder(const char *disk, holder_fn wanted, void *arg)
{
	char folder[PATH_MAX];
	struct dirent *entry;
	bool found = false;
	DIR *dir = opendir(kernel_path(folder, "/sys/class/block/%s/holders", disk));

	while (dir && !found && (entry = readdir(dir)))
		found = entry->d_name[0] != '.' && (!wanted || wanted(arg, entry->d_name));
	if (dir)
		closedir(dir);
	return found;
}
