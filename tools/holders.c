// SPDX-License-Identifier: GPL-2.0-only
/*
 * What the kernel says of who has been made of a block device: arrays, mapped devices.
 */
#include <dirent.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "holders.h"
#include "message.h"
#include "sysfs.h"

typedef bool (*holder_fn)(void *arg, const char *holder);

/* The first for which @is_it says so. */
static bool find(const char *disk, holder_fn is_it, void *arg)
{
	char folder[PATH_MAX];
	struct dirent *entry;
	bool found = false;
	DIR *dir = opendir(kernel_path(folder, "/sys/class/block/%s/holders", disk));

	while (dir && !found && (entry = readdir(dir)))
		found = entry->d_name[0] != '.' && is_it(arg, entry->d_name);
	if (dir)
		closedir(dir);
	return found;
}

/* What device-mapper calls it; false: it is none of its devices. */
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
 * mapped_meant - the mapped device with some target that a word stands for
 * @word: its name, any node of it, or a block device that it was made of; tried in this order
 * @kind: of target
 * @name: of the mapped device
 * @mapped: what its target says
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
	       (is_of_kind(&search, disk) || find(disk, is_of_kind, &search));
}

static bool say(void *arg, const char *holder)
{
	static const struct mapped_kind *const kinds[] = { &writelog_kind, &transit_kind };
	const char *path = arg;
	char name[NAME_MAX + 1];
	struct mapped mapped;

	if (!name_of(holder, name)) {
		problem("%s is used by /dev/%s", path, holder);
		advice("`lsblk %s` shows what is made of it. That must go first.", path);
		return true;
	}
	problem("%s is used by /dev/mapper/%s (%s)", path, name, holder);
	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
		const char *noun = kinds[i]->noun;

		if (!mapped_read(name, kinds[i], &mapped))
			continue;
		advice("`forebay %s status %s` shows it, `forebay %s remove %s` takes it away.", noun, name,
		       noun, name);
		return true;
	}
	advice("`dmsetup table %s` shows what it is. It must go first.", name);
	return true;
}

/**
 * say_holder - say that something was made of a block device
 * @path: how the user calls the device
 * @disk: how the kernel does
 *
 * Return: false, and no message, if nothing was.
 */
bool say_holder(const char *path, const char *disk)
{
	return find(disk, say, (void *)path);
}
