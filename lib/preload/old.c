// SPDX-License-Identifier: GPL-2.0-only
/*
 * The names that stat(2) and its like have in programs built for a glibc before 2.33. Wheels of PyPI are such
 * programs. x86-64 has one layout of struct stat, and 0 and 1 both ask for it.
 */
#include <errno.h>
#include <stdbool.h>
#include <sys/stat.h>

#include "real.h"

#define MAX_VERSION	1

/* Returns whether the caller's struct stat is the one that there is. */
static bool is_known(int version)
{
	if (version >= 0 && version <= MAX_VERSION)
		return true;
	errno = EINVAL;
	return false;
}

CALL int __xstat(int version, const char *path, struct stat *st)
{
	return is_known(version) ? stat(path, st) : -1;
}

CALL int __xstat64(int version, const char *path, struct stat64 *st)
	SAME_AS("__xstat");

CALL int __lxstat(int version, const char *path, struct stat *st)
{
	return is_known(version) ? lstat(path, st) : -1;
}

CALL int __lxstat64(int version, const char *path, struct stat64 *st)
	SAME_AS("__lxstat");

CALL int __fxstat(int version, int fd, struct stat *st)
{
	return is_known(version) ? fstat(fd, st) : -1;
}

CALL int __fxstat64(int version, int fd, struct stat64 *st)
	SAME_AS("__fxstat");

CALL int __fxstatat(int version, int directory, const char *path, struct stat *st, int flags)
{
	return is_known(version) ? fstatat(directory, path, st, flags) : -1;
}

CALL int __fxstatat64(int version, int directory, const char *path, struct stat64 *st, int flags)
	SAME_AS("__fxstatat");
