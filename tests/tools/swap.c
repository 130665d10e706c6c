// SPDX-License-Identifier: GPL-2.0-only
/*
 * A library to preload. Right before the file $SWAP_PATH is opened, $SWAP_WITH is renamed to it.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

int open64(const char *path, int flags, ...)
{
	int mode = 0;

	if (!strcmp(path, getenv("SWAP_PATH")))
		rename(getenv("SWAP_WITH"), path);
	if (flags & O_CREAT) {
		va_list args;

		va_start(args, flags);
		mode = va_arg(args, int);
		va_end(args);
	}
	return syscall(SYS_openat, AT_FDCWD, path, flags, mode);
}
