// SPDX-License-Identifier: GPL-2.0-only
/*
 * Looks for other descriptors of a file in this process: opened before for reading, for both, or inherited.
 * A log doesn't see what is written to them or read from them.
 */
#include "others.h"

#include <dirent.h>
#include <stdbool.h>
#include <stdlib.h>
#include <unistd.h>

#include "real.h"

/**
 * others_have - whether this process has the file open in another way
 * @fd: the descriptor that is known, or -1
 * @own: that of its log, or -1
 * @file: of the file
 *
 * Context: any thread.
 * Return: 1 if it has, 0 if not; -1 with errno if that can't be found out.
 */
int others_have(int fd, int own, const struct stat *file)
{
	DIR *list = opendir("/proc/self/fd");
	struct dirent *entry;
	bool found = false;
	struct stat st;

	if (!list)
		return -1;
	while (!found && (entry = readdir(list))) {
		int other = atoi(entry->d_name);

		if (entry->d_name[0] == '.' || other == fd || other == own || other == dirfd(list))
			continue;
		found = !REAL(fstat)(other, &st) && st.st_dev == file->st_dev && st.st_ino == file->st_ino;
	}
	closedir(list);
	return found;
}
