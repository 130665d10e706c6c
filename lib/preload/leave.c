// SPDX-License-Identifier: GPL-2.0-only
/*
 * Calls that a log can't serve: the descriptor is left, and the kernel does them.
 */
#include <aio.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/sendfile.h>
#include <sys/uio.h>
#include <unistd.h>

#include "real.h"
#include "table.h"

CALL ssize_t pwrite(int fd, const void *data, size_t length, off_t offset)
{
	leave(fd);
	return REAL(pwrite)(fd, data, length, offset);
}

CALL ssize_t pwrite64(int fd, const void *data, size_t length, off64_t offset)
	SAME_AS("pwrite");

CALL ssize_t pwritev(int fd, const struct iovec *parts, int n, off_t offset)
{
	leave(fd);
	return REAL(pwritev)(fd, parts, n, offset);
}

CALL ssize_t pwritev64(int fd, const struct iovec *parts, int n, off64_t offset)
	SAME_AS("pwritev");

CALL ssize_t pwritev2(int fd, const struct iovec *parts, int n, off_t offset, int flags)
{
	leave(fd);
	return REAL(pwritev2)(fd, parts, n, offset, flags);
}

CALL ssize_t pwritev64v2(int fd, const struct iovec *parts, int n, off64_t offset, int flags)
	SAME_AS("pwritev2");

CALL int fallocate(int fd, int mode, off_t offset, off_t length)
{
	leave(fd);
	return REAL(fallocate)(fd, mode, offset, length);
}

CALL int fallocate64(int fd, int mode, off64_t offset, off64_t length)
	SAME_AS("fallocate");

CALL int posix_fallocate(int fd, off_t offset, off_t length)
{
	leave(fd);
	return REAL(posix_fallocate)(fd, offset, length);
}

CALL int posix_fallocate64(int fd, off64_t offset, off64_t length)
	SAME_AS("posix_fallocate");

CALL ssize_t sendfile(int out, int in, off_t *offset, size_t length)
{
	leave(out);
	return REAL(sendfile)(out, in, offset, length);
}

CALL ssize_t sendfile64(int out, int in, off64_t *offset, size_t length)
	SAME_AS("sendfile");

CALL ssize_t splice(int in, off64_t *in_offset, int out, off64_t *out_offset, size_t length,
		    unsigned int flags)
{
	leave(out);
	return REAL(splice)(in, in_offset, out, out_offset, length, flags);
}

CALL ssize_t copy_file_range(int in, off64_t *in_offset, int out, off64_t *out_offset, size_t length,
			     unsigned int flags)
{
	leave(out);
	return REAL(copy_file_range)(in, in_offset, out, out_offset, length, flags);
}

/* Two descriptors have one position. */
CALL int dup(int fd)
{
	leave(fd);
	return REAL(dup)(fd);
}

/* glibc's threads for asynchronous writes use calls inside of libc. */
CALL int aio_write(struct aiocb *control)
{
	leave(control->aio_fildes);
	return REAL(aio_write)(control);
}

CALL int aio_write64(struct aiocb64 *control)
{
	return aio_write((struct aiocb *)control);
}

CALL int lio_listio(int mode, struct aiocb *const list[restrict], int n, struct sigevent *restrict event)
{
	for (int i = 0; i < n; i++)
		if (list[i] && list[i]->aio_lio_opcode == LIO_WRITE)
			leave(list[i]->aio_fildes);
	return REAL(lio_listio)(mode, list, n, event);
}

CALL int lio_listio64(int mode, struct aiocb64 *const list[restrict], int n, struct sigevent *restrict event)
{
	return lio_listio(mode, (struct aiocb *const *)list, n, event);
}

/* The new descriptor is closed by the call. */
static void leave_both(int fd, int new)
{
	struct entry *entry = fd == new ? NULL : entry_find(new);

	leave(fd);
	if (fd != new)
		leave_own(new);
	if (entry && entry->process == getpid()) {
		leave(new);
		entry_forget(entry);
	}
}

CALL int dup2(int fd, int new)
{
	leave_both(fd, new);
	return REAL(dup2)(fd, new);
}

CALL int dup3(int fd, int new, int flags)
{
	leave_both(fd, new);
	return REAL(dup3)(fd, new, flags);
}

/* A log has a lock on its file itself. A lock of the program on the whole file would wait for that one. */
static bool is_lock(int command)
{
	return command == F_SETLK || command == F_SETLKW || command == F_GETLK || command == F_OFD_SETLK ||
	       command == F_OFD_SETLKW || command == F_OFD_GETLK;
}

CALL int lockf(int fd, int command, off_t length)
{
	leave(fd);
	return REAL(lockf)(fd, command, length);
}

CALL int lockf64(int fd, int command, off64_t length)
	SAME_AS("lockf");

CALL int fcntl(int fd, int command, ...)
{
	va_list arguments;
	void *argument;

	va_start(arguments, command);
	argument = va_arg(arguments, void *);
	va_end(arguments);
	if (command == F_DUPFD || command == F_DUPFD_CLOEXEC || command == F_SETFL || is_lock(command) ||
	    (command == F_SETFD && !((uintptr_t)argument & FD_CLOEXEC)))
		leave(fd);
	return REAL(fcntl)(fd, command, argument);
}

CALL int fcntl64(int fd, int command, ...)
	SAME_AS("fcntl");

/* Streams and formatted writes use calls inside of libc. */
CALL FILE *fdopen(int fd, const char *mode)
{
	leave(fd);
	return REAL(fdopen)(fd, mode);
}

CALL int vdprintf(int fd, const char *restrict format, va_list arguments)
{
	leave(fd);
	return REAL(vdprintf)(fd, format, arguments);
}

CALL int dprintf(int fd, const char *restrict format, ...)
{
	va_list arguments;
	int ret;

	va_start(arguments, format);
	ret = vdprintf(fd, format, arguments);
	va_end(arguments);
	return ret;
}

CALL int __vdprintf_chk(int fd, int flag, const char *format, va_list arguments)
{
	(void)flag;
	return vdprintf(fd, format, arguments);
}

CALL int __dprintf_chk(int fd, int flag, const char *format, ...)
{
	va_list arguments;
	int ret;

	(void)flag;
	va_start(arguments, format);
	ret = vdprintf(fd, format, arguments);
	va_end(arguments);
	return ret;
}
