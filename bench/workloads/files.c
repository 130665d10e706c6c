// SPDX-License-Identifier: GPL-2.0-only
/*
 * Many files, as Filebench makes them for the PMDK thesis (4.3, figure 9). Stands in for Filebench. Prints
 * how many nanoseconds each file took, a line each; what a phase needs is prepared before, untimed, and
 * synced.
 *
 *	files FOLDER create|write|delete COUNT
 *
 * create	a new file, 64 KiB in one piece, close
 * write	an old file is opened, overwritten by 16 calls of 4 KiB, and closed
 * delete	an old file is unlinked
 *
 * Each folder has ten entries. Nothing is synced in the time that counts. A file has its number in each of
 * its pages.
 */
#define _GNU_SOURCE
#include <sys/stat.h>
#include "driver.h"

enum { SIZE = 64 << 10, PIECE = 4096, NAME = 64 };

static char data[SIZE];

static const char *name_of(int file)
{
	static char name[NAME];

	snprintf(name, sizeof(name), "%d/%d/%d/%d", file / 1000, file / 100, file / 10, file);
	return name;
}

static void fill(int file, char letter)
{
	memset(data, letter, sizeof(data));
	for (int at = 0; at < SIZE; at += PIECE)
		memcpy(data + at, &file, sizeof(file));
}

static void write_file(int file, int flags, size_t piece)
{
	const char *name = name_of(file);
	int fd = open(name, O_WRONLY | flags, 0644);

	if (fd < 0)
		err(1, "%s", name);
	for (size_t at = 0; at < SIZE; at += piece)
		if (pwrite(fd, data + at, piece, at) != (ssize_t)piece)
			err(1, "%s", name);
	if (close(fd))
		err(1, "%s", name);
}

static void make_folders(int count)
{
	char name[NAME];

	for (int file = 0; file < count; file++) {
		strcpy(name, name_of(file));
		for (char *slash = strchr(name, '/'); slash; slash = strchr(slash + 1, '/')) {
			*slash = 0;
			if (file % 10 == 0 && mkdir(name, 0755) && access(name, F_OK))
				err(1, "%s", name);
			*slash = '/';
		}
	}
}

int main(int argc, char **argv)
{
	long long begin, *took;
	int count;

	if (argc != 4 || !strchr("cwd", *argv[2]))
		errx(2, "usage: files FOLDER create|write|delete COUNT");
	count = atoi(argv[3]);
	took = malloc(count * sizeof(*took));
	if (chdir(argv[1]) || !took)
		err(1, "%s", argv[1]);
	make_folders(count);
	for (int file = 0; *argv[2] != 'c' && file < count; file++) {
		fill(file, 'c');
		write_file(file, O_CREAT | O_EXCL, SIZE);
	}
	sync();
	for (int file = 0; file < count; file++) {
		fill(file, *argv[2]);
		begin = now();
		if (*argv[2] == 'c')
			write_file(file, O_CREAT | O_EXCL, SIZE);
		else if (*argv[2] == 'w')
			write_file(file, 0, PIECE);
		else if (unlink(name_of(file)))
			err(1, "%s", name_of(file));
		took[file] = now() - begin;
	}
	for (int file = 0; file < count; file++)
		printf("%lld\n", took[file]);
	return 0;
}
