// SPDX-License-Identifier: GPL-2.0-only
/*
 * In the guest: tells the host which names, attributes and bytes are there after a cut.
 *
 *	names-dump DIRECTORY OUT WRITERS
 *
 * OUT.index has a line for every name: writer, the folder's owner, name, kind, and the owner, inode, link count, mode, group,
 * atime and mtime (ns), extended attribute (-1: none) and size of what it leads to, and where in OUT.data its bytes or its
 * target begin. A file with several names is told once for each.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

static FILE *index_file, *data_file;

static void __attribute__((noreturn)) die(const char *what)
{
	fprintf(stderr, "names-dump: %s: %s\n", what, strerror(errno));
	exit(1);
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

/* One byte more than there should be: the size told and the bytes read must agree. */
static void copy(int folder, const char *name, const struct stat *st)
{
	size_t size = st->st_size, have = 0;
	char *bytes = malloc(size + 1);
	ssize_t n = 0;

	if (!bytes)
		die("malloc");
	if (S_ISLNK(st->st_mode)) {
		n = readlinkat(folder, name, bytes, size + 1);
		have = n > 0 ? n : 0;
	} else {
		int fd = openat(folder, name, O_RDONLY | O_NOATIME);

		if (fd < 0)
			die(name);
		while ((n = read(fd, bytes + have, size + 1 - have)) > 0)
			have += n;
		close(fd);
	}
	if (n < 0)
		die(name);
	if (have != size) {
		fprintf(stderr, "names-dump: %s: %zu bytes read, size is %zu\n", name, have, size);
		exit(1);
	}
	if (fwrite(bytes, 1, size, data_file) != size)
		die("OUT.data");
	free(bytes);
}

static char kind(const struct stat *st)
{
	switch (st->st_mode & S_IFMT) {
	case S_IFREG:
		return 'f';
	case S_IFDIR:
		return 'd';
	case S_IFLNK:
		return 'l';
	case S_IFIFO:
		return 'p';
	}
	return '?';
}

static long long xattr(int folder, const char *name, const struct stat *st)
{
	long long value = -1;
	ssize_t length;
	int fd;

	if (kind(st) != 'f' && kind(st) != 'd')
		return -1;
	fd = openat(folder, name, O_RDONLY | O_NOATIME);
	if (fd < 0)
		die(name);
	length = fgetxattr(fd, "user.number", &value, sizeof(value));
	if (length < 0 && errno != ENODATA)
		die(name);
	close(fd);
	return value;
}

static long long ns(const struct timespec *time)
{
	return time->tv_sec * 1000000000LL + time->tv_nsec;
}

static void tell(int writer, unsigned int owner, int folder, const char *name, const struct stat *st)
{
	long at = ftell(data_file);

	fprintf(index_file, "%d %u %s %c %u %ju %ju %u %u %lld %lld %lld %jd %ld\n", writer, owner, name, kind(st), st->st_uid,
		(uintmax_t)st->st_ino, (uintmax_t)st->st_nlink, st->st_mode & 07777, st->st_gid, ns(&st->st_atim),
		ns(&st->st_mtim), xattr(folder, name, st), (intmax_t)st->st_size, at);
	if (kind(st) == 'f' || kind(st) == 'l')
		copy(folder, name, st);
}

static void walk(int writer, int folder, unsigned int owner)
{
	DIR *names = fdopendir(folder);
	struct dirent *entry;
	struct stat st;

	if (!names)
		die("fdopendir");
	while ((entry = readdir(names))) {
		if (!strcmp(entry->d_name, ".") || !strcmp(entry->d_name, ".."))
			continue;
		if (fstatat(folder, entry->d_name, &st, AT_SYMLINK_NOFOLLOW))
			die(entry->d_name);
		tell(writer, owner, folder, entry->d_name, &st);
		if (S_ISDIR(st.st_mode)) {
			int below = openat(folder, entry->d_name, O_RDONLY | O_DIRECTORY | O_NOATIME);

			if (below < 0)
				die(entry->d_name);
			walk(writer, below, st.st_uid);
		}
	}
	closedir(names);
}

int main(int argc, char **argv)
{
	if (argc != 4) {
		fprintf(stderr, "usage: names-dump DIRECTORY OUT WRITERS\n");
		return 2;
	}
	index_file = create(argv[2], "index");
	data_file = create(argv[2], "data");
	for (int w = 0; w < atoi(argv[3]); w++) {
		char directory[2048];
		int folder;

		snprintf(directory, sizeof(directory), "%s/d%d", argv[1], w);
		folder = open(directory, O_RDONLY | O_DIRECTORY);
		if (folder < 0)
			die(directory);
		walk(w, folder, 0);
	}
	if (fclose(index_file) || fclose(data_file))
		die(argv[2]);
	return 0;
}
