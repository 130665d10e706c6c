// SPDX-License-Identifier: GPL-2.0-only
/*
 * A sync writes its slot and makes the bytes and the slot durable together. If the power fails in between,
 * the checksum of the slot tells that bytes are missing, and the other slot counts.
 */
#include "sync.h"

#include <errno.h>
#include <unistd.h>

#include "flush.h"
#include "space.h"

/* Takes what was appended so far into a slot: what is to be flushed begins at *@from and ends at *@end. */
static struct slot *write_slot(struct forebay_log *log, __u64 *from, __u64 *end)
{
	struct slot *slot = NULL;

	pthread_mutex_lock(&log->mutex);
	*from = log->from;
	*end = log->end;
	if (log->end > log->from) {
		slot = &log->place->sync[log->nr_syncs % 2];
		slot_write(slot, log->salt, log->from, log->end, log->data_crc);
		log->from = log->end;
		log->data_crc = 0;
	}
	pthread_mutex_unlock(&log->mutex);
	return slot;
}

/**
 * sync_locked - make durable what was appended before
 * @log: any
 *
 * After a sync that failed, the kernel may have forgotten which pages were not written. So no later sync
 * can succeed.
 * Context: holds sync_mutex. Waits for storage, unless the log is DAX.
 * Return: 0; -1 with errno.
 */
int sync_locked(struct forebay_log *log)
{
	__u64 from, end;
	struct slot *slot;

	if (log->error) {
		errno = log->error;
		return -1;
	}
	if (!log->is_mapped)
		return fdatasync(log->fd);
	slot = write_slot(log, &from, &end);
	if (!slot)
		return 0;
	if (log->is_dax) {
		flush_lines(space_at(log, from), end - from);
		flush_lines(slot, sizeof(*slot));
		flush_fence();
	} else if (fdatasync(log->fd)) {
		log->error = errno;
		return -1;
	}
	log->nr_syncs++;
	log->synced = end;
	return 0;
}
