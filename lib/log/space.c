// SPDX-License-Identifier: GPL-2.0-only
/*
 * Allocates the file ahead of the log, maps it piece by piece into a reserved range of addresses, and drops
 * what lies behind.
 *
 * Space is allocated beyond the end of the file first; then the new place is written there by pwrite(). So
 * the file never ends in a page without a place.
 */
#include "space.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "flush.h"

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE	23
#endif

/* Addresses for one mapping; a log that grows by more is settled and mapped again. */
#define RESERVE		((__u64)256 << 30)
#define HUGE		((__u64)2 << 20)

static __u64 round_up(__u64 n, __u64 unit)
{
	return (n + unit - 1) / unit * unit;
}

/**
 * space_at - the address of a byte of the file
 * @log: mapped
 * @offset: of the byte, from log->mapped up to log->size
 *
 * Context: any thread.
 * Return: the address.
 */
char *space_at(const struct forebay_log *log, __u64 offset)
{
	return log->base + (offset - log->origin);
}

/* Maps the file from @from up to @to over the reserved addresses: 0, or -1 with errno. */
static int map_piece(struct forebay_log *log, __u64 from, __u64 to, bool first)
{
	const int protection = PROT_READ | PROT_WRITE;
	void *at = space_at(log, from), *done = MAP_FAILED;
	size_t length = to - from;

	if (flush_possible() && (first || log->is_dax))
		done = mmap(at, length, protection, MAP_SHARED_VALIDATE | MAP_SYNC | MAP_FIXED, log->fd,
			    (off_t)from);
	if (first)
		log->is_dax = done != MAP_FAILED;
	if (!log->is_dax)
		done = mmap(at, length, protection, MAP_SHARED | MAP_FIXED, log->fd, (off_t)from);
	if (done == MAP_FAILED)
		return -1;
	return madvise(at, length, MADV_DONTFORK);
}

/* Of a page-cache mapping each page would be written out as zeros first; so only DAX pages are brought in. */
static int populate(struct forebay_log *log, __u64 from, __u64 to)
{
	if (!log->is_dax || !madvise(space_at(log, from), to - from, MADV_POPULATE_WRITE))
		return 0;
	return errno == EINVAL ? 0 : -1;	/* a kernel before 5.14 */
}

/* A write beyond the limit would end the process by SIGXFSZ, though its own bytes may be far below. */
static bool is_too_large(__u64 size)
{
	struct rlimit limit;

	return !getrlimit(RLIMIT_FSIZE, &limit) && limit.rlim_cur != RLIM_INFINITY && size > limit.rlim_cur;
}

/*
 * Makes the file's size durable: 0, or -1 with errno. Where appended bytes get durable by fdatasync(2), too,
 * the error may be theirs. The kernel reports it once, so the next sync of the program fails by log->error.
 */
static int sync_space(struct forebay_log *log)
{
	if (!fdatasync(log->fd))
		return 0;
	if (log->is_mapped && !log->is_dax && !log->error)
		log->error = errno;
	return -1;
}

/* Makes the file @size bytes long, which ends in a place like @place: 0, or -1 with errno. */
static int extend(struct forebay_log *log, __u64 from, __u64 size, struct place *place)
{
	unsigned char page[PLACE_SIZE] = { 0 };
	ssize_t done;

	memcpy(page, place, sizeof(*place));
	if (is_too_large(size)) {
		errno = EFBIG;
		return -1;
	}
	if (fallocate(log->fd, FALLOC_FL_KEEP_SIZE, (off_t)from, (off_t)(size - from)))
		return -1;
	done = pwrite(log->fd, page, sizeof(page), (off_t)(size - PLACE_SIZE));
	if (done != (ssize_t)sizeof(page)) {
		if (done >= 0)
			errno = ENOSPC;
		return -1;
	}
	return sync_space(log);
}

static int reserve(struct forebay_log *log, __u64 end)
{
	char *at = mmap(NULL, RESERVE + HUGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (at == MAP_FAILED)
		return -1;
	log->base = (char *)round_up((uintptr_t)at, HUGE);
	if (log->base > at)
		munmap(at, (size_t)(log->base - at));
	if (log->base < at + HUGE)
		munmap(log->base + RESERVE, (size_t)(at + HUGE - log->base));
	log->origin = end / HUGE * HUGE;
	return 0;
}

/* Gives back the space behind @size, and returns -1 with the errno from before. */
static int undo(struct forebay_log *log, __u64 size)
{
	int err = errno;

	if (ftruncate(log->fd, (off_t)size))
		err = errno;
	errno = err;
	return -1;
}

/**
 * space_start - allocate, map and populate the first piece
 * @log: not mapped; from, end and synced are the size of the file
 *
 * Context: holds both mutexes; waits for storage.
 * Return: 0; -1 with errno, and the file is as before.
 */
int space_start(struct forebay_log *log)
{
	__u64 size = round_up(log->end + PLACE_SIZE, log->chunk) + log->pre_alloc;
	__u64 first = log->end / PLACE_SIZE * PLACE_SIZE;
	struct place place;

	if (getrandom(&log->salt, sizeof(log->salt), 0) != (ssize_t)sizeof(log->salt))
		return -1;
	if (reserve(log, log->end))
		return -1;
	place_init(&place, log->salt, size - PLACE_SIZE, 0);
	slot_write(&place.sync[0], log->salt, log->end, log->end, 0);
	log->mapped = first;
	log->size = size;
	if (extend(log, log->end, size, &place) || map_piece(log, first, size, true) ||
	    populate(log, first, size)) {
		undo(log, log->end);
		space_unmap(log);
		return -1;
	}
	log->limit = size - PLACE_SIZE;
	log->place = (struct place *)space_at(log, log->limit);
	log->nr_syncs = 1;
	log->is_mapped = true;
	return 0;
}

/* Appends and syncs use the new place from now on. */
static void use_place(struct forebay_log *log, __u64 size)
{
	pthread_mutex_lock(&log->mutex);
	log->size = size;
	log->limit = size - PLACE_SIZE;
	log->place = (struct place *)space_at(log, log->limit);
	slot_write(&log->place->append[log->nr_appends++ % 2], log->salt, log->from, log->end, log->data_crc);
	pthread_mutex_unlock(&log->mutex);
}

/**
 * space_grow - make the file longer
 * @log: mapped
 * @wanted: the limit that an append waits for; 0: none waits
 *
 * Context: holds sync_mutex, so that no sync writes the old place; appends go on. Waits for storage.
 * Return: 0; -1 with errno, which is NO_ADDRESSES at the end of the reserved ones.
 */
int space_grow(struct forebay_log *log, __u64 wanted)
{
	__u64 size = log->size + log->pre_alloc;
	struct place place;

	if (size < wanted + PLACE_SIZE)
		size = round_up(wanted + PLACE_SIZE, log->chunk);
	if (size - log->origin > RESERVE) {
		errno = NO_ADDRESSES;
		return -1;
	}
	place_init(&place, log->salt, size - PLACE_SIZE, log->size - PLACE_SIZE);
	memcpy(place.sync, log->place->sync, sizeof(place.sync));
	if (extend(log, log->size, size, &place) || map_piece(log, log->size, size, false) ||
	    populate(log, log->size, size))
		return undo(log, log->size);
	use_place(log, size);
	return 0;
}

/**
 * space_drop_behind - give up the memory of what is durable, except the last chunk
 * @log: mapped
 *
 * On forebay the pages are written back and leave persistent memory.
 * Context: holds sync_mutex. Waits for storage.
 */
void space_drop_behind(struct forebay_log *log)
{
	__u64 to = log->synced / log->chunk * log->chunk;
	size_t length;

	if (to <= log->mapped)
		return;
	length = to - log->mapped;
	if (mmap(space_at(log, log->mapped), length, PROT_NONE,
		 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0) == MAP_FAILED)
		return;
	posix_fadvise(log->fd, (off_t)log->mapped, (off_t)length, POSIX_FADV_DONTNEED);
	log->mapped = to;
}

/**
 * space_unmap - give the addresses back
 * @log: its file has its size already
 *
 * Context: holds both mutexes.
 */
void space_unmap(struct forebay_log *log)
{
	munmap(log->base, RESERVE);
	log->base = NULL;
	log->place = NULL;
	log->is_mapped = false;
	log->is_dax = false;
}
