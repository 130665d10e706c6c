// SPDX-License-Identifier: GPL-2.0-only
/*
 * Bandwidth by chunk and latency of a file's mapping, as the PMDK thesis measures its memory (3.3, figure
 * 7). Stands in for its membench.
 *
 *	memory FILE MIB read|write seq|rand CHUNK SECONDS	memcpy() of chunks
 *	memory FILE MIB chase SECONDS				each line says which is next, at random
 *
 * Prints how the file is mapped, the number of chunks or loads, and nanoseconds.
 *
 * A read is compared with what the file has there: each of its words has its own number. Writes leave
 * bytes of 0xff in a file of zeros.
 */
#define _GNU_SOURCE
#include "driver.h"

#define BETWEEN	(64 << 10)	/* bytes between two looks at the clock */
#define LOADS	100000		/* the same for loads */

static char *map;
static size_t size;

static void copy_chunks(int writes, int random, size_t chunk, double seconds, const char *how)
{
	uint64_t chunks = size / chunk, at = 0, done = 0, some = BETWEEN / chunk + 1;
	char *other = malloc(chunk);
	long long begin, end;
	uint32_t found;

	if (!other)
		err(1, "malloc");
	memset(other, 0xff, chunk);
	for (uint64_t word = 0; word < size / sizeof(found); word++)
		((uint32_t *)map)[word] = writes ? 0 : word;
	begin = now();
	do {
		for (uint64_t i = 0; i < some; i++) {
			at = random ? draw(chunks) : at + 1 < chunks ? at + 1 : 0;
			if (writes) {
				memcpy(map + at * chunk, other, chunk);
				continue;
			}
			memcpy(other, map + at * chunk, chunk);
			memcpy(&found, other, sizeof(found));
			if (found != at * chunk / sizeof(found))
				errx(1, "chunk %ju was read as %u", at, found);
		}
		done += some;
		end = now();
	} while (end - begin < seconds * 1e9);
	printf("%s %ju %lld\n", how, done, end - begin);
}

/* One cycle through all lines, so that each is as far as the memory is. */
static uint64_t link_lines(void)
{
	uint64_t lines = size / LINE, line, other, next;

	for (line = 0; line < lines; line++)
		*(uint64_t *)(map + line * LINE) = line;
	for (line = lines - 1; line; line--) {
		other = draw(line);
		next = *(uint64_t *)(map + line * LINE);
		*(uint64_t *)(map + line * LINE) = *(uint64_t *)(map + other * LINE);
		*(uint64_t *)(map + other * LINE) = next;
	}
	return lines;
}

static void chase(double seconds, const char *how)
{
	uint64_t lines = link_lines(), line = 0, loads = 0;
	long long begin, end;

	do {
		line = *(volatile uint64_t *)(map + line * LINE);
		loads++;
	} while (line);
	if (loads != lines)
		errx(1, "a cycle of %ju lines, not of %ju", loads, lines);
	loads = 0;
	begin = now();
	do {
		for (int i = 0; i < LOADS; i++)
			line = *(volatile uint64_t *)(map + line * LINE);
		loads += LOADS;
		end = now();
	} while (end - begin < seconds * 1e9);
	if (line >= lines)
		errx(1, "no line");
	printf("%s %ju %lld\n", how, loads, end - begin);
}

int main(int argc, char **argv)
{
	const char *how;
	int fd;

	if (argc != 5 && argc != 7)
		errx(2, "usage: memory FILE MIB read|write seq|rand CHUNK SECONDS, or chase SECONDS");
	fd = open(argv[1], O_RDWR);
	if (fd < 0)
		err(1, "%s", argv[1]);
	size = strtoul(argv[2], NULL, 0) << 20;
	map = map_file(fd, size, &how);
	if (argc == 5)
		chase(atof(argv[4]), how);
	else
		copy_chunks(*argv[3] == 'w', *argv[4] == 'r', strtoul(argv[5], NULL, 0), atof(argv[6]), how);
	return 0;
}
