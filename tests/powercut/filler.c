// SPDX-License-Identifier: GPL-2.0-only
/*
 * In the guest: keeps the cache full while the writers run.
 *
 *	filler FILE BYTES
 *
 * Writes FILE once and returns. A background process then writes some pages
 * at random places and syncs, again and again. BYTES is more than the cache
 * holds, so a task that needs a page waits for one to be written back. The
 * contents of FILE don't matter.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A chunk is few enough pages to be worth PMem; a burst of them is more than is kept free. */
enum { CHUNK = 16 * 4096, BURST = 30, PAUSE_US = 20000 };

static void write_chunk(int fd, long chunk)
{
	static char data[CHUNK];

	memset(data, chunk, sizeof(data));
	if (pwrite(fd, data, CHUNK, chunk * CHUNK) != CHUNK || fdatasync(fd)) {
		fprintf(stderr, "filler: %s\n", strerror(errno));
		exit(1);
	}
}

int main(int argc, char **argv)
{
	long chunks = argc == 3 ? atol(argv[2]) / CHUNK : 0;
	int fd = chunks ? open(argv[1], O_RDWR | O_CREAT, 0644) : -1;

	if (fd < 0) {
		fprintf(stderr, "usage: filler FILE BYTES\n");
		return 2;
	}
	for (long chunk = 0; chunk < chunks; chunk++)
		write_chunk(fd, chunk);
	if (fork())
		return 0;
	for (;;) {
		for (int n = random() % 20 ? 1 : BURST; n > 0; n--)
			write_chunk(fd, random() % chunks);
		usleep(PAUSE_US);
	}
}
