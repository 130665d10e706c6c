// SPDX-License-Identifier: GPL-2.0-only
/*
 * Files that the program has open when it starts, such as those of a shell's redirections. They are no logs.
 * But what a crash left of one is cut off, since the program's first write would get behind it.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "real.h"
#include "settings.h"
#include "table.h"

/* A position behind what was cut would leave zeros before the program's first write. */
static void cut(int fd, const char *path, off_t size)
{
	off_t end = table_recover(fd);

	if (end >= 0 && end < size && REAL(lseek)(fd, 0, SEEK_CUR) > end)
		REAL(lseek)(fd, end, SEEK_SET);
	if (end < 0 && errno == EBUSY && (REAL(fcntl)(fd, F_GETFL) & O_ACCMODE) != O_RDONLY)
		settings_say(path, "another process has this log open: nothing must be written to it");
}

static void look_at(int fd)
{
	char path[PATH_MAX];
	struct stat st;

	if (settings_match_descriptor(fd, path) && !REAL(fstat)(fd, &st) && S_ISREG(st.st_mode))
		cut(fd, path, st.st_size);
}

/* Other constructors have a priority and come first. */
__attribute__((constructor))
static void look_at_all(void)
{
	DIR *list = opendir("/proc/self/fd");
	struct dirent *entry;

	while (list && (entry = readdir(list)))
		if (entry->d_name[0] != '.' && atoi(entry->d_name) != dirfd(list))
			look_at(atoi(entry->d_name));
	if (list)
		closedir(list);
}
