/* SPDX-License-Identifier: GPL-2.0-only */
/* For the drivers of the PMDK thesis's workloads: the clock, random numbers, and a file's mapping. */
#include <err.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define PAGE	4096
#define LINE	64

static inline long long now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return time.tv_sec * 1000000000LL + time.tv_nsec;
}

/* Below @below, which has at most 32 bits: the same numbers in each run. */
static inline uint64_t draw(uint64_t below)
{
	static uint64_t state = 88172645463325252ULL;

	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return (state >> 32) * below >> 32;
}

/* With MAP_SYNC where the file system can do it, for persistent memory. Else an ordinary shared mapping. */
static inline char *map_file(int fd, size_t size, const char **how)
{
	int flags = MAP_SHARED_VALIDATE | MAP_SYNC | MAP_POPULATE;
	char *map = mmap(NULL, size, PROT_READ | PROT_WRITE, flags, fd, 0);

	*how = "MAP_SYNC";
	if (map == MAP_FAILED) {
		map = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd, 0);
		*how = "MAP_SHARED";
	}
	if (map == MAP_FAILED)
		err(1, "mmap");
	return map;
}
