// SPDX-License-Identifier: GPL-2.0-only
/*
 * Finds the end of a log that was not closed, and cuts the file there.
 *
 * The last page of the file is the newest place. The place before may have newer slots of appends, if the
 * process was killed while the file grew.
 */
#include "recover.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "crc.h"
#include "place.h"

#define PIECE	65536

/* The lock is on a byte that no file reaches, so that it meets few locks of programs. */
#define LOCK_BYTE	((off_t)1 << 62)
#define LOCK_TRIES	100

/* The rest of a place is zeros: so a log of lines never ends in what looks like a place. */
static bool read_place(int fd, __u64 offset, struct place *place)
{
	unsigned char page[PLACE_SIZE];

	if (pread(fd, page, sizeof(page), (off_t)offset) != (ssize_t)sizeof(page))
		return false;
	for (size_t i = sizeof(*place); i < sizeof(page); i++)
		if (page[i])
			return false;
	memcpy(place, page, sizeof(*place));
	return place_valid(place, offset);
}

/* 1 if the file has the bytes that the slot is about, 0 if not; -1: it can't be read. */
static int bytes_fit(int fd, const struct slot *slot)
{
	unsigned char buffer[PIECE];
	__u64 at = slot->from;
	__u32 crc = 0;

	while (at < slot->end) {
		size_t wanted = slot->end - at < PIECE ? slot->end - at : PIECE;
		ssize_t got = pread(fd, buffer, wanted, (off_t)at);

		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			return got ? -1 : 0;
		crc = crc_add(crc, buffer, (size_t)got);
		at += (__u64)got;
	}
	return crc == slot->data_crc;
}

/*
 * Moves *@end forward to the end of a slot that begins at or before it and whose bytes are there. Fails with
 * -1 if the file can't be read.
 */
static int follow(int fd, const struct slot *slot, __u64 salt, __u64 size, __u64 *end)
{
	int fit;

	if (!slot_valid(slot, salt, size) || slot->from > *end || slot->end <= *end)
		return 0;
	fit = bytes_fit(fd, slot);
	if (fit > 0)
		*end = slot->end;
	return fit < 0 ? -1 : 0;
}

/* The end of the log, from the places that the file has; places[0] is the newest. */
static __s64 end_of(int fd, const struct place *places, int n, __u64 size)
{
	__u64 salt = places[0].salt, end = 0;
	bool found = false;

	for (int i = 0; i < 2; i++) {
		const struct slot *slot = &places[0].sync[i];

		if (slot_valid(slot, salt, size) && (!found || slot->from > end)) {
			end = slot->from;
			found = true;
		}
	}
	if (!found)
		return (__s64)size;	/* not written by us */
	for (int i = 0; i < 2; i++)
		if (follow(fd, &places[0].sync[i], salt, size, &end))
			return -1;
	for (int i = 0; i < n; i++)
		for (int j = 0; j < 2; j++)
			if (follow(fd, &places[i].append[j], salt, size, &end))
				return -1;
	return (__s64)end;
}

/**
 * recover_end - cut what a crash left behind the end of a log
 * @fd: of the file, for reading and writing; the caller has its lock
 *
 * A file without a place stays as it is.
 * Context: any thread; may wait for storage.
 * Return: the size of the file, in bytes; -1 with errno.
 */
__s64 recover_end(int fd)
{
	struct place places[2];
	struct stat st;
	__s64 end;
	int n = 1;

	if (fstat(fd, &st))
		return -1;
	if (st.st_size < PLACE_SIZE || st.st_size % PLACE_SIZE ||
	    !read_place(fd, (__u64)st.st_size - PLACE_SIZE, &places[0]))
		return st.st_size;
	if (places[0].before && read_place(fd, places[0].before, &places[1]) &&
	    places[1].salt == places[0].salt)
		n = 2;
	end = end_of(fd, places, n, (__u64)st.st_size);
	if (end < 0 || end == st.st_size)
		return end;
	return ftruncate(fd, end) || fsync(fd) ? -1 : end;
}

/**
 * lock_log - become the only process that has this log open
 * @fd: of the file, opened by us alone: the lock lasts until the last close of this description
 *
 * A recovery has the lock for a moment, also if there is nothing to cut. So a lock that is taken is asked for
 * again for a while.
 * Context: any thread; may wait for LOCK_TRIES milliseconds.
 * Return: 0; -1 with errno, which is EBUSY if another process, or another log of this one, has it.
 */
int lock_log(int fd)
{
	struct flock lock = { .l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = LOCK_BYTE, .l_len = 1 };
	const struct timespec pause = { .tv_nsec = 1000000 };

	for (int i = 0; i < LOCK_TRIES; i++) {
		if (!fcntl(fd, F_OFD_SETLK, &lock))
			return 0;
		if (errno != EAGAIN && errno != EACCES)
			return -1;
		nanosleep(&pause, NULL);
	}
	errno = EBUSY;
	return -1;
}
