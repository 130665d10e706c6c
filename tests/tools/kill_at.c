// SPDX-License-Identifier: GPL-2.0-only
/*
 * A library to preload. The program is killed right before the $KILL_AT-th call that writes to a file or
 * makes stores to a mapping durable.
 */
#define _GNU_SOURCE
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

static void count(void)
{
	static int calls;

	if (++calls == atoi(getenv("KILL_AT")))
		kill(getpid(), SIGKILL);
}

int msync(void *addr, size_t len, int flags)
{
	count();
	return (int)syscall(SYS_msync, addr, len, flags);
}

ssize_t write(int fd, const void *bytes, size_t len)
{
	if (fd > STDERR_FILENO)
		count();
	return syscall(SYS_write, fd, bytes, len);
}
