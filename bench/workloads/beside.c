// SPDX-License-Identifier: GPL-2.0-only
/*
 * Stores to a DAX mapping, each flushed, at random places: a task whose pages are locked, or one that thrashes.
 *
 *	beside FILE PAGES lock|no SECONDS	prints stores in a second, and page faults meanwhile; SECONDS 0: until it is
 *						killed
 */
#define _GNU_SOURCE
#include <emmintrin.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <time.h>

#define PAGE	4096

static double now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return time.tv_sec + time.tv_nsec * 1e-9;
}

static long faults(void)
{
	struct rusage usage;

	getrusage(RUSAGE_SELF, &usage);
	return usage.ru_minflt + usage.ru_majflt;
}

int main(int argc, char **argv)
{
	uint64_t random = 88172645463325252ULL, stores = 0;
	double begin, seconds;
	size_t pages;
	long before;
	char *map;

	if (argc != 5)
		return 2;
	pages = strtoul(argv[2], NULL, 0);
	seconds = atof(argv[4]);
	map = mmap(NULL, pages * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED_VALIDATE | MAP_SYNC, open(argv[1], O_RDWR), 0);
	if (map == MAP_FAILED || (!strcmp(argv[3], "lock") && mlock(map, pages * PAGE))) {
		perror(argv[1]);
		return 1;
	}
	before = faults();
	begin = now();
	do {
		for (int i = 0; i < 1000; i++, stores++) {
			random ^= random << 13;
			random ^= random >> 7;
			random ^= random << 17;
			*(volatile uint64_t *)(map + random % (pages * PAGE / 64) * 64) = random;
			_mm_clflush(map + random % (pages * PAGE / 64) * 64);
			_mm_sfence();
		}
	} while (!seconds || now() - begin < seconds);
	printf("%.0f %ld\n", stores / (now() - begin), faults() - before);
	return 0;
}
