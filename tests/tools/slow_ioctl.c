// SPDX-License-Identifier: GPL-2.0-only
/*
 * A library to preload. Every file seems to be on a forebay mount. An ioctl takes more than two seconds, and
 * fails with the errno $SLOW_IOCTL; 0: it succeeds.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stdlib.h>
#include <sys/statfs.h>
#include <time.h>

#include "../../include/uapi/linux/forebay.h"

int fstatfs64(int fd, struct statfs64 *fs)
{
	(void)fd;
	*fs = (struct statfs64){ .f_type = FOREBAY_SUPER_MAGIC };
	return 0;
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
