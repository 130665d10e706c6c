// SPDX-License-Identifier: GPL-2.0-only
/*
 * What uses a block device: mounts, arrays, mapped devices. A user may also name a mapped device by what
 * is below it.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/message.h"
#include "base/shell.h"
#include "sys/mounts.h"
#include "sys/sysfs.h"
#include "holders.h"

/* The name in device-mapper of a disk; false: the disk is no mapped device. */
static bool name_of(const char *holder, char name[NAME_MAX + 1])
{
	char path[PATH_MAX];

	return kernel_read(kernel_path(path, "/sys/class/block/%s/dm/name", holder), name, NAME_MAX + 1);
}

struct search {
	const struct mapped_kind *kind;
	char *name;
	struct mapped *mapped;
};

static bool is_of_kind(void *arg, const char *disk)
{
	struct search *search = arg;

	return name_of(disk, search->name) && mapped_read(search->name, search->kind, search->mapped);
}

/**
 * mapped_meant - the mapped device that a word of the command line means
 * @word: its name, any node of it, or a block device below it; tried in this order
 * @kind: of target that the mapped device must have
 * @name: set to the name of the mapped device
 * @mapped: its status and table
 *
 * Return: false if there is none.
 */
bool mapped_meant(const char *word, const struct mapped_kind *kind, char name[NAME_MAX + 1],
		  struct mapped *mapped)
{
	struct search search = { .kind = kind, .name = name, .mapped = mapped };
	char disk[NAME_MAX + 1];
	struct stat st;

	snprintf(name, NAME_MAX + 1, "%s", mapped_name(word));
	if (!strchr(name, '/') && mapped_read(name, kind, mapped))
		return true;
	return !stat(word, &st) && S_ISBLK(st.st_mode) && disk_name(st.st_rdev, disk) &&
	       (is_of_kind(&search, disk) || disk_holder(disk, is_of_kind, &search));
}

static bool say(void *arg, const char *holder)
{
	static const struct mapped_kind *const kinds[] = { &writelog_kind, &transit_kind };
	const char *path = arg;
	char name[NAME_MAX + 1];
	struct mapped mapped;

	if (!name_of(holder, name)) {
		problem("%s is used by /dev/%s", path, holder);
		advice("`lsblk %s` shows what is made of it. Remove that first.", in_shell(path));
		return true;
	}
	problem("%s is used by /dev/mapper/%s (%s)", path, name, holder);
	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
		const char *noun = kinds[i]->noun;

		if (!mapped_read(name, kinds[i], &mapped))
			continue;
		advice("`forebay %s status %s` shows it, `forebay %s remove %s` removes it.", noun,
		       in_shell(name), noun, in_shell(name));
		return true;
	}
	advice("`dmsetup table %s` shows what it is. Remove it first.", in_shell(name));
	return true;
}

static bool say_holder(const char *path, const char *disk)
{
	return disk_holder(disk, say, (void *)path);
}

static bool say_mounted(const char *path, dev_t rdev)
{
	char *type = NULL, *target = mount_of_device(rdev, &type);
	bool mounted = target;

	if (mounted) {
		problem("%s is mounted on %s (%s)", path, target, type ?: "unknown");
		advice("Unmount it first, if you are sure: umount %s", in_shell(target));
	}
	free(target);
	free(type);
	return mounted;
}

static bool say_cache(const char *path, const char *disk)
{
	const struct forebay_mount *mount;
	struct forebay_mounts mounts;
	bool found = false;
	uint64_t pages;

	mounts_look(&mounts);
	mount = mount_of_cache(&mounts, disk);
	if (mount) {
		problem("%s is the cache of %s, which is mounted", path, mount->target);
		advice("`forebay status %s` shows it; or unmount first: umount %s",
		       in_shell(mount->target), in_shell(mount->target));
		found = true;
	} else if (cache_attribute(disk, "pages_total", &pages)) {
		problem("%s is the cache of a forebay mount that is not visible from here", path);
		advice("Another mount namespace (a container?) has it; unmount it there first.");
		found = true;
	}
	mounts_free(&mounts);
	return found;
}

/**
 * say_user - say what uses a block device
 * @path: its path, as the user typed it
 * @rdev: its number
 *
 * Return: false, and no message, if nothing is found that uses it.
 */
bool say_user(const char *path, dev_t rdev)
{
	char disk[NAME_MAX + 1];

	if (disk_name(rdev, disk) && (say_cache(path, disk) || say_holder(path, disk)))
		return true;
	return say_mounted(path, rdev);
}
