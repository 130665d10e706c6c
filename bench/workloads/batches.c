// SPDX-License-Identifier: GPL-2.0-only
/*
 * Batches of pages are written to a file, each followed by fdatasync(): pages that are drawn at random, or one piece
 * after the other. Prints how many nanoseconds each batch took, a line each.
 *
 *	batches FILE PAGES BATCH scattered|piece SECONDS	PAGES, of the file, and BATCH in pages
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define PAGE	4096
#define LEAST	5

static long long now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return time.tv_sec * 1000000000LL + time.tv_nsec;
}

/* No two pages of a batch are neighbours: each is drawn from a part of the file of its own. */
static int scattered(int fd, const char *data, long pages, long batch)
{
	long part = pages / batch;

	for (long i = 0; i < batch; i++) {
		long page = i * part + random() % (part - 1);

		if (pwrite(fd, data, PAGE, page * PAGE) != PAGE)
			return -1;
	}
	return fdatasync(fd);
}

static int piece(int fd, const char *data, long pages, long batch)
{
	static long at;
	ssize_t length = batch * PAGE;

	if (pwrite(fd, data, length, at * PAGE) != length)
		return -1;
	at = at + 2 * batch > pages ? 0 : at + batch;
	return fdatasync(fd);
}

int main(int argc, char **argv)
{
	long pages, batch;
	long long end, begin;
	char *data;
	int fd;

	if (argc != 6)
		return 2;
	pages = atol(argv[2]);
	batch = atol(argv[3]);
	fd = open(argv[1], O_RDWR);
	data = malloc(batch * PAGE);
	if (fd < 0 || !data) {
		perror(argv[1]);
		return 1;
	}
	memset(data, 'b', batch * PAGE);
	end = now() + atof(argv[5]) * 1e9;
	for (int i = 0; i < LEAST || now() < end; i++) {
		begin = now();
		if ((*argv[4] == 's' ? scattered : piece)(fd, data, pages, batch)) {
			perror("batch");
			return 1;
		}
		printf("%lld\n", now() - begin);
	}
	return 0;
}
