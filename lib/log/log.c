// SPDX-License-Identifier: GPL-2.0-only
/*
 * libforebay-log: what programs call. forebay-log(3) is the contract.
 */
#include <errno.h>
#include <fcntl.h>
#include <forebay-log.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "crc.h"
#include "state.h"
#include "recover.h"
#include "space.h"
#include "sync.h"
#include "worker.h"

#define DEFAULT_CHUNK		((__u64)2 << 20)
#define DEFAULT_LOW_WATER	4
#define DEFAULT_PRE_ALLOC	8
#define MAX_AHEAD		((__u64)16 << 30)	/* bytes; the addresses suffice for some such steps */
#define MAX_APPEND		((__u64)64 << 30)

#define TRY_AGAIN	1	/* beside 0 and -1 */

/*
 * A description of the file that is ours alone: the caller's may be write-only. A program that has closed
 * its standard output or error may still print: so the log never has one of these numbers.
 */
static int own_description(int fd)
{
	char path[40];
	struct stat st;
	int own, above;

	if (fstat(fd, &st))
		return -1;
	if (!S_ISREG(st.st_mode)) {
		errno = EINVAL;
		return -1;
	}
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	own = open(path, O_RDWR | O_CLOEXEC);
	if (own < 0 || own > STDERR_FILENO)
		return own;
	above = fcntl(own, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
	close(own);
	return above;
}

static int take_options(struct forebay_log *log, const struct forebay_log_options *options)
{
	struct forebay_log_options taken = { 0 };

	if (options && options->size != sizeof(taken)) {
		errno = EINVAL;
		return -1;
	}
	if (options)
		taken = *options;
	log->chunk = taken.chunk ? taken.chunk : DEFAULT_CHUNK;
	log->low_water = log->chunk * (taken.low_water ? taken.low_water : DEFAULT_LOW_WATER);
	log->pre_alloc = log->chunk * (taken.pre_alloc ? taken.pre_alloc : DEFAULT_PRE_ALLOC);
	/* With a smaller chunk, and numbers of 32 bits, the products don't overflow. */
	if (log->chunk % PLACE_SIZE || log->chunk >= MAX_AHEAD || log->low_water >= MAX_AHEAD ||
	    log->pre_alloc >= MAX_AHEAD) {
		errno = EINVAL;
		return -1;
	}
	return 0;
}

struct forebay_log *forebay_log_open(int fd, const struct forebay_log_options *options)
{
	struct forebay_log *log = calloc(1, sizeof(*log));
	__s64 end;
	int err;

	if (!log)
		return NULL;
	log->fd = -1;
	if (take_options(log, options))
		goto fail;
	log->fd = own_description(fd);
	if (log->fd < 0 || lock_log(log->fd))
		goto fail;
	end = recover_end(log->fd);
	if (end < 0)
		goto fail;
	log->end = (__u64)end;
	pthread_mutex_init(&log->sync_mutex, NULL);
	pthread_mutex_init(&log->mutex, NULL);
	pthread_cond_init(&log->grown, NULL);
	pthread_cond_init(&log->wake, NULL);
	return log;
fail:
	err = errno;
	if (log->fd >= 0)
		close(log->fd);
	free(log);
	errno = err;
	return NULL;
}

/* Maps the log from the end of the file on, which the program may have changed by itself meanwhile. */
static int start(struct forebay_log *log)
{
	off_t size;
	int ret = 0;

	pthread_mutex_lock(&log->sync_mutex);
	pthread_mutex_lock(&log->mutex);
	if (log->is_mapped)
		goto out;
	/* Not fstat(): in the preload that one asks for the end of the log. */
	size = lseek(log->fd, 0, SEEK_END);
	ret = size < 0 ? -1 : 0;
	if (ret)
		goto out;
	log->end = (__u64)size;
	log->from = log->end;
	log->synced = log->end;
	log->data_crc = 0;
	ret = space_start(log);
	if (!ret && worker_start(log)) {
		int err = errno;

		ret = -1;
		if (ftruncate(log->fd, (off_t)log->end))
			err = errno;
		space_unmap(log);
		errno = err;
	}
out:
	pthread_mutex_unlock(&log->mutex);
	pthread_mutex_unlock(&log->sync_mutex);
	return ret;
}

static bool has_space(const struct forebay_log *log, __u64 total)
{
	return log->limit >= log->end + total;
}

/* A thread that waited may run only after the log was settled, when no worker is left to wait for. */
static bool can_grow(const struct forebay_log *log)
{
	return log->is_mapped && !log->settling;
}

/*
 * Waits until the log has space: 0, or -1 with errno; TRY_AGAIN: the log is settled. The caller holds mutex,
 * and another thread may append while it waits.
 */
static int wait_for_space(struct forebay_log *log, __u64 total)
{
	if (has_space(log, total))
		return 0;
	log->grow_error = 0;
	while (can_grow(log) && !has_space(log, total) && !log->grow_error) {
		if (log->wanted < log->end + total)
			log->wanted = log->end + total;
		pthread_cond_signal(&log->wake);
		pthread_cond_wait(&log->grown, &log->mutex);
	}
	if (!can_grow(log))
		return TRY_AGAIN;
	if (has_space(log, total))
		return 0;
	errno = log->grow_error;
	return -1;
}

static void copy_parts(struct forebay_log *log, const struct iovec *parts, int n)
{
	for (int i = 0; i < n; i++) {
		memcpy(space_at(log, log->end), parts[i].iov_base, parts[i].iov_len);
		log->data_crc = crc_add(log->data_crc, parts[i].iov_base, parts[i].iov_len);
		log->end += parts[i].iov_len;
	}
	slot_write(&log->place->append[log->nr_appends++ % 2], log->salt, log->from, log->end, log->data_crc);
}

/*
 * One attempt: 0, or TRY_AGAIN; -1 with errno. That may be EAGAIN, of pthread_create(3), or of mmap(2) after
 * mlockall(2). NO_ADDRESSES: the log is to be mapped anew.
 */
static int try_append(struct forebay_log *log, const struct iovec *parts, int n, __u64 total)
{
	int ret;

	pthread_mutex_lock(&log->mutex);
	while (log->settling)
		pthread_cond_wait(&log->grown, &log->mutex);
	if (!log->is_mapped) {
		pthread_mutex_unlock(&log->mutex);
		return start(log) ? -1 : TRY_AGAIN;
	}
	ret = wait_for_space(log, total);
	if (!ret) {
		copy_parts(log, parts, n);
		if (worker_needed(log))
			pthread_cond_signal(&log->wake);
	}
	pthread_mutex_unlock(&log->mutex);
	return ret;
}

int forebay_log_appendv(struct forebay_log *log, const struct iovec *parts, int n)
{
	__u64 total = 0;
	int ret;

	for (int i = 0; i < n; i++)
		total += parts[i].iov_len;
	if (total > MAX_APPEND) {
		errno = EINVAL;
		return -1;
	}
	if (!total)
		return 0;
	do {
		ret = try_append(log, parts, n, total);
		if (ret < 0 && errno == NO_ADDRESSES)
			ret = forebay_log_settle(log) ? -1 : TRY_AGAIN;
	} while (ret == TRY_AGAIN);
	return ret;
}

int forebay_log_append(struct forebay_log *log, const void *data, size_t length)
{
	struct iovec part = { .iov_base = (void *)data, .iov_len = length };	/* not written to */

	return forebay_log_appendv(log, &part, 1);
}

int forebay_log_sync(struct forebay_log *log)
{
	int ret;

	pthread_mutex_lock(&log->sync_mutex);
	ret = sync_locked(log);
	pthread_mutex_unlock(&log->sync_mutex);
	return ret;
}

off_t forebay_log_end(struct forebay_log *log)
{
	off_t end;

	pthread_mutex_lock(&log->mutex);
	end = (off_t)log->end;
	pthread_mutex_unlock(&log->mutex);
	return end;
}

/*
 * Syncs, then truncates the file to the log's end; no append comes in between. The bytes are durable before
 * the place is truncated. Otherwise a crash could leave a file of the right size with zeros at its end. The
 * caller holds sync_mutex.
 */
static int sync_and_truncate(struct forebay_log *log)
{
	int err = sync_locked(log) ? errno : 0;

	pthread_mutex_lock(&log->mutex);
	if ((ftruncate(log->fd, (off_t)log->end) || fdatasync(log->fd)) && !err)
		err = errno;
	space_unmap(log);
	log->settling = false;
	pthread_cond_broadcast(&log->grown);
	pthread_mutex_unlock(&log->mutex);
	errno = err;
	return err ? -1 : 0;
}

int forebay_log_settle(struct forebay_log *log)
{
	bool mapped;
	int ret;

	pthread_mutex_lock(&log->mutex);
	while (log->settling)
		pthread_cond_wait(&log->grown, &log->mutex);
	mapped = log->is_mapped;
	log->settling = mapped;
	pthread_cond_broadcast(&log->grown);
	pthread_mutex_unlock(&log->mutex);
	if (!mapped)
		return 0;
	worker_stop(log);
	pthread_mutex_lock(&log->sync_mutex);
	ret = sync_and_truncate(log);
	pthread_mutex_unlock(&log->sync_mutex);
	return ret;
}

int forebay_log_close(struct forebay_log *log)
{
	int ret = forebay_log_settle(log);
	int err = errno;

	close(log->fd);
	pthread_mutex_destroy(&log->sync_mutex);
	pthread_mutex_destroy(&log->mutex);
	pthread_cond_destroy(&log->grown);
	pthread_cond_destroy(&log->wake);
	free(log);
	errno = err;
	return ret;
}

off_t forebay_log_recover(int fd)
{
	int own = own_description(fd), err;
	__s64 end = -1;

	if (own < 0)
		return -1;
	if (!lock_log(own))
		end = recover_end(own);
	err = errno;
	close(own);
	errno = err;
	return (off_t)end;
}
