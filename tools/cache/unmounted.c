// SPDX-License-Identifier: GPL-2.0-only
/*
 * Caches that are not mounted although they hold, or may hold, data that their lower directory lacks,
 * as after a power cut and before the mount. A program that uses the lower directory then reads files that
 * are older than acknowledged syncs.
 *
 * The directory itself carries no mark. A cache records the UUID of the lower file system and the handle
 * of the directory.
 */
#include <fcntl.h>
#include <linux/fs.h>
#include <linux/magic.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/statfs.h>
#include <unistd.h>

#include "../core/store/xfs_handle.h"
#include "base/message.h"
#include "base/shell.h"
#include "device/identity.h"
#include "sys/sysfs.h"
#include "unmounted.h"

/* Since Linux 6.9; Debian 12's headers are older. */
#ifndef FS_IOC_GETFSUUID
#define FS_IOC_GETFSUUID	_IOR(0x15, 0, struct fsuuid2)

struct fsuuid2 {
	__u8 len;
	__u8 uuid[16];
};
#endif

struct walk {
	unmounted_fn fn;
	void *arg;
};

static bool visit(void *arg, const char *disk, const char *path, const struct identity *identity)
{
	struct store_counts counts;
	struct walk *walk = arg;
	struct device dev;
	uint64_t pages;
	struct ps ps;

	(void)identity;
	if (cache_attribute(disk, "pages_total", &pages) || !device_open(&dev, path, DEVICE_SHARED))
		return true;
	if (!ps_open(&ps, dev.base, dev.size, PS_OPEN_READ_ONLY)) {
		store_count(path, &ps, &counts);
		if (counts.pages_out_of_sync || counts.files_unflushed || counts.records_damaged ||
		    counts.names_records || counts.names_damaged)
			walk->fn(walk->arg, &(struct unmounted){ &dev, &ps, &counts });
	}
	device_close(&dev);
	return true;
}

/**
 * unmounted_each - call a function for every cache that is not mounted and holds data that its lower
 *                  directory lacks, or has damaged records, which may be such data
 * @fn: called with each
 * @arg: passed to @fn
 */
void unmounted_each(unmounted_fn fn, void *arg)
{
	caches_each(visit, &(struct walk){ fn, arg });
}

struct folder {
	const char *path;
	struct ps_handle handle;
	u8 uuid[PS_UUID_SIZE];
	bool found;
};

/*
 * Reads UUID and handle of a directory; false: the file system lacks one of them, so the directory has no
 * cache.
 */
static bool read_folder(struct folder *folder)
{
	struct {
		struct file_handle head;
		unsigned char bytes[PS_HANDLE_MAX];
	} handle = { .head.handle_bytes = PS_HANDLE_MAX };
	int fd = open(folder->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC), mount;
	struct fsuuid2 uuid = { };
	struct statfs fs;
	bool good;

	if (fd < 0)
		return false;
	good = !fstatfs(fd, &fs) && !ioctl(fd, FS_IOC_GETFSUUID, &uuid) && uuid.len == PS_UUID_SIZE &&
	       !name_to_handle_at(fd, "", &handle.head, &mount, AT_EMPTY_PATH);
	close(fd);
	if (!good)
		return false;
	memcpy(folder->uuid, uuid.uuid, PS_UUID_SIZE);
	folder->handle.type = handle.head.handle_type;
	folder->handle.len = handle.head.handle_bytes;
	memcpy(folder->handle.bytes, handle.head.f_handle, handle.head.handle_bytes);
	if (fs.f_type == XFS_SUPER_MAGIC)
		xfs_handle_widen(&folder->handle);
	return true;
}

/* Returns the most important of what the lower file system lacks. */
static const char *held_text(char size[SIZE_TEXT], const struct store_counts *counts)
{
	if (counts->pages_out_of_sync)
		return size_text(size, counts->pages_out_of_sync << PS_PAGE_SHIFT);
	return counts->names_records ? "changes of names" : "sizes or times";
}

static void compare(void *arg, const struct unmounted *cache)
{
	u64 damaged = cache->counts->records_damaged + cache->counts->names_damaged;
	struct folder *folder = arg;
	char size[SIZE_TEXT], uuid[37];

	if (!ps_bound_to(cache->ps, folder->uuid, &folder->handle))
		return;
	folder->found = true;
	if (damaged) {
		problem("%s may be older than what was made durable: its cache, %s, is not mounted and has %llu damaged record%s",
			folder->path, cache->dev->path, damaged, PLURAL(damaged));
		advice("`forebay check %s` tells what it holds, and how to mount it.",
		       in_shell(cache->dev->path));
		return;
	}
	problem("%s is older than what was made durable: its cache, %s, is not mounted and holds %s more",
		folder->path, cache->dev->path, held_text(size, cache->counts));
	advice("Use nothing in it before that is there: mount -t forebay -o cache=UUID=%s %s MOUNTPOINT",
	       uuid_text(uuid, cache->ps->super.cache_uuid), in_shell(folder->path));
}

/**
 * say_older - say that a directory lacks what its cache holds
 * @path: of the directory
 *
 * Return: false, and no message, if no such cache was found.
 */
bool say_older(const char *path)
{
	struct folder folder = { .path = path };

	if (read_folder(&folder))
		unmounted_each(compare, &folder);
	return folder.found;
}
