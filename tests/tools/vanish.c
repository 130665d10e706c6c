// SPDX-License-Identifier: GPL-2.0-only
/*
 * A library to preload. The mapped device is gone from the $VANISH_AT-th request for a status or a table on.
 */
#include <errno.h>
#include <linux/dm-ioctl.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

int ioctl(int fd, unsigned long request, ...)
{
	static int asked;
	__builtin_va_list args;
	void *arg;

	__builtin_va_start(args, request);
	arg = __builtin_va_arg(args, void *);
	__builtin_va_end(args);
	if (request == DM_TABLE_STATUS && ++asked >= atoi(getenv("VANISH_AT"))) {
		errno = ENXIO;
		return -1;
	}
	return syscall(SYS_ioctl, fd, request, arg);
}
