// SPDX-License-Identifier: GPL-2.0-only
/*
 * The micro-benchmark of hybrid-storage-thesis 5.2: a mapping, of which every page has been written once; then, again and
 * again, a byte is stored to each of the first pages and fdatasync() is timed. Prints MAP_SYNC or MAP_SHARED, as the file
 * is mapped, when every page was written; then a latency a line, in nanoseconds, but of the first WARM_UP syncs.
 *
 *	mapsync FILE MAPPED DIRTY SECONDS	MAPPED and DIRTY in pages
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define PAGE		4096
#define WARM_UP		10
#define LEAST		20
#define MOST		2000

static long long now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return time.tv_sec * 1000000000LL + time.tv_nsec;
}

static void store(volatile char *map, long pages)
{
	for (long page = 0; page < pages; page++)
		map[page * PAGE]++;
}

int main(int argc, char **argv)
{
	long pages, dirty;
	long long end, begin;
	const char *how = "MAP_SYNC";
	char *map;
	int fd;

	if (argc != 5)
		return 2;
	pages = atol(argv[2]);
	dirty = atol(argv[3]);
	fd = open(argv[1], O_RDWR);
	/* Where the file system can't do it, an ordinary shared mapping: what a program would use there. */
	map = mmap(NULL, pages * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED_VALIDATE | MAP_SYNC, fd, 0);
	if (map == MAP_FAILED) {
		map = mmap(NULL, pages * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
		how = "MAP_SHARED";
	}
	if (map == MAP_FAILED) {
		perror(argv[1]);
		return 1;
	}
	store(map, pages);
	if (fdatasync(fd))
		return 1;
	puts(how);
	fflush(stdout);		/* its reader begins to count what the syncs cost */
	end = now() + atof(argv[4]) * 1e9;
	for (int i = 0; i < WARM_UP + LEAST || (i < MOST && now() < end); i++) {
		store(map, dirty);
		begin = now();
		if (fdatasync(fd))
			return 1;
		if (i >= WARM_UP)
			printf("%lld\n", now() - begin);
	}
	return 0;
}
