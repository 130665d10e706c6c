// SPDX-License-Identifier: GPL-2.0-only
/*
 * What it costs to note a number in the inode of a file, without waiting for storage.
 *
 *	sequence FOLDER
 *
 * A log of names could note its sequence number so at each commit (docs/decisions/names.md). Two ways are
 * measured: the file's mtime, and an extended attribute of 8 bytes (that needs root). Each is measured alone, beside a
 * process that creates and syncs files, which keeps the journal committing, and with pauses between the calls.
 * No experiment of bench/run uses it. Build it with `cc -O2 -o sequence sequence.c`; it needs no guest.
 */
#define _GNU_SOURCE
#include <err.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <time.h>
#include <unistd.h>

#define CALLS		300000
#define PACED_CALLS	20000
#define PAUSE_US	50
#define FILES		1000

enum way { MTIME, XATTR };

static double took[CALLS];

static double now_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1e6 + t.tv_nsec / 1e3;
}

static void note(int fd, enum way way, long number)
{
	struct timespec times[2] = { { .tv_nsec = UTIME_OMIT }, { .tv_sec = number, .tv_nsec = number } };

	if (way == MTIME ? futimens(fd, times) : fsetxattr(fd, "trusted.sequence", &number, sizeof(number), 0))
		err(1, way == MTIME ? "futimens" : "fsetxattr");
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static void measure(const char *what, int fd, enum way way, int calls, int pause_us)
{
	double sum = 0;

	for (int i = 0; i < calls; i++) {
		double began = now_us();

		note(fd, way, i + 1);
		took[i] = now_us() - began;
		sum += took[i];
		if (pause_us)
			usleep(pause_us);
	}
	qsort(took, calls, sizeof(*took), compare);
	printf("%-28s mean %6.2f  p50 %6.2f  p99 %6.2f  p99.9 %8.2f  max %8.0f us\n", what, sum / calls, took[calls / 2],
	       took[calls / 100 * 99], took[calls / 1000 * 999], took[calls - 1]);
}

static void create_and_sync(const char *folder)
{
	char name[4096];

	for (unsigned int i = 0;; i++) {
		int fd;

		snprintf(name, sizeof(name), "%s/beside%u", folder, i % FILES);
		fd = open(name, O_RDWR | O_CREAT | O_TRUNC, 0600);
		if (fd < 0 || write(fd, name, sizeof(name)) != sizeof(name) || fsync(fd))
			err(1, "%s", name);
		close(fd);
	}
}

int main(int argc, char **argv)
{
	char name[4096];
	pid_t beside;
	int fd;

	if (argc != 2)
		errx(64, "sequence FOLDER");
	snprintf(name, sizeof(name), "%s/sequence", argv[1]);
	fd = open(name, O_RDWR | O_CREAT, 0600);
	if (fd < 0)
		err(1, "%s", name);
	measure("mtime, alone", fd, MTIME, CALLS, 0);
	measure("xattr, alone", fd, XATTR, CALLS, 0);
	beside = fork();
	if (!beside)
		create_and_sync(argv[1]);
	measure("mtime, beside syncs", fd, MTIME, CALLS, 0);
	measure("xattr, beside syncs", fd, XATTR, CALLS, 0);
	measure("mtime, beside syncs, paced", fd, MTIME, PACED_CALLS, PAUSE_US);
	measure("xattr, beside syncs, paced", fd, XATTR, PACED_CALLS, PAUSE_US);
	kill(beside, SIGKILL);
	waitpid(beside, NULL, 0);
	return 0;
}
