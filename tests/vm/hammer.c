// SPDX-License-Identifier: GPL-2.0-only
/*
 * hammer: threads that change one file at once, each in pages of its own, and know
 * what must be there; others meanwhile sync, truncate behind the last page, rename,
 * unlink, drop caches and drain. Reads go through read(2), mappings and O_DIRECT in turn.
 *
 *	hammer DIRECTORY SECONDS SEED
 *
 * Prints what it did; exits with 1 at the first byte that is wrong.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "../../include/uapi/linux/forebay.h"

#define PAGE		4096
#define WRITERS		4
#define OWN_PAGES	48
#define FILE_PAGES	(WRITERS * OWN_PAGES)
#ifndef MAP_SYNC
#define MAP_SYNC	0x80000
#endif

static const char *dir;
static unsigned int seed;
static atomic_bool over;
static atomic_ulong operations;
static char shared_name[4096];

#define CHECK(condition, ...) do {							\
	if (!(condition)) {								\
		fprintf(stderr, "hammer: line %d: %s: %m: ", __LINE__, #condition);	\
		fprintf(stderr, __VA_ARGS__);						\
		fputc('\n', stderr);							\
		_exit(1);								\
	}										\
} while (0)

struct writer {
	int number;
	unsigned int random;
	int fd, direct;
	char *map, *sync_map;
	unsigned char model[OWN_PAGES][PAGE];
};

static unsigned int pick(unsigned int *state, unsigned int n)
{
	return rand_r(state) % n;
}

/* The @k-th page of a writer lies between those of the others, so that folios are shared. */
static off_t page_at(const struct writer *w, int k)
{
	return ((off_t)k * WRITERS + w->number) * PAGE;
}

static void check(struct writer *w, int k, const void *got, const char *how)
{
	const unsigned char *bytes = got;

	for (int i = 0; i < PAGE; i++)
		CHECK(bytes[i] == w->model[k][i], "writer %d page %ld byte %d by %s: %02x, not %02x", w->number,
		      (long)(page_at(w, k) / PAGE), i, how, bytes[i], w->model[k][i]);
}

/* Through a private mapping, with a page of its own from a store at @from on. */
static void check_private(struct writer *w, int k, int from)
{
	char *own = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE, w->fd, page_at(w, k));

	CHECK(own != MAP_FAILED, "private mapping");
	own[from] = 1;
	CHECK(own[from] == 1, "own byte");
	own[from] = w->model[k][from];
	check(w, k, own, "private mapping");
	CHECK(!munmap(own, PAGE), "munmap");
}

static void act(struct writer *w, void *buffer)
{
	unsigned int *random = &w->random;
	int k = pick(random, OWN_PAGES), from = pick(random, PAGE), len = 1 + pick(random, PAGE - from);
	off_t pos = page_at(w, k);
	unsigned char fill = pick(random, 256);

	switch (pick(random, 14)) {
	case 0: case 1:
		memset(w->model[k] + from, fill, len);
		CHECK(pwrite(w->fd, w->model[k] + from, len, pos + from) == len, "write");
		break;
	case 2:
		memset(w->model[k] + from, fill, len);
		memset(w->map + pos + from, fill, len);
		break;
	case 3:
		memset(w->model[k] + from, fill, len);
		memset(w->sync_map + pos + from, fill, len);
		break;
	case 4:
		memset(w->model[k], fill, PAGE);
		memset(buffer, fill, PAGE);
		CHECK(pwrite(w->direct, buffer, PAGE, pos) == PAGE, "direct write");
		break;
	case 5:
		memset(w->model[k], 0, PAGE);
		CHECK(!fallocate(w->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, pos, PAGE), "punch");
		break;
	case 6:
		CHECK(!(pick(random, 2) ? fsync(w->fd) : fdatasync(w->fd)), "sync");
		break;
	case 7:
		CHECK(!msync(w->map + pos, PAGE, MS_SYNC), "msync");
		break;
	case 8: case 9:
		CHECK(pread(w->fd, buffer, PAGE, pos) == PAGE, "read");
		check(w, k, buffer, "read");
		break;
	case 10:
		CHECK(pread(w->direct, buffer, PAGE, pos) == PAGE, "direct read");
		check(w, k, buffer, "direct read");
		break;
	case 11:
		check(w, k, w->map + pos, "mapping");
		break;
	case 12:
		check(w, k, w->sync_map + pos, "MAP_SYNC mapping");
		break;
	case 13:
		check_private(w, k, from);
		break;
	}
	operations++;
}

static void *run_writer(void *argument)
{
	struct writer *w = argument;
	void *buffer = aligned_alloc(PAGE, PAGE);

	while (!over)
		act(w, buffer);
	for (int k = 0; k < OWN_PAGES; k++) {
		CHECK(pread(w->fd, buffer, PAGE, page_at(w, k)) == PAGE, "read");
		check(w, k, buffer, "last read");
	}
	free(buffer);
	return NULL;
}

/* Makes the file grow and shrink beyond the writers' pages. */
static void *run_truncater(void *argument)
{
	unsigned int random = seed ^ 0x1234;
	char page[PAGE];
	int fd = open(shared_name, O_RDWR);

	(void)argument;
	CHECK(fd >= 0, "open");
	while (!over) {
		off_t end = (off_t)FILE_PAGES * PAGE + 1 + pick(&random, 16 * PAGE);

		memset(page, 'z', PAGE);
		CHECK(pwrite(fd, page, PAGE, end) == PAGE, "append");
		if (pick(&random, 2))
			CHECK(!fdatasync(fd), "fdatasync");
		CHECK(!ftruncate(fd, (off_t)FILE_PAGES * PAGE + pick(&random, 3 * PAGE)), "truncate");
		if (pick(&random, 4) == 0)
			CHECK(!fsync(fd), "fsync");
		operations++;
	}
	close(fd);
	return NULL;
}

/* Files come, are written and synced, get other names, and go. */
static void *run_names(void *argument)
{
	unsigned int random = seed ^ (uintptr_t)argument;
	char a[5000], b[5000], page[PAGE];
	int fd;

	memset(page, 'n', PAGE);
	while (!over) {
		snprintf(a, sizeof(a), "%s/n%u", dir, pick(&random, 6));
		snprintf(b, sizeof(b), "%s/n%u", dir, pick(&random, 6));
		switch (pick(&random, 6)) {
		case 0: case 1:
			fd = open(a, O_RDWR | O_CREAT, 0600);
			CHECK(fd >= 0, "open %s", a);
			CHECK(pwrite(fd, page, PAGE, pick(&random, 8) * PAGE) == PAGE, "write");
			if (pick(&random, 3))
				CHECK(!fsync(fd), "fsync");
			CHECK(pwrite(fd, page, PAGE, pick(&random, 8) * PAGE) == PAGE, "write");
			CHECK(!fdatasync(fd), "fdatasync");
			close(fd);
			break;
		case 2:
			CHECK(!rename(a, b) || errno == ENOENT, "rename");
			break;
		case 3:
			CHECK(!unlink(a) || errno == ENOENT, "unlink");
			break;
		case 4:
			CHECK(!link(a, b) || errno == ENOENT || errno == EEXIST, "link");
			break;
		case 5:
			CHECK(!truncate(a, pick(&random, 5 * PAGE)) || errno == ENOENT, "truncate");
			break;
		}
		operations++;
	}
	return NULL;
}

/* Takes pages away from the other threads: drops caches, drains and so on. */
static void *run_disturber(void *argument)
{
	unsigned int random = seed ^ 0x77;
	int fd = open(dir, O_RDONLY | O_DIRECTORY), drop = open("/proc/sys/vm/drop_caches", O_WRONLY);

	(void)argument;
	while (!over) {
		switch (pick(&random, 4)) {
		case 0:
			CHECK(!ioctl(fd, FOREBAY_IOC_DRAIN), "drain");
			break;
		case 1:
			CHECK(!syncfs(fd), "syncfs");
			break;
		case 2: case 3:
			if (write(drop, "1", 1) < 0)
				perror("drop_caches");
			break;
		}
		usleep(100000);
		operations++;
	}
	close(fd);
	close(drop);
	return NULL;
}

static struct writer writers[WRITERS];

int main(int argc, char **argv)
{
	pthread_t thread[WRITERS + 4];
	int seconds;

	if (argc != 4) {
		fputs("usage: hammer DIRECTORY SECONDS SEED\n", stderr);
		return 2;
	}
	dir = argv[1];
	seconds = atoi(argv[2]);
	seed = strtoul(argv[3], NULL, 10);
	snprintf(shared_name, sizeof(shared_name), "%s/shared", dir);
	for (int i = 0; i < WRITERS; i++) {
		struct writer *w = &writers[i];

		w->number = i;
		w->random = seed + i;
		w->fd = open(shared_name, O_RDWR | O_CREAT, 0600);
		w->direct = open(shared_name, O_RDWR | O_DIRECT);
		CHECK(w->fd >= 0 && w->direct >= 0, "open");
		if (!i)
			CHECK(!ftruncate(w->fd, (off_t)FILE_PAGES * PAGE), "size");
		w->map = mmap(NULL, (size_t)FILE_PAGES * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, w->fd, 0);
		w->sync_map = mmap(NULL, (size_t)FILE_PAGES * PAGE, PROT_READ | PROT_WRITE,
				   MAP_SHARED_VALIDATE | MAP_SYNC, w->fd, 0);
		CHECK(w->map != MAP_FAILED && w->sync_map != MAP_FAILED, "mmap");
	}
	for (int i = 0; i < WRITERS; i++)
		pthread_create(&thread[i], NULL, run_writer, &writers[i]);
	pthread_create(&thread[WRITERS], NULL, run_truncater, NULL);
	pthread_create(&thread[WRITERS + 1], NULL, run_names, (void *)1);
	pthread_create(&thread[WRITERS + 2], NULL, run_names, (void *)2);
	pthread_create(&thread[WRITERS + 3], NULL, run_disturber, NULL);
	sleep(seconds);
	over = true;
	for (int i = 0; i < WRITERS + 4; i++)
		pthread_join(thread[i], NULL);
	printf("hammer: %lu operations, seed %u\n", operations, seed);
	return 0;
}
