// SPDX-License-Identifier: GPL-2.0-only
/*
 * Gathers what several checks read: block devices, mounts, lines of fstab.
 */
#include <errno.h>
#include <libmount.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/message.h"
#include "sys/sysfs.h"
#include "machine.h"

/**
 * node - where a disk is opened
 * @path: where to put it
 * @disk: which
 *
 * Return: @path.
 */
const char *node(char path[PATH_MAX], const struct disk *disk)
{
	return kernel_path(path, "%s", disk->path);
}

/**
 * exists - whether a file exists
 * @path: absolute
 */
bool exists(const char *path)
{
	char file[PATH_MAX];

	return !access(kernel_path(file, "%s", path), F_OK);
}

static void identify_disk(struct disk *disk)
{
	char text[32], path[PATH_MAX];
	uint64_t pages;

	disk->held = disk_holder(disk->name, NULL, NULL);
	disk->mounted = cache_attribute(disk->name, "pages_total", &pages);
	disk->dax = disk_attribute(disk->rdev, "queue/dax", text, sizeof(text)) && !strcmp(text, "1");
	/* A read of a suspended device would wait until the device is resumed. */
	if (!disk->dax)
		return;
	if (disk_attribute(disk->rdev, "dm/suspended", text, sizeof(text)) && strcmp(text, "0"))
		return;
	if (!identify(node(path, disk), &disk->identity) && !disk->identity.why)
		disk->error = errno;
}

static void add_disk(void *arg, const char *name)
{
	char path[PATH_MAX], numbers[32], where[PATH_MAX];
	struct machine *machine = arg;
	unsigned int major, minor;
	struct disk *disks, *disk;

	if (!kernel_read(kernel_path(path, "/sys/class/block/%s/dev", name), numbers, sizeof(numbers)) ||
	    sscanf(numbers, "%u:%u", &major, &minor) != 2)
		return;
	disks = realloc(machine->disks, (machine->nr_disks + 1) * sizeof(*disks));
	if (!disks)
		return;
	machine->disks = disks;
	disk = &disks[machine->nr_disks++];
	*disk = (struct disk){ .rdev = makedev(major, minor) };
	snprintf(disk->name, sizeof(disk->name), "%s", name);
	disk_path(numbers, where);
	snprintf(disk->path, sizeof(disk->path), "%.*s", NAME_MAX + 15, where);
	identify_disk(disk);
}

/**
 * machine_read - gather what several checks read
 * @machine: filled in; the caller calls machine_free() if that succeeded
 *
 * Return: false, after a message, if devices or mounts can't be seen: nothing would be found then.
 */
bool machine_read(struct machine *machine)
{
	char path[PATH_MAX];

	*machine = (struct machine){ };
	if (!sysfs_is_there() || !mounts_read(&machine->mounts))
		return false;
	errno = 0;
	machine->fstab = mnt_new_table_from_file(kernel_path(path, "/etc/fstab"));
	if (!machine->fstab && errno != ENOENT)
		machine->fstab_error = errno ?: EINVAL;
	names_in("/sys/class/block", add_disk, machine);
	return true;
}

/**
 * machine_free - release what machine_read() gathered
 * @machine: from there
 */
void machine_free(struct machine *machine)
{
	mounts_free(&machine->mounts);
	mnt_unref_table(machine->fstab);
	free(machine->disks);
}

/**
 * machine_disk - the disk with a number
 * @machine: which
 * @rdev: number
 *
 * Return: NULL if there is none.
 */
const struct disk *machine_disk(const struct machine *machine, dev_t rdev)
{
	for (size_t i = 0; i < machine->nr_disks; i++)
		if (machine->disks[i].rdev == rdev)
			return &machine->disks[i];
	return NULL;
}

/* True if @path is the folder @top, or below it. */
static bool is_below(const char *path, const char *top)
{
	size_t len = strlen(top);

	if (len == 1)
		return *path == '/';
	return !strncmp(path, top, len) && (!path[len] || path[len] == '/');
}

/**
 * lower_mount - the mount that a lower directory is on
 * @machine: which
 * @path: of the directory
 *
 * A forebay mount may cover its own lower directory, so such mounts are passed over.
 *
 * Return: a line of mountinfo; NULL if there is none.
 */
struct libmnt_fs *lower_mount(const struct machine *machine, const char *path)
{
	struct libmnt_iter *iter = mnt_new_iter(MNT_ITER_FORWARD);
	struct libmnt_fs *line, *best = NULL;
	size_t longest = 0;

	while (iter && !mnt_table_next_fs(machine->mounts.table, iter, &line)) {
		const char *target = mnt_fs_get_target(line);

		if (!target || is_forebay(line) || !is_below(path, target) || strlen(target) < longest)
			continue;
		best = line;
		longest = strlen(target);
	}
	mnt_free_iter(iter);
	return best;
}

/**
 * machine_fstab - call a function for every line of fstab
 * @machine: which
 * @fn: called with each
 * @arg: passed to @fn
 */
void machine_fstab(const struct machine *machine, line_fn fn, void *arg)
{
	struct libmnt_iter *iter = mnt_new_iter(MNT_ITER_FORWARD);
	struct libmnt_fs *line;

	while (machine->fstab && iter && !mnt_table_next_fs(machine->fstab, iter, &line))
		fn(arg, line);
	mnt_free_iter(iter);
}

/**
 * is_forebay - whether a line of fstab or mountinfo is a forebay mount
 * @line: which
 */
bool is_forebay(struct libmnt_fs *line)
{
	return mnt_fs_match_fstype(line, "forebay");
}

/**
 * has_option - whether a line of fstab or mountinfo has an option
 * @line: which
 * @name: of the option, which may have a value
 */
bool has_option(struct libmnt_fs *line, const char *name)
{
	return !mnt_fs_get_option(line, name, NULL, NULL);
}

/**
 * option_value - the value of an option of a line of fstab or mountinfo
 * @line: which
 * @name: of the option
 * @value: set, without quotes
 * @size: of @value
 *
 * Return: false if there is no such option, or it has no value.
 */
bool option_value(struct libmnt_fs *line, const char *name, char *value, size_t size)
{
	char *text = NULL;
	size_t len = 0;

	if (mnt_fs_get_option(line, name, &text, &len) || !text)
		return false;
	if (len >= 2 && text[0] == '"' && text[len - 1] == '"') {
		text++;
		len -= 2;
	}
	snprintf(value, size, "%.*s", (int)len, text);
	return true;
}
