// SPDX-License-Identifier: GPL-2.0-only
/*
 * fuzz_log PATH SEED: mutates the good log in PATH, with the code of tests/core. The same seed makes the same
 * change.
 */
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "../core/pm_sim.h"
#include "../core/writelog_mutate.h"

static u64 state;

/* As in pm_sim.c, which is not linked here. */
u32 sim_random(u32 below)
{
	state ^= state >> 12;
	state ^= state << 25;
	state ^= state >> 27;
	return (u32)((state * 0x2545f4914f6cdd1dULL) >> 32) % below;
}

int main(int argc, char **argv)
{
	int fd = open(argv[1], O_RDWR);
	off_t size = lseek(fd, 0, SEEK_END);
	void *base = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	assert(argc == 3 && base != MAP_FAILED);
	state = strtoull(argv[2], NULL, 0) * 0x9e3779b97f4a7c15ULL + 1;
	log_mutate(base, size);
	return 0;
}
