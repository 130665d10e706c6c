// SPDX-License-Identifier: GPL-2.0-only
/*
 * The worker of a log: when few chunks are left, it makes the file longer, syncs, and drops what lies behind.
 */
#include "worker.h"

#include <errno.h>
#include <signal.h>

#include "space.h"
#include "sync.h"

/**
 * worker_needed - whether the log has to grow
 * @log: mapped
 *
 * Context: holds mutex.
 * Return: true if an append waits, or if less than the low-water mark is left and growing has not failed.
 */
bool worker_needed(const struct forebay_log *log)
{
	return !log->grow_error && (log->wanted > log->limit || log->limit - log->end < log->low_water);
}

/* One round, without mutex: 0, or the error. */
static int grow(struct forebay_log *log, __u64 wanted)
{
	int err;

	pthread_mutex_lock(&log->sync_mutex);
	err = space_grow(log, wanted) ? errno : 0;
	pthread_mutex_unlock(&log->sync_mutex);
	return err;
}

/* If the sync fails, the next sync of the program says so. */
static void drop_behind(struct forebay_log *log)
{
	pthread_mutex_lock(&log->sync_mutex);
	if (!sync_locked(log))
		space_drop_behind(log);
	pthread_mutex_unlock(&log->sync_mutex);
}

static void *work(void *argument)
{
	struct forebay_log *log = argument;

	pthread_mutex_lock(&log->mutex);
	while (!log->stop) {
		__u64 wanted = log->wanted;
		int err;

		if (!worker_needed(log)) {
			pthread_cond_wait(&log->wake, &log->mutex);
			continue;
		}
		pthread_mutex_unlock(&log->mutex);
		err = grow(log, wanted);
		pthread_mutex_lock(&log->mutex);
		log->grow_error = err;
		if (log->wanted <= wanted)
			log->wanted = 0;
		pthread_cond_broadcast(&log->grown);
		pthread_mutex_unlock(&log->mutex);
		if (!err)
			drop_behind(log);
		pthread_mutex_lock(&log->mutex);
	}
	pthread_mutex_unlock(&log->mutex);
	return NULL;
}

/**
 * worker_start - start the thread
 * @log: mapped
 *
 * The thread takes no signals of the program.
 * Context: holds both mutexes.
 * Return: 0; -1 with errno.
 */
int worker_start(struct forebay_log *log)
{
	sigset_t all, before;
	int err;

	log->stop = false;
	log->grow_error = 0;
	log->wanted = 0;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	err = pthread_create(&log->worker, NULL, work, log);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (err)
		errno = err;
	return err ? -1 : 0;
}

/**
 * worker_stop - end the thread and wait for it
 * @log: mapped
 *
 * Context: holds no mutex. Waits for storage if the file is growing.
 */
void worker_stop(struct forebay_log *log)
{
	pthread_mutex_lock(&log->mutex);
	log->stop = true;
	pthread_cond_signal(&log->wake);
	pthread_mutex_unlock(&log->mutex);
	pthread_join(log->worker, NULL);
}
