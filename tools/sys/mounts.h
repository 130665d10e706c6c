/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The forebay mounts that this process can see, and where a block device is mounted.
 */
#ifndef FOREBAY_TOOLS_MOUNTS_H
#define FOREBAY_TOOLS_MOUNTS_H

#include <limits.h>
#include <stdbool.h>
#include <sys/types.h>

struct libmnt_table;

/* One line of mountinfo; a file system bound to two places has two. */
struct forebay_mount {
	int id;
	const char *target;		/* the mount point */
	const char *lower;		/* the directory below */
	char cache[NAME_MAX + 1];	/* the kernel's name of the cache device */
};

struct forebay_mounts {
	struct libmnt_table *table;	/* all of mountinfo; holds the strings */
	struct forebay_mount *mount;
	int n;
};

bool mounts_look(struct forebay_mounts *mounts);
bool mounts_read(struct forebay_mounts *mounts);
void mounts_free(struct forebay_mounts *mounts);
const struct forebay_mount *mount_of_cache(const struct forebay_mounts *mounts, const char *cache);
const struct forebay_mount *mount_of_path(const struct forebay_mounts *mounts, const char *path);
char *mount_of_device(dev_t rdev, char **type);

#endif
