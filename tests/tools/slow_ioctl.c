// SPDX-License-Identifier: GPL-2.0-only
/*
 * A library to preload. Every file seems to be on a forebay mount, and the module forebay-emu seems to be loaded.
 * An ioctl takes more than two seconds, and fails with the errno $SLOW_IOCTL; 0: it succeeds.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "../../include/uapi/linux/forebay.h"

int fstatfs64(int fd, struct statfs64 *fs)
{
	(void)fd;
	*fs = (struct statfs64){ .f_type = FOREBAY_SUPER_MAGIC };
	return 0;
}

/* Without the mode: only for files that are there. */
int open64(const char *path, int flags, ...)
{
	const char *opened = strcmp(path, "/dev/forebay-emu-control") ? path : "/dev/null";

	return (int)syscall(SYS_openat, AT_FDCWD, opened, flags, 0);
}

int ioctl(int fd, unsigned long request, ...)
{
	const char *err = getenv("SLOW_IOCTL");

	(void)fd;
	(void)request;
	nanosleep(&(struct timespec){ .tv_sec = 2, .tv_nsec = 300000000 }, NULL);
	errno = err ? atoi(err) : 0;
	return errno ? -1 : 0;
}
