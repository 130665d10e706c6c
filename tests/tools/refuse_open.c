// SPDX-License-Identifier: GPL-2.0-only
/*
 * A library to preload. The file $REFUSE_OPEN can't be opened, as in a container whose rules leave it out.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

int open64(const char *path, int flags, ...)
{
	int (*real)(const char *, int, ...) = dlsym(RTLD_NEXT, "open64");
	const char *refused = getenv("REFUSE_OPEN");
	va_list args;
	int mode;

	if (refused && !strcmp(path, refused)) {
		errno = EPERM;
		return -1;
	}
	va_start(args, flags);
	mode = va_arg(args, int);
	va_end(args);
	return real(path, flags, mode);
}
