// SPDX-License-Identifier: GPL-2.0-only
/*
 * Calls that tell or change the size of a file, or a position in it: for the program a log ends at its end.
 */
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "claim.h"
#include "open.h"
#include "real.h"
#include "settings.h"
#include "table.h"

static int corrected(int ret, struct stat *st)
{
	off_t size;

	if (!ret && S_ISREG(st->st_mode) && entry_size(st->st_dev, st->st_ino, &size))
		st->st_size = size;
	return ret;
}

/* A file of an earlier run may have a size that is not its own. */
static void prepare(int directory, const char *path)
{
	struct stat st;

	if (settings_match(path) && !REAL(fstatat)(directory, path, &st, 0) &&
	    !entry_of_file(st.st_dev, st.st_ino))
		open_prepare(directory, path, true, TO_READ);
}

CALL int fstat(int fd, struct stat *st)
{
	return corrected(REAL(fstat)(fd, st), st);
}

CALL int stat(const char *restrict path, struct stat *restrict st)
{
	prepare(AT_FDCWD, path);
	return corrected(REAL(stat)(path, st), st);
}

CALL int lstat(const char *restrict path, struct stat *restrict st)
{
	prepare(AT_FDCWD, path);
	return corrected(REAL(lstat)(path, st), st);
}

CALL int fstatat(int directory, const char *restrict path, struct stat *restrict st, int flags)
{
	prepare(directory, path);
	return corrected(REAL(fstatat)(directory, path, st, flags), st);
}

CALL int fstat64(int fd, struct stat64 *st)
{
	return fstat(fd, (struct stat *)st);
}

CALL int stat64(const char *restrict path, struct stat64 *restrict st)
{
	return stat(path, (struct stat *)st);
}

CALL int lstat64(const char *restrict path, struct stat64 *restrict st)
{
	return lstat(path, (struct stat *)st);
}

CALL int fstatat64(int directory, const char *restrict path, struct stat64 *restrict st, int flags)
{
	return fstatat(directory, path, (struct stat *)st, flags);
}

CALL int statx(int directory, const char *restrict path, int flags, unsigned int mask,
	       struct statx *restrict st)
{
	int ret;
	off_t size;

	prepare(directory, path);
	ret = REAL(statx)(directory, path, flags, mask | STATX_INO, st);
	if (!ret && S_ISREG(st->stx_mode) &&
	    entry_size(makedev(st->stx_dev_major, st->stx_dev_minor), st->stx_ino, &size))
		st->stx_size = (__u64)size;
	return ret;
}

/* Asks for a position, or moves to the end: -1 if it is another seek. The caller holds the entry's mutex. */
static off_t seek(struct entry *entry, off_t offset, int whence)
{
	off_t end;

	if (offset || (whence != SEEK_CUR && whence != SEEK_END) || !entry_end(entry, &end))
		return -1;
	if (whence == SEEK_END)
		entry->position = end;
	return entry->position;
}

CALL off_t lseek(int fd, off_t offset, int whence)
{
	struct entry *entry = entry_find(fd);
	off_t position;

	if (!entry)
		return REAL(lseek)(fd, offset, whence);
	pthread_mutex_lock(&entry->mutex);
	position = seek(entry, offset, whence);
	if (position < 0) {
		entry_settle(entry);
		if (entry->log && entry->claimed)
			REAL(lseek)(fd, entry->position, SEEK_SET);
		position = REAL(lseek)(fd, offset, whence);
		if (position >= 0)
			entry->position = position;
	}
	pthread_mutex_unlock(&entry->mutex);
	return position;
}

CALL off64_t lseek64(int fd, off64_t offset, int whence)
	SAME_AS("lseek");

/* Before the file is cut by the kernel. The caller holds the entry's mutex. */
static void prepare_cut(struct entry *entry)
{
	if (entry->appends)
		entry_settle(entry);	/* the next write is at the end, wherever that is then */
	else
		entry_leave(entry);
}

CALL int ftruncate(int fd, off_t length)
{
	struct entry *entry = entry_find(fd);
	int ret;

	if (!entry)
		return REAL(ftruncate)(fd, length);
	pthread_mutex_lock(&entry->mutex);
	prepare_cut(entry);
	if (entry_is_parents(entry)) {
		errno = EIO;
		ret = -1;
	} else {
		ret = REAL(ftruncate)(fd, length);
	}
	pthread_mutex_unlock(&entry->mutex);
	return ret;
}

CALL int ftruncate64(int fd, off64_t length)
	SAME_AS("ftruncate");

/* No append comes between: it would map the file that is cut. */
static int cut(struct entry *entry, const struct stat *st, const char *path, off_t length)
{
	int ret = -1;
	bool still;

	pthread_mutex_lock(&entry->mutex);
	still = entry_is_of(entry, st->st_dev, st->st_ino);
	if (still)
		prepare_cut(entry);
	if (still && entry_is_parents(entry))
		errno = EBUSY;
	else
		ret = REAL(truncate)(path, length);
	pthread_mutex_unlock(&entry->mutex);
	return ret;
}

CALL int truncate(const char *path, off_t length)
{
	struct stat st;
	struct entry *entry = entry_of_path(AT_FDCWD, path, &st);
	int err;

	if (entry)
		return cut(entry, &st, path, length);
	err = settings_match(path) ? open_prepare(AT_FDCWD, path, true, TO_WRITE) : 0;
	if (!err)
		return REAL(truncate)(path, length);
	errno = err;
	return -1;
}

CALL int truncate64(const char *path, off64_t length)
	SAME_AS("truncate");
