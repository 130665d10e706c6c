// SPDX-License-Identifier: GPL-2.0-only
/*
 * Calls that append to a log and sync it.
 */
#include <errno.h>
#include <limits.h>
#include <sys/uio.h>
#include <unistd.h>

#include "claim.h"
#include "real.h"
#include "table.h"

/*
 * Appends if the descriptor is a log and its position is at the end. Returns false if the kernel is to write:
 * then the entry is left, and a lack of space is the kernel's to report.
 */
static bool append(struct entry *entry, const struct iovec *parts, int n, ssize_t *result)
{
	off_t total = 0;

	*result = -1;
	if (!entry->log)
		return false;
	if (!entry_claim(entry))
		return errno != 0;
	for (int i = 0; i < n; i++)
		total += (off_t)parts[i].iov_len;
	if ((!entry->appends && entry->position != forebay_log_end(entry->log)) ||
	    forebay_log_appendv(entry->log, parts, n)) {
		entry_leave(entry);
		return false;
	}
	entry->position = forebay_log_end(entry->log);
	if (!entry->syncs || !forebay_log_sync(entry->log))
		*result = total;
	return true;
}

CALL ssize_t writev(int fd, const struct iovec *parts, int n)
{
	struct entry *entry = entry_find(fd);
	ssize_t result = 0;
	int err = errno;
	bool done;

	if (!entry || n < 0 || n > IOV_MAX)
		return REAL(writev)(fd, parts, n);
	pthread_mutex_lock(&entry->mutex);
	done = append(entry, parts, n, &result);
	pthread_mutex_unlock(&entry->mutex);
	if (done && result < 0)
		return -1;
	errno = err;
	return done ? result : REAL(writev)(fd, parts, n);
}

CALL ssize_t write(int fd, const void *data, size_t length)
{
	struct iovec part = { .iov_base = (void *)data, .iov_len = length };

	return entry_find(fd) ? writev(fd, &part, 1) : REAL(write)(fd, data, length);
}

/* Takes the log for a sync, without the mutex: appends go on meanwhile. NULL: the kernel is to sync. */
static struct forebay_log *use(struct entry *entry, bool with_name)
{
	struct forebay_log *log = NULL;

	pthread_mutex_lock(&entry->mutex);
	if (entry->claimed && (entry->named || !with_name)) {
		log = entry->log;
		entry->users += !!log;
	}
	pthread_mutex_unlock(&entry->mutex);
	return log;
}

static void unuse(struct entry *entry)
{
	pthread_mutex_lock(&entry->mutex);
	if (!--entry->users)
		pthread_cond_broadcast(&entry->idle);
	pthread_mutex_unlock(&entry->mutex);
}

static int sync_log(struct entry *entry, struct forebay_log *log)
{
	int ret = forebay_log_sync(log);
	int err = errno;

	unuse(entry);
	errno = err;
	return ret;
}

CALL int fdatasync(int fd)
{
	struct entry *entry = entry_find(fd);
	struct forebay_log *log = entry ? use(entry, false) : NULL;

	return log ? sync_log(entry, log) : REAL(fdatasync)(fd);
}

/* The kernel makes the name durable; that needs to be done once. */
CALL int fsync(int fd)
{
	struct entry *entry = entry_find(fd);
	struct forebay_log *log = entry ? use(entry, true) : NULL;
	int ret;

	if (log)
		return sync_log(entry, log);
	if (entry && fdatasync(fd))
		return -1;
	ret = REAL(fsync)(fd);
	if (entry && !ret) {
		pthread_mutex_lock(&entry->mutex);
		entry->named = true;
		pthread_mutex_unlock(&entry->mutex);
	}
	return ret;
}
