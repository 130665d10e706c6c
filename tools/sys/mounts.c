// SPDX-License-Identifier: GPL-2.0-only
/*
 * Finds forebay mounts.
 *
 * The kernel shows a mount's cache as it stood in the mount option, which may be a link. So mounts,
 * devices and /sys/fs/forebay are compared by the kernel's name of the device.
 */
#include <errno.h>
#include <fcntl.h>
#include <libmount.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/message.h"
#include "mounts.h"
#include "sysfs.h"

static struct libmnt_table *read_mountinfo(void)
{
	char path[PATH_MAX];

	return mnt_new_table_from_file(kernel_path(path, "/proc/self/mountinfo"));
}

static void cache_name(struct libmnt_fs *fs, char name[NAME_MAX + 1])
{
	char path[PATH_MAX], *value;
	struct stat st;
	size_t len;

	name[0] = '\0';
	if (mnt_fs_get_option(fs, "cache", &value, &len) || !value || len >= sizeof(path))
		return;
	snprintf(path, sizeof(path), "%.*s", (int)len, value);
	if (stat(path, &st) || !S_ISBLK(st.st_mode) || !disk_name(st.st_rdev, name))
		snprintf(name, NAME_MAX + 1, "%s", basename(path));
}

static void add(struct forebay_mounts *mounts, struct libmnt_fs *fs)
{
	struct forebay_mount *mount = &mounts->mount[mounts->n++];

	mount->id = mnt_fs_get_id(fs);
	mount->target = mnt_fs_get_target(fs) ?: "";
	mount->lower = mnt_fs_get_source(fs) ?: "";
	cache_name(fs, mount->cache);
}

static bool collect(struct forebay_mounts *mounts, struct libmnt_iter *iter)
{
	struct libmnt_fs *fs;

	mounts->mount = calloc(mnt_table_get_nents(mounts->table) + 1, sizeof(*mounts->mount));
	if (!mounts->mount || !iter)
		return false;
	while (!mnt_table_next_fs(mounts->table, iter, &fs))
		if (mnt_fs_match_fstype(fs, "forebay"))
			add(mounts, fs);
	return true;
}

/**
 * mounts_look - find all forebay mounts that this process can see, for a verb that can do without
 * @mounts: filled in, with none on failure; the caller calls mounts_free()
 *
 * Return: false if mountinfo cannot be read.
 */
bool mounts_look(struct forebay_mounts *mounts)
{
	struct libmnt_iter *iter = mnt_new_iter(MNT_ITER_FORWARD);
	bool good;

	*mounts = (struct forebay_mounts){ .table = read_mountinfo() };
	good = mounts->table && collect(mounts, iter);
	mnt_free_iter(iter);
	if (!good) {
		mounts_free(mounts);
		*mounts = (struct forebay_mounts){ };
	}
	return good;
}

/**
 * mounts_read - find all forebay mounts that this process can see
 * @mounts: filled in; the caller calls mounts_free()
 *
 * Return: false, after a message, if mountinfo cannot be read.
 */
bool mounts_read(struct forebay_mounts *mounts)
{
	if (mounts_look(mounts))
		return true;
	problem("cannot read what is mounted (/proc/self/mountinfo)");
	advice("Is proc mounted? Run: mount --types=proc none /proc");
	return false;
}

/**
 * mounts_free - release what mounts_read() found
 * @mounts: from there
 */
void mounts_free(struct forebay_mounts *mounts)
{
	free(mounts->mount);
	mnt_unref_table(mounts->table);
}

/**
 * mount_of_cache - the first mount that uses a cache device
 * @mounts: from mounts_read()
 * @cache: the kernel's name of the device
 *
 * Return: NULL if there is none that this process can see.
 */
const struct forebay_mount *mount_of_cache(const struct forebay_mounts *mounts, const char *cache)
{
	for (int i = 0; i < mounts->n; i++)
		if (!strcmp(mounts->mount[i].cache, cache))
			return &mounts->mount[i];
	return NULL;
}

static const struct forebay_mount *mount_by_target(const struct forebay_mounts *mounts,
						   const char *path)
{
	char *real = realpath(path, NULL);
	const struct forebay_mount *found = NULL;

	for (int i = 0; i < mounts->n; i++)
		if (!strcmp(mounts->mount[i].target, real ?: path))
			found = &mounts->mount[i];
	free(real);
	return found;
}

/**
 * mount_of_path - the forebay mount that a file or directory is on
 * @mounts: from mounts_read()
 * @path: a mount point, or anything below one
 *
 * Return: NULL if it is on none.
 */
const struct forebay_mount *mount_of_path(const struct forebay_mounts *mounts, const char *path)
{
	struct statx stx;

	if (!statx(AT_FDCWD, path, AT_NO_AUTOMOUNT, STATX_MNT_ID, &stx) &&
	    stx.stx_mask & STATX_MNT_ID)
		for (int i = 0; i < mounts->n; i++)
			if ((__u64)mounts->mount[i].id == stx.stx_mnt_id)
				return &mounts->mount[i];
	return mount_by_target(mounts, path);
}

/**
 * mount_of_device - where a block device is mounted
 * @rdev: its number
 * @type: the file system's type, for the caller to free; NULL: not wanted
 *
 * Return: the first mount point, for the caller to free; NULL if there is none.
 */
char *mount_of_device(dev_t rdev, char **type)
{
	struct libmnt_table *table = read_mountinfo();
	struct libmnt_fs *fs = table ? mnt_table_find_devno(table, rdev, MNT_ITER_FORWARD) : NULL;
	char *target = fs ? strdup(mnt_fs_get_target(fs)) : NULL;

	if (target && type)
		*type = strdup(mnt_fs_get_fstype(fs) ?: "");
	mnt_unref_table(table);
	return target;
}
