/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What several checks read: block devices, mounts, lines of fstab, settings of units.
 *
 * With FOREBAY_SYSROOT set, all files and devices are looked for below that folder, so that tests can show
 * machines that don't exist.
 */
#ifndef FOREBAY_TOOLS_MACHINE_H
#define FOREBAY_TOOLS_MACHINE_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "device/identity.h"
#include "sys/mounts.h"

struct libmnt_fs;
struct libmnt_table;

struct disk {
	char name[NAME_MAX + 1];	/* as in /sys/class/block */
	char path[NAME_MAX + 16];	/* the node in /dev, in messages and commands */
	dev_t rdev;
	bool dax;
	bool held;			/* a mapped device or an array uses it */
	bool mounted;			/* it is the cache of a mount */
	int error;			/* errno: it has DAX, but could not be identified */
	struct identity identity;	/* only of a disk with DAX */
};

struct machine {
	struct forebay_mounts mounts;
	struct libmnt_table *fstab;	/* NULL: there is none, or it can't be read */
	int fstab_error;		/* errno: why not */
	struct disk *disks;
	size_t nr_disks;
};

typedef void (*line_fn)(void *arg, struct libmnt_fs *line);

bool machine_read(struct machine *machine);
void machine_free(struct machine *machine);
const struct disk *machine_disk(const struct machine *machine, dev_t rdev);
void machine_fstab(const struct machine *machine, line_fn fn, void *arg);
struct libmnt_fs *lower_mount(const struct machine *machine, const char *path);
const char *node(char path[PATH_MAX], const struct disk *disk);
bool exists(const char *path);
bool is_forebay(struct libmnt_fs *line);
bool has_option(struct libmnt_fs *line, const char *name);
bool option_value(struct libmnt_fs *line, const char *name, char *value, size_t size);

#endif
