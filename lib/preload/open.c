// SPDX-License-Identifier: GPL-2.0-only
/*
 * Calls that open and close files. A file whose name matches, and a log of this process by any name, gets its
 * size before it is opened. If the name matches, and the file is opened for writing alone, and this process
 * doesn't have it open already, it becomes a log.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "claim.h"
#include "open.h"
#include "others.h"
#include "real.h"
#include "settings.h"
#include "table.h"

/* After these a file may still have what a crash left. After others no log can be made of it, either. */
static bool is_shortage(int err)
{
	return err == EMFILE || err == ENFILE || err == ENOMEM || err == EIO;
}

/*
 * Cuts what a crash left of a file: 0, or an errno; EBUSY: another description has its lock. A file that this
 * process has open was cut at that open. Another close of it would release the program's locks by fcntl(2).
 */
static int recover(int directory, const char *path, const struct stat *st)
{
	int have = others_have(-1, -1, st), fd = -1, err = 0;

	if (have > 0)
		return 0;
	if (!have)
		fd = REAL(openat)(directory, path, O_RDWR | O_CLOEXEC);
	if (fd < 0 || table_recover(fd) < 0)
		err = errno;
	if (fd >= 0)
		REAL(close)(fd);
	return is_shortage(err) || (err == EBUSY && fd >= 0) ? err : 0;
}

/**
 * open_prepare - cut what a crash left of a file, and leave the log if this process has it; errno stays
 * @directory: as for openat(2)
 * @path: any; a file that is neither named by the settings nor a log of this process stays as it is
 * @match: settings_match(@path)
 * @purpose: of what follows; a file that is read or written by another descriptor can't go on as a log
 *
 * Context: any thread; waits for storage.
 * Return: 0, or the errno with which the caller fails; EBUSY: another process has the log, and may write it.
 */
int open_prepare(int directory, const char *path, bool match, enum purpose purpose)
{
	struct entry *entry;
	int before = errno, err = 0;
	struct stat st;

	if (!(match || table_is_used()) || REAL(fstatat)(directory, path, &st, 0) || !S_ISREG(st.st_mode))
		goto out;
	entry = entry_of_file(st.st_dev, st.st_ino);
	if (!entry && match)
		err = recover(directory, path, &st);
	if (err == EBUSY) {
		entry = entry_of_file(st.st_dev, st.st_ino);	/* another thread has just made a log of it */
		err = entry || purpose == TO_READ ? 0 : EBUSY;
	}
	if (!entry)
		goto out;
	pthread_mutex_lock(&entry->mutex);
	if (entry_is_of(entry, st.st_dev, st.st_ino)) {
		err = purpose == TO_WRITE && entry_is_parents(entry) ? EBUSY : 0;
		entry_leave(entry);
	}
	pthread_mutex_unlock(&entry->mutex);
out:
	errno = before;
	return err;
}

/* Returns -1 with @err in errno. */
static int refuse(const char *path, int err)
{
	settings_say(path, err == EBUSY ? "another process has this log open" :
		     "can't cut off what a crash may have left");
	errno = err;
	return -1;
}

/* Another thread may have made a log of the file since open_prepare(). Returns @fd; errno stays. */
static int leave_others(int fd)
{
	struct entry *entry;
	struct stat st;

	if (REAL(fstat)(fd, &st))
		return fd;
	entry = entry_of_file(st.st_dev, st.st_ino);
	if (entry)
		entry_leave_file(entry, &st);
	return fd;
}

static int open_any(int directory, const char *path, int flags, mode_t mode)
{
	bool opens = !(flags & (O_PATH | O_DIRECTORY)) && !table_opens;
	bool match = opens && settings_match(path);
	bool writes = (flags & O_ACCMODE) != O_RDONLY;
	int fd, err = opens ? open_prepare(directory, path, match, writes ? TO_WRITE : TO_READ) : 0;

	if (err)
		return refuse(path, err);
	fd = REAL(openat)(directory, path, flags, mode);
	if (fd < 0 || !match)
		return fd;
	if ((flags & O_ACCMODE) != O_WRONLY || flags & O_DIRECT)
		return leave_others(fd);
	if (!entry_add(fd, flags))
		return fd;
	REAL(close)(fd);
	return refuse(path, EBUSY);
}

/* The argument after @flags. It stands there only if they say so. */
#define MODE_AFTER(flags) ({									\
	va_list arguments;									\
	mode_t mode = 0;									\
												\
	va_start(arguments, flags);								\
	if ((flags) & O_CREAT || ((flags) & O_TMPFILE) == O_TMPFILE)				\
		mode = va_arg(arguments, mode_t);						\
	va_end(arguments);									\
	mode;											\
})

CALL int open(const char *path, int flags, ...)
{
	return open_any(AT_FDCWD, path, flags, MODE_AFTER(flags));
}

CALL int open64(const char *path, int flags, ...)
	SAME_AS("open");

CALL int openat(int directory, const char *path, int flags, ...)
{
	return open_any(directory, path, flags, MODE_AFTER(flags));
}

CALL int openat64(int directory, const char *path, int flags, ...)
	SAME_AS("openat");

CALL int creat(const char *path, mode_t mode)
{
	return open_any(AT_FDCWD, path, O_WRONLY | O_CREAT | O_TRUNC, mode);
}

CALL int creat64(const char *path, mode_t mode)
	SAME_AS("creat");

/* What a compiler with checks makes of open() without a mode. */
CALL int __open_2(const char *path, int flags)
{
	return open_any(AT_FDCWD, path, flags, 0);
}

CALL int __open64_2(const char *path, int flags)
	SAME_AS("__open_2");

CALL int __openat_2(int directory, const char *path, int flags)
{
	return open_any(directory, path, flags, 0);
}

CALL int __openat64_2(int directory, const char *path, int flags)
	SAME_AS("__openat_2");

/* The stream reads and writes by calls inside of libc, which can't be replaced. */
static int prepare_stream(const char *path, const char *mode)
{
	bool writes = mode[0] != 'r' || strchr(mode, '+');
	int err = open_prepare(AT_FDCWD, path, settings_match(path), writes ? TO_WRITE : TO_READ);

	return err ? refuse(path, err) : 0;
}

/* The stream of prepare_stream(), once it is open. */
static FILE *opened(FILE *stream, const char *path)
{
	int err = errno;

	if (stream && settings_match(path))
		leave_others(fileno(stream));
	errno = err;
	return stream;
}

CALL FILE *fopen(const char *path, const char *mode)
{
	return prepare_stream(path, mode) ? NULL : opened(REAL(fopen)(path, mode), path);
}

CALL FILE *fopen64(const char *path, const char *mode)
	SAME_AS("fopen");

/* The descriptor is closed next; its number may then be another file's. */
static void forget(int fd)
{
	struct entry *entry = entry_find(fd);

	leave_own(fd);
	if (!entry || entry->process != getpid())
		return;
	leave(fd);
	entry_forget(entry);
}

CALL FILE *freopen(const char *restrict path, const char *restrict mode, FILE *restrict stream)
{
	int err = errno;

	forget(fileno(stream));
	errno = err;
	if (!prepare_stream(path, mode))
		return opened(REAL(freopen)(path, mode, stream), path);
	err = errno;
	REAL(fclose)(stream);
	errno = err;
	return NULL;
}

CALL FILE *freopen64(const char *restrict path, const char *restrict mode, FILE *restrict stream)
	SAME_AS("freopen");

CALL int close(int fd)
{
	forget(fd);
	return REAL(close)(fd);
}

CALL int fclose(FILE *stream)
{
	int err = errno;

	forget(fileno(stream));
	errno = err;
	return REAL(fclose)(stream);
}

static void forget_range(unsigned int first, unsigned int last)
{
	for (unsigned int fd = first; fd <= last && fd < MAX_FD; fd++)
		forget((int)fd);
}

CALL int close_range(unsigned int first, unsigned int last, int flags)
{
	if (!(flags & CLOSE_RANGE_CLOEXEC))
		forget_range(first, last);
	return REAL(close_range)(first, last, flags);
}

CALL void closefrom(int first)
{
	forget_range(first < 0 ? 0 : (unsigned int)first, MAX_FD);
	REAL(closefrom)(first);
}
