// SPDX-License-Identifier: GPL-2.0-only
/*
 * In the guest: tells the host which names and bytes are there after a cut.
 *
 *	dump DIRECTORY OUT WRITERS [mmap]
 *
 * OUT.index has a line for every name: writer, name, file (owner), inode,
 * links, size, and where in OUT.data its bytes begin (-1: told before under
 * another name). With `mmap` they are read through mappings.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { INODES = 4096 };

static bool mapped;
static uint64_t told[INODES];
static int nr_told;

static void __attribute__((noreturn)) die(const char *what)
{
	fprintf(stderr, "dump: %s: %s\n", what, strerror(errno));
	exit(1);
}

static bool told_before(uint64_t inode)
{
	for (int i = 0; i < nr_told; i++)
		if (told[i] == inode)
			return true;
	if (nr_told < INODES)
		told[nr_told++] = inode;
	return false;
}

static void copy(int fd, size_t size, const char *path, FILE *data)
{
	uint8_t *bytes = malloc(size + 1);

	if (!bytes)
		die("malloc");
	if (mapped && size) {
		void *map = mmap(NULL, size, PROT_READ, MAP_SHARED, fd, 0);

		if (map == MAP_FAILED)
			die(path);
		memcpy(bytes, map, size);
		munmap(map, size);
	} else {
		size_t have = 0;
		ssize_t n;

		/* One byte more than there should be: the size told and the bytes read must agree. */
		while ((n = read(fd, bytes + have, size + 1 - have)) > 0)
			have += n;
		if (n < 0)
			die(path);
		if (have != size) {
			fprintf(stderr, "dump: %s: %zu bytes read, size is %zu\n", path, have, size);
			exit(1);
		}
	}
	if (fwrite(bytes, 1, size, data) != size)
		die("OUT.data");
	free(bytes);
}

static void tell(int writer, const char *directory, const char *name, FILE *index, FILE *data)
{
	char path[4096];
	struct stat st;
	long at = -1;
	int fd;

	snprintf(path, sizeof(path), "%s/%s", directory, name);
	fd = open(path, O_RDONLY);
	if (fd < 0 || fstat(fd, &st))
		die(path);
	if (!told_before(st.st_ino)) {
		at = ftell(data);
		copy(fd, st.st_size, path, data);
	}
	close(fd);
	fprintf(index, "%d %s %u %ju %ju %jd %ld\n", writer, name, st.st_uid, (uintmax_t)st.st_ino,
		(uintmax_t)st.st_nlink, (intmax_t)st.st_size, at);
}

static FILE *create(const char *out, const char *suffix)
{
	char path[4096];
	FILE *file;

	snprintf(path, sizeof(path), "%s.%s", out, suffix);
	file = fopen(path, "w");
	if (!file)
		die(path);
	return file;
}

int main(int argc, char **argv)
{
	FILE *index, *data;

	if (argc < 4 || argc > 5) {
		fprintf(stderr, "usage: dump DIRECTORY OUT WRITERS [mmap]\n");
		return 2;
	}
	mapped = argc == 5;
	index = create(argv[2], "index");
	data = create(argv[2], "data");
	for (int w = 0; w < atoi(argv[3]); w++) {
		char directory[2048];
		struct dirent *entry;
		DIR *names;

		snprintf(directory, sizeof(directory), "%s/d%d", argv[1], w);
		names = opendir(directory);
		if (!names)
			die(directory);
		while ((entry = readdir(names)))
			if (entry->d_name[0] != '.')
				tell(w, directory, entry->d_name, index, data);
		closedir(names);
	}
	if (fclose(index) || fclose(data))
		die(argv[2]);
	return 0;
}
