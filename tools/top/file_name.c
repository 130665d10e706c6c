// SPDX-License-Identifier: GPL-2.0-only
/*
 * The name of a file that a process has made durable, of which the kernel tells the inode number.
 *
 * The process mostly has the file open still, so /proc/PID/fd says the name. Nothing else knows it without a
 * search through the whole file system, so a file that was closed is shown as its mount and inode number.
 */
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "callers.h"
#include "file_name.h"
#include "sys/mounts.h"

/* Asks no server if the file is on a network's file system. */
static bool is_open_as(int folder, const char *fd, const struct caller *caller)
{
	struct statx found;

	return !statx(folder, fd, AT_STATX_DONT_SYNC, STATX_INO, &found) && found.stx_ino == caller->inode &&
	       makedev(found.stx_dev_major, found.stx_dev_minor) == caller->dev;
}

static bool find_open(const struct caller *caller, char *name, size_t size)
{
	bool found = false;
	char path[32];
	struct dirent *entry;
	ssize_t length;
	DIR *folder;

	snprintf(path, sizeof(path), "/proc/%d/fd", caller->pid);
	folder = opendir(path);
	while (folder && !found && (entry = readdir(folder))) {
		if (entry->d_name[0] == '.' || !is_open_as(dirfd(folder), entry->d_name, caller))
			continue;
		length = readlinkat(dirfd(folder), entry->d_name, name, size - 1);
		found = length > 0;
		if (found)
			name[length] = '\0';
	}
	if (folder)
		closedir(folder);
	return found;
}

/**
 * file_name - what to call a caller's file
 * @caller: has dev, inode and pid
 * @name: filled in: the path, or the mount and the inode number
 * @size: of @name
 */
void file_name(const struct caller *caller, char *name, size_t size)
{
	char *mount;

	if (find_open(caller, name, size))
		return;
	mount = mount_of_device(caller->dev, NULL);
	snprintf(name, size, "%s: inode %llu", mount ?: "?", (unsigned long long)caller->inode);
	free(mount);
}
