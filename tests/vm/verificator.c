// SPDX-License-Identifier: GPL-2.0-only
/*
 * Writes to a block device from many threads at once, overlapping, and checks
 * what is read against when each write began and ended (the thesis's verificator
 * and its variant for replay).
 *
 *	verificator run DEVICE BYTES SEED WRITES THREADS READERS LEAST MOST STATE
 *	verificator whole DEVICE BYTES SEED WRITES THREADS READERS LEAST MOST STATE
 *	verificator mixed DEVICE BYTES SEED WRITES THREADS READERS LEAST MOST STATE
 *	verificator check DEVICE STATE
 *	verificator bytes FILE BYTES SEED WRITES
 *
 * run: THREADS threads write WRITES times in all, each from LEAST to MOST bytes
 * (multiples of LEAST) with O_DIRECT, while READERS threads read and check. Then
 * everything is read and checked, and what was written is noted in STATE. After
 * SIGTERM no further writes are begun.
 * whole: the same, and each block of LEAST bytes must be of one write: for devices
 * that write blocks of that size as a whole or not at all.
 * mixed: as whole, for devices that mix a read with a write in flight, as QEMU's NVMe device does even within
 * a sector: a read that is torn is made again. A tear that stays is an error.
 * check: reads everything and checks it by STATE.
 * bytes: writes single bytes to a file, fsync after each; reads them again.
 *
 * Each sector says which write it is of. Found in sector s by a read from rb to
 * re, write W is wrong if it doesn't cover s, if it began after re, or if another
 * that covers s began after W had ended and ended before rb.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { SECTOR = 512, CHUNK = 1 << 20, MIXED_TRIES = 100 };

struct write {
	uint64_t offset, length;
	uint64_t began, ended;		/* ticks of the clock; 0: not yet */
};

static struct write *writes;		/* number 0 is never used: sectors begin as zeros */
static uint64_t nr_writes, bytes, least, most, seed;
static atomic_ulong next_write = 1, clock_now = 1, reads_checked;
static atomic_int stop, wrong;
static int device, whole, mixed;
static volatile sig_atomic_t enough;

static void on_term(int number)
{
	(void)number;
	enough = 1;
}

static uint64_t random_of(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state;
}

static void die(const char *what)
{
	perror(what);
	exit(2);
}

static void *aligned(size_t size)
{
	void *p;

	if (posix_memalign(&p, 4096, size))
		die("memory");
	return p;
}

/* A sector: number of the write, then words that only that write has there. */
static void fill(uint64_t *sector, uint64_t number, uint64_t at)
{
	for (int i = 0; i < SECTOR / 8; i++)
		sector[i] = i ? number * 0x9e3779b97f4a7c15ULL + at + i : number;
}

static int is_whole(const uint64_t *sector, uint64_t number, uint64_t at)
{
	uint64_t expected[SECTOR / 8];

	fill(expected, number, at);
	return !memcmp(expected, sector, SECTOR);
}

static int complain(uint64_t at, uint64_t number, const char *what)
{
	printf("sector %llu: holds write %llu: %s\n", (unsigned long long)at / SECTOR, (unsigned long long)number, what);
	return atomic_fetch_add(&wrong, 1) + 1;
}

static void check_sector(const uint64_t *sector, uint64_t at, uint64_t rb, uint64_t re)
{
	uint64_t number = sector[0], known = atomic_load(&next_write);
	uint64_t ended = 0;

	if (known > nr_writes + 1)
		known = nr_writes + 1;
	if (number) {
		const struct write *w = &writes[number];

		if (number >= known || at < w->offset || at >= w->offset + w->length || w->began > re) {
			complain(at, number, "which did not write there");
			return;
		}
		if (!is_whole(sector, number, at)) {
			complain(at, number, "not whole");
			return;
		}
		ended = __atomic_load_n(&w->ended, __ATOMIC_ACQUIRE);
	}
	for (uint64_t i = 1; i < known && (!number || ended); i++) {
		const struct write *w = &writes[i];
		uint64_t end = __atomic_load_n(&w->ended, __ATOMIC_ACQUIRE);

		if (at >= w->offset && at < w->offset + w->length && end && end < rb && w->began > ended) {
			complain(at, number, "but a later one had been acknowledged");
			return;
		}
	}
}

/* True if a sector has words of two writes, or a block sectors of two. */
static int is_torn(const uint64_t *buffer, uint64_t offset, uint64_t length)
{
	for (uint64_t at = 0; at < length; at += SECTOR) {
		uint64_t number = buffer[at / 8];

		if ((number && !is_whole(buffer + at / 8, number, offset + at)) ||
		    number != buffer[at / least * least / 8])
			return 1;
	}
	return 0;
}

static void check_range(uint64_t *buffer, uint64_t offset, uint64_t length)
{
	unsigned int tries = mixed ? MIXED_TRIES : 1;
	uint64_t rb, re;

	do {
		rb = atomic_fetch_add(&clock_now, 1);
		if (pread(device, buffer, length, offset) != (ssize_t)length)
			die("read");
		re = atomic_fetch_add(&clock_now, 1);
	} while (--tries && is_torn(buffer, offset, length));
	for (uint64_t at = 0; at < length && atomic_load(&wrong) < 10; at += SECTOR) {
		check_sector(buffer + at / 8, offset + at, rb, re);
		if (whole && at % least && buffer[at / 8] != buffer[at / least * least / 8])
			complain(offset + at, buffer[at / 8], "another write than the rest of its block");
	}
}

static void choose(uint64_t *state, uint64_t *offset, uint64_t *length)
{
	/* Small and large sizes, spread over the orders of magnitude. */
	uint64_t size = least;

	while (size < most && random_of(state) % 4)
		size *= 2;
	*length = least * (1 + random_of(state) % (size / least));
	if (random_of(state) % 4 == 0)
		*length = size;
	*offset = least * (random_of(state) % ((bytes - *length) / least + 1));
}

static void *writer(void *arg)
{
	uint64_t state = seed * 1000003 + (uintptr_t)arg + 1;
	uint64_t *buffer = aligned(most);

	for (;;) {
		uint64_t number = atomic_fetch_add(&next_write, 1);
		struct write *w = &writes[number];
		uint64_t offset, length;

		if (number > nr_writes || enough)
			break;
		choose(&state, &offset, &length);
		for (uint64_t at = 0; at < length; at += SECTOR)
			fill(buffer + at / 8, number, offset + at);
		w->offset = offset;
		w->length = length;
		w->began = atomic_fetch_add(&clock_now, 1);
		if (pwrite(device, buffer, length, offset) != (ssize_t)length)
			die("write");
		__atomic_store_n(&w->ended, atomic_fetch_add(&clock_now, 1), __ATOMIC_RELEASE);
	}
	free(buffer);
	return NULL;
}

static void *reader(void *arg)
{
	uint64_t state = seed * 7919 + (uintptr_t)arg + 1;
	uint64_t *buffer = aligned(most);

	while (!atomic_load(&stop)) {
		uint64_t offset, length;

		choose(&state, &offset, &length);
		check_range(buffer, offset, length);
		atomic_fetch_add(&reads_checked, 1);
	}
	free(buffer);
	return NULL;
}

static void check_all(void)
{
	uint64_t *buffer = aligned(CHUNK);

	for (uint64_t at = 0; at < bytes; at += CHUNK)
		check_range(buffer, at, bytes - at < CHUNK ? bytes - at : CHUNK);
	free(buffer);
}

static void clear(void)
{
	char *zeros = aligned(CHUNK);

	memset(zeros, 0, CHUNK);
	for (uint64_t at = 0; at < bytes; at += CHUNK)
		if (pwrite(device, zeros, bytes - at < CHUNK ? bytes - at : CHUNK, at) < 0)
			die("clear");
	free(zeros);
}

static void save(const char *path)
{
	FILE *f = fopen(path, "w");
	uint64_t head[] = { bytes, nr_writes };

	if (!f || fwrite(head, sizeof(head), 1, f) != 1 ||
	    fwrite(writes, sizeof(*writes), nr_writes + 1, f) != nr_writes + 1 || fclose(f))
		die(path);
}

static void load(const char *path)
{
	FILE *f = fopen(path, "r");
	uint64_t head[2];

	if (!f || fread(head, sizeof(head), 1, f) != 1)
		die(path);
	bytes = head[0];
	nr_writes = head[1];
	writes = calloc(nr_writes + 1, sizeof(*writes));
	if (!writes || fread(writes, sizeof(*writes), nr_writes + 1, f) != nr_writes + 1)
		die(path);
	fclose(f);
	atomic_store(&next_write, nr_writes + 1);
	for (uint64_t i = 1; i <= nr_writes; i++)
		if (atomic_load(&clock_now) <= writes[i].ended)
			atomic_store(&clock_now, writes[i].ended + 1);
}

static void start(pthread_t *threads, int n, void *(*what)(void *), int first)
{
	for (int i = 0; i < n; i++)
		if (pthread_create(&threads[i], NULL, what, (void *)(uintptr_t)(first + i)))
			die("thread");
}

static int run(char **arg)
{
	int nr_writers = atoi(arg[4]), nr_readers = atoi(arg[5]);
	pthread_t writers[nr_writers], readers[nr_readers + 1];

	bytes = strtoull(arg[1], NULL, 0);
	seed = strtoull(arg[2], NULL, 0);
	nr_writes = strtoull(arg[3], NULL, 0);
	least = strtoull(arg[6], NULL, 0);
	most = strtoull(arg[7], NULL, 0);
	/* Each writer takes one number too many. */
	writes = calloc(nr_writes + 1 + nr_writers, sizeof(*writes));
	signal(SIGTERM, on_term);
	clear();
	start(writers, nr_writers, writer, 0);
	start(readers, nr_readers, reader, nr_writers);
	for (int i = 0; i < nr_writers; i++)
		pthread_join(writers[i], NULL);
	atomic_store(&stop, 1);
	if (nr_writes > atomic_load(&next_write) - 1)
		nr_writes = atomic_load(&next_write) - 1;
	for (int i = 0; i < nr_readers; i++)
		pthread_join(readers[i], NULL);
	check_all();
	save(arg[8]);
	printf("%llu writes, %lu reads beside them\n", (unsigned long long)nr_writes, atomic_load(&reads_checked));
	return !!atomic_load(&wrong);
}

static int single_bytes(const char *path, uint64_t size, uint64_t state, uint64_t count)
{
	unsigned char *expected = calloc(1, size), *found = malloc(size);
	int fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0644);

	if (fd < 0 || ftruncate(fd, size))
		die(path);
	while (count--) {
		uint64_t at = random_of(&state) % size;

		expected[at] = random_of(&state);
		if (pwrite(fd, expected + at, 1, at) != 1 || fsync(fd))
			die("write");
	}
	posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
	if (pread(fd, found, size, 0) != (ssize_t)size)
		die("read");
	if (!memcmp(expected, found, size))
		return 0;
	printf("%s: other bytes than were written\n", path);
	return 1;
}

int main(int argc, char **argv)
{
	if (argc == 6 && !strcmp(argv[1], "bytes"))
		return single_bytes(argv[2], strtoull(argv[3], NULL, 0), strtoull(argv[4], NULL, 0) + 1,
				    strtoull(argv[5], NULL, 0));
	mixed = argc == 11 && !strcmp(argv[1], "mixed");
	whole = mixed || (argc == 11 && !strcmp(argv[1], "whole"));
	if (!whole && !(argc == 11 && !strcmp(argv[1], "run")) && !(argc == 4 && !strcmp(argv[1], "check"))) {
		fprintf(stderr, "usage: see the top of verificator.c\n");
		return 2;
	}
	device = open(argv[2], O_RDWR | O_DIRECT);
	if (device < 0)
		die(argv[2]);
	if (argc == 11)
		return run(argv + 2);
	load(argv[3]);
	check_all();
	return !!atomic_load(&wrong);
}
