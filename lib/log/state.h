/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * An open log. Files of log/ from the ground up: crc, flush, place, state, recover, space, sync, worker,
 * log.
 *
 * Lock order: sync_mutex, mutex. sync_mutex is held over a sync and over the growth of the file, so that
 * appends go on meanwhile. mutex is held over the copy of an append.
 */
#ifndef FOREBAY_LIB_LOG_STATE_H
#define FOREBAY_LIB_LOG_STATE_H

#include <pthread.h>
#include <stdbool.h>
#include <linux/types.h>

#include "place.h"

struct forebay_log {
	int fd;				/* our own description of the file, with the lock */
	__u64 chunk;			/* bytes */
	__u64 low_water, pre_alloc;	/* bytes */

	pthread_mutex_t sync_mutex;
	/* Under sync_mutex: */
	__u64 synced;		/* all before is durable; offsets are bytes from the file's start */
	__u64 mapped;		/* the mapping begins here */
	__u64 size;			/* of the file while it is mapped */
	unsigned int nr_syncs;
	int error;			/* of the sync that failed first; no sync succeeds after it */

	pthread_mutex_t mutex;
	pthread_cond_t grown;		/* for appends: limit has moved, or grow_error was set */
	pthread_cond_t wake;		/* for the worker */
	/* Under mutex; changed with sync_mutex held, too, unless noted: */
	bool is_mapped, is_dax;
	char *base;			/* address of the byte at origin */
	__u64 origin, salt;
	struct place *place;		/* in the mapping: the one in use */
	__u64 limit;			/* offset of the place: appends stay below */
	/* Under mutex alone: */
	__u64 from;			/* the slots of appends begin here */
	__u64 end;			/* where the next append goes */
	__u32 data_crc;		/* of the bytes from @from to @end */
	unsigned int nr_appends;
	__u64 wanted;		/* an append waits for this limit, or 0 */
	int grow_error;			/* why the file did not grow */
	bool stop;			/* the worker ends */
	bool settling;			/* appends wait until the log is not mapped */
	pthread_t worker;
};

#endif
