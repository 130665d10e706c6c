// SPDX-License-Identifier: GPL-2.0-only
/*
 * In the guest: carries out the writers' plans about names and attributes until the power goes.
 *
 *	names-writer DIRECTORY PLANS NOISE WRITERS
 *
 * ops.py has the plans' format. A new object has its number as its owner, from the transaction that creates it.
 */
#define _GNU_SOURCE
#include <stdbool.h>
#include <stdint.h>
#include <sys/fsuid.h>
#include <sys/syscall.h>
#include <sys/xattr.h>

#include "../board.h"

enum { SLOTS = 8, WORD = 256, WRITE_STEP = 64 };
#define OWNER_BIT	0x80000000u
#define RENAME_NOREPLACE_FLAG	1
#define RENAME_EXCHANGE_FLAG	2

struct line {
	char code[WORD], path[WORD], path2[WORD];
	uint32_t id, n;
	long long x, y;
};

static int slots[SLOTS];
static const char *noise;
static size_t noise_bytes;

static bool same(const struct line *line, const char *code)
{
	return !strcmp(line->code, code);
}

/* A descriptor of the file at a path or in a slot. */
static int take(const char *path, int flags)
{
	return *path == '@' ? slots[atoi(path + 1)] : open(path, flags);
}

static bool give(const char *path, int fd, bool good)
{
	int error = errno;

	if (*path != '@' && fd >= 0 && close(fd))
		return false;
	errno = error;
	return good;
}

static bool keep(int fd, long long slot)
{
	if (fd < 0)
		return false;
	if (slot < 0)
		return !close(fd);
	slots[slot] = fd;
	return true;
}

static bool write_data(int fd, const struct line *line)
{
	static char data[FILE_MAX];
	uint32_t mark[2] = { line->id, line->n };
	ssize_t written;

	memcpy(data, noise + line->n % (noise_bytes - line->y), line->y);
	for (size_t at = 0; at + sizeof(mark) <= (size_t)line->y; at += WRITE_STEP)
		memcpy(data + at, mark, sizeof(mark));
	written = pwrite(fd, data, line->y, line->x);
	if (written >= 0 && written != line->y)
		errno = EIO;
	return written == line->y;
}

/* True: the code is one of these, and @good says how it went. */
static bool make(const struct line *line, bool *good)
{
	char target[WORD];

	setfsuid(line->id);
	if (same(line, "create")) {
		*good = keep(open(line->path, O_RDWR | O_CREAT | O_EXCL, (mode_t)line->x), line->y);
	} else if (same(line, "tmpfile")) {
		*good = keep(open(line->path, O_RDWR | O_TMPFILE, (mode_t)line->x), line->y);
	} else if (same(line, "mkdir")) {
		*good = !mkdir(line->path, line->x);
	} else if (same(line, "fifo")) {
		*good = !mkfifo(line->path, line->x);
	} else if (same(line, "symlink")) {
		memset(target, 'x', sizeof(target));
		target[snprintf(target, sizeof(target), "%u", line->id)] = 'x';
		target[line->x] = 0;
		*good = !symlink(target, line->path);
	} else {
		setfsuid(0);
		return false;
	}
	setfsuid(0);
	return true;
}

static bool change_names(const struct line *line, bool *good)
{
	char path[WORD];

	if (same(line, "unlink")) {
		*good = !unlink(line->path);
	} else if (same(line, "rmdir")) {
		*good = !rmdir(line->path);
	} else if (same(line, "rename")) {
		*good = !rename(line->path, line->path2);
	} else if (same(line, "exchange")) {
		*good = !renameat2(AT_FDCWD, line->path, AT_FDCWD, line->path2, RENAME_EXCHANGE_FLAG);
	} else if (same(line, "noreplace")) {
		*good = !renameat2(AT_FDCWD, line->path, AT_FDCWD, line->path2, RENAME_NOREPLACE_FLAG);
	} else if (same(line, "link") && *line->path == '@') {
		snprintf(path, sizeof(path), "/proc/self/fd/%d", slots[atoi(line->path + 1)]);
		*good = !linkat(AT_FDCWD, path, AT_FDCWD, line->path2, AT_SYMLINK_FOLLOW);
	} else if (same(line, "link")) {
		*good = !link(line->path, line->path2);
	} else {
		return false;
	}
	return true;
}

static bool set_times(int fd, const struct line *line)
{
	struct timespec times[2] = { { line->x / 1000000000, line->x % 1000000000 },
				     { line->y / 1000000000, line->y % 1000000000 } };

	return !futimens(fd, times);
}

/* A negative value removes it; it may not be there. */
static bool set_xattr(int fd, const struct line *line)
{
	if (line->x < 0)
		return !fremovexattr(fd, "user.number") || errno == ENODATA;
	return !fsetxattr(fd, "user.number", &line->x, sizeof(line->x), 0);
}

/* What is done with a descriptor. */
static bool on_file(const struct line *line)
{
	bool change = same(line, "write") || same(line, "truncate");
	int fd = take(line->path, change ? O_RDWR : O_RDONLY);
	bool good = fd >= 0;

	if (!good)
		;
	else if (same(line, "write"))
		good = write_data(fd, line);
	else if (same(line, "truncate"))
		good = !ftruncate(fd, line->x);
	else if (same(line, "chmod"))
		good = !fchmod(fd, line->x);
	else if (same(line, "chown"))
		good = !fchown(fd, line->id | (line->n ? OWNER_BIT : 0), line->x);
	else if (same(line, "utimes"))
		good = set_times(fd, line);
	else if (same(line, "xattr"))
		good = set_xattr(fd, line);
	else if (same(line, "fsync"))
		good = !fsync(fd);
	else if (same(line, "fdatasync"))
		good = !fdatasync(fd);
	else if (same(line, "syncfs"))
		good = !syncfs(fd);
	else {
		errno = ENOSYS;
		good = false;
	}
	return give(line->path, fd, good);
}

static bool carry_out(const struct line *line)
{
	bool good;

	if (make(line, &good) || change_names(line, &good))
		return good;
	if (same(line, "open"))
		return keep(open(line->path, O_RDWR), line->y);
	if (same(line, "close"))
		return !close(slots[atoi(line->path + 1)]);
	return on_file(line);
}

static void carry_out_plan(const char *plan, size_t bytes, volatile struct progress *progress)
{
	const char *end = plan + bytes, *newline;
	char text[4 * WORD] = "";
	struct line line;
	uint64_t number = 0;

	while ((newline = memchr(plan, '\n', end - plan))) {
		/* A copy, since sscanf() looks for the end of all that there is. */
		memcpy(text, plan, newline - plan);
		text[newline - plan] = 0;
		if (sscanf(text, "%255s %255s %255s %u %u %lld %lld", line.code, line.path, line.path2, &line.id,
			   &line.n, &line.x, &line.y) != 7)
			die(text);
		progress->begun = ++number;
		if (!carry_out(&line)) {
			progress->error = errno ? errno : EIO;
			exit(1);
		}
		progress->done = number;
		plan = newline + 1;
	}
	pause();	/* with all descriptors open, as a power cut finds a program */
}

int main(int argc, char **argv)
{
	if (argc != 5) {
		fprintf(stderr, "usage: names-writer DIRECTORY PLANS NOISE WRITERS\n");
		return 2;
	}
	noise = map_whole(argv[3], &noise_bytes);
	run_writers(argv[1], argv[2], atoi(argv[4]), carry_out_plan);
	return 0;
}
