// SPDX-License-Identifier: GPL-2.0-only
/*
 * Programs that make names durable, one step after the other. Prints how many nanoseconds each step took, a line each.
 *
 *	names FOLDER create|maildir|replace|wal SECONDS
 *
 * create	a new file of 4 KiB, fsync
 * maildir	a new file of 4 KiB in tmp/, fsync, rename to new/, fsync of new/
 * replace	a new file of 4 KiB, fsync, rename over f, fsync of the folder
 * wal		a new segment of 1 MiB, written in one piece, fsync, fsync of the folder; the segment SEGMENTS before it goes
 */
#define _GNU_SOURCE
#include <err.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { SMALL = 4096, SEGMENT = 1 << 20, SEGMENTS = 8, LEAST = 5, MOST = 30000 /* a small file system has as many inodes */ };

static char data[SEGMENT];
static long long took[MOST];

static long long now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return time.tv_sec * 1000000000LL + time.tv_nsec;
}

/* Each file says which step wrote it. */
static void make(const char *name, int step, size_t size)
{
	int fd = open(name, O_WRONLY | O_CREAT | O_EXCL, 0644);

	memcpy(data, &step, sizeof(step));
	if (fd < 0 || write(fd, data, size) != (ssize_t)size || fsync(fd) || close(fd))
		err(1, "%s", name);
}

static void sync_folder(const char *folder)
{
	static int fd;

	if (!fd)
		fd = open(folder, O_RDONLY | O_DIRECTORY);
	if (fd < 0 || fsync(fd))
		err(1, "%s", folder);
}

static void move(const char *from, const char *to)
{
	if (rename(from, to))
		err(1, "rename %s %s", from, to);
}

static void create(int step)
{
	char name[32];

	snprintf(name, sizeof(name), "f%d", step);
	make(name, step, SMALL);
}

static void maildir(int step)
{
	char from[32], to[32];

	snprintf(from, sizeof(from), "tmp/%d", step);
	snprintf(to, sizeof(to), "new/%d", step);
	make(from, step, SMALL);
	move(from, to);
	sync_folder("new");
}

static void replace(int step)
{
	make("f.new", step, SMALL);
	move("f.new", "f");
	sync_folder(".");
}

static void wal(int step)
{
	char name[32];

	snprintf(name, sizeof(name), "wal%d", step);
	make(name, step, SEGMENT);
	sync_folder(".");
	snprintf(name, sizeof(name), "wal%d", step - SEGMENTS);
	if (step >= SEGMENTS && unlink(name))
		err(1, "%s", name);
}

static const struct {
	const char *name;
	void (*step)(int step);
} programs[] = { { "create", create }, { "maildir", maildir }, { "replace", replace }, { "wal", wal } };

int main(int argc, char **argv)
{
	void (*step)(int step) = NULL;
	long long end, begin;
	int steps = 0;

	for (size_t i = 0; argc == 4 && i < sizeof(programs) / sizeof(*programs); i++)
		if (!strcmp(argv[2], programs[i].name))
			step = programs[i].step;
	if (!step)
		errx(2, "usage: names FOLDER create|maildir|replace|wal SECONDS");
	if (chdir(argv[1]))
		err(1, "%s", argv[1]);
	memset(data, 'n', sizeof(data));
	for (end = now() + atof(argv[3]) * 1e9; steps < LEAST || (now() < end && steps < MOST); steps++) {
		begin = now();
		step(steps);
		took[steps] = now() - begin;
	}
	for (int i = 0; i < steps; i++)
		printf("%lld\n", took[i]);
	return 0;
}
