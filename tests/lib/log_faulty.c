// SPDX-License-Identifier: GPL-2.0-only
/*
 * A library for LD_PRELOAD, for test_log.py and test_log_preload.py. LOG_FAULT says what fails:
 *
 *   fdatasync	the second fdatasync(2) of the process, as it does once if storage has refused a write; says so on
 *		standard output
 *   thread	each pthread_create(3), as where no more threads are allowed
 *   fopen	nothing, but each fopen(3) takes 400 milliseconds more
 */
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static int is(const char *fault)
{
	return !strcmp(getenv("LOG_FAULT"), fault);
}

int fdatasync(int fd)
{
	static int calls;

	if (!is("fdatasync") || __atomic_add_fetch(&calls, 1, __ATOMIC_SEQ_CST) != 2)
		return (int)syscall(SYS_fdatasync, fd);
	errno = write(1, "failed\n", 7) == 7 ? EIO : EBADF;
	return -1;
}

int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*start)(void *), void *argument)
{
	__typeof__(pthread_create) *real = (__typeof__(pthread_create) *)dlsym(RTLD_NEXT, "pthread_create");

	return is("thread") ? EAGAIN : real(thread, attributes, start, argument);
}

FILE *fopen(const char *path, const char *mode)
{
	__typeof__(fopen) *real = (__typeof__(fopen) *)dlsym(RTLD_NEXT, "fopen");

	if (is("fopen"))
		usleep(400000);
	return real(path, mode);
}
