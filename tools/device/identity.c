// SPDX-License-Identifier: GPL-2.0-only
/*
 * Whether a device is a cache or a write log, by its superblocks; and which device has a UUID.
 *
 * udev runs this for each device that appears, and mount.forebay for every device. So only the two
 * superblocks are read. The device may be in use, and is never written to.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <uuid.h>

#include "../core/store/store.h"
#include "../core/log/log.h"
#include "sys/sysfs.h"
#include "identity.h"

#define SUPERS	(PS_NR_SUPERS * PS_PAGE_SIZE)

static uint64_t size_of(int fd)
{
	uint64_t size = 0;
	struct stat st;

	if (fstat(fd, &st))
		return 0;
	if (!S_ISBLK(st.st_mode))
		return st.st_size;
	return ioctl(fd, BLKGETSIZE64, &size) ? 0 : size;
}

/*
 * The modules write past the block device's page cache, which may therefore be out of date. A copy that
 * can't be read counts as damaged, unless that are both.
 */
static bool read_supers(int fd, char *supers, const char **why)
{
	unsigned int lost = 0;

	posix_fadvise(fd, 0, SUPERS, POSIX_FADV_DONTNEED);
	for (char *copy = supers; copy < supers + SUPERS; copy += PS_PAGE_SIZE) {
		ssize_t got = pread(fd, copy, PS_PAGE_SIZE, copy - supers);

		if (got == PS_PAGE_SIZE)
			continue;
		if (got >= 0)
			*why = "it is too short for a superblock";
		if (got >= 0 || errno != EIO)
			return false;
		memset(copy, 0, PS_PAGE_SIZE);
		*copy = 1;
		lost++;
	}
	return lost < PS_NR_SUPERS;
}

/* Neither ps_open() nor wl_open() reads anything behind the superblocks. */
static void judge(void *supers, uint64_t size, struct identity *identity)
{
	struct ps ps;
	struct wl wl;
	enum ps_error err = ps_open(&ps, supers, size, PS_OPEN_READ_ONLY);
	enum wl_error log_err = wl_open(&wl, supers, size, WL_OPEN_READ_ONLY);

	if (!err) {
		identity->type = TYPE_CACHE;
		identity->version = le32_to_cpu(ps.super.version);
		identity->names_size = ps.names_size;
		uuid_unparse_lower(ps.super.cache_uuid, identity->uuid);
	} else if (!log_err) {
		identity->type = TYPE_WRITELOG;
		identity->version = le32_to_cpu(wl.super.version);
		uuid_unparse_lower(wl.super.uuid, identity->uuid);
	} else {
		identity->why = err == PS_E_WRITELOG ? wl_strerror(log_err) : ps_strerror(err);
	}
}

/* A pipe would be waited for, a directory has no bytes, and memory in devdax mode can't be read. */
static bool is_readable(const char *path, struct identity *identity)
{
	struct stat st;

	if (stat(path, &st))
		return false;
	if (S_ISBLK(st.st_mode) || S_ISREG(st.st_mode))
		return true;
	identity->why = "it is neither a block device nor an image";
	return false;
}

/**
 * identify - find out whether a device is a cache or a write log
 * @path: a block device or an image; nothing is printed about it
 * @identity: filled in
 *
 * Return: false if it can't be read: @identity->why says why, else errno.
 */
bool identify(const char *path, struct identity *identity)
{
	static char supers[SUPERS] __attribute((aligned(PS_PAGE_SIZE)));
	bool good;
	int fd, err;

	*identity = (struct identity){ };
	if (!is_readable(path, identity))
		return false;
	fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0)
		return false;
	good = read_supers(fd, supers, &identity->why);
	err = errno;
	if (good)
		judge(supers, size_of(fd), identity);
	close(fd);
	errno = err;
	return good;
}

static bool has_dax(const char *disk)
{
	char path[PATH_MAX], dax[8];

	/* A partition has the queue of its disk. */
	return (kernel_read(kernel_path(path, "/sys/class/block/%s/queue/dax", disk), dax, sizeof(dax)) ||
		kernel_read(kernel_path(path, "/sys/class/block/%s/../queue/dax", disk), dax, sizeof(dax))) &&
	       !strcmp(dax, "1");
}

/* A read of a suspended device would wait until the device is resumed. */
static bool is_suspended(const char *disk)
{
	char path[PATH_MAX], text[8];

	return kernel_read(kernel_path(path, "/sys/class/block/%s/dm/suspended", disk), text, sizeof(text)) &&
	       strcmp(text, "0");
}

/* Returns whether a disk holds a cache that could be mounted. */
static bool has_cache(const char *disk, char path[PATH_MAX], struct identity *identity)
{
	char file[PATH_MAX], numbers[32];

	/*
	 * A mapped device over all of @disk has the same superblocks; of the two, it is the one to be
	 * used.
	 */
	if (!has_dax(disk) || disk_holder(disk, NULL, NULL) || is_suspended(disk) ||
	    !kernel_read(kernel_path(file, "/sys/class/block/%s/dev", disk), numbers, sizeof(numbers)))
		return false;
	return disk_path(numbers, path) && identify(path, identity) && identity->type &&
	       !strcmp(identity->type, TYPE_CACHE);
}

struct walk {
	cache_fn fn;
	void *arg;
	bool ended;
};

static void visit(void *arg, const char *disk)
{
	struct identity identity;
	struct walk *walk = arg;
	char path[PATH_MAX];

	if (!walk->ended && has_cache(disk, path, &identity))
		walk->ended = !walk->fn(walk->arg, disk, path, &identity);
}

/**
 * caches_each - call a function for every cache, mounted or not
 * @fn: called with the kernel's name of the device, its path and its identity; ends the walk when it
 *      returns false
 * @arg: passed to @fn
 *
 * Devices that can't be read are left out.
 */
void caches_each(cache_fn fn, void *arg)
{
	names_in("/sys/class/block", visit, &(struct walk){ .fn = fn, .arg = arg });
}

struct search {
	const char *uuid;
	char *path, *other;
	enum found found;
};

static bool compare(void *arg, const char *disk, const char *path, const struct identity *identity)
{
	struct search *search = arg;

	(void)disk;
	if (strcasecmp(identity->uuid, search->uuid))
		return true;
	snprintf(search->found ? search->other : search->path, PATH_MAX, "%s", path);
	return ++search->found != FOUND_SEVERAL;
}

/**
 * find_cache - find the cache with a UUID, whether or not udev and libblkid know it
 * @uuid: as text, in upper or lower case
 * @path: set to the device, if there is one
 * @other: set to a second device, if there are several
 */
enum found find_cache(const char *uuid, char path[PATH_MAX], char other[PATH_MAX])
{
	struct search search = { .uuid = uuid, .path = path, .other = other };

	caches_each(compare, &search);
	return search.found;
}
