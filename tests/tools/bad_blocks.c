// SPDX-License-Identifier: GPL-2.0-only
/*
 * A library to preload. It gives an image bad blocks: the sectors of 512 bytes in $BAD_SECTORS ("8 9 64").
 *
 * As on a block device, a page with such a sector can't be read through the page cache: a call fails with
 * EIO, a load from a mapping with SIGBUS. With O_DIRECT, only the sector fails. A write of the whole page
 * makes its sectors good, unless $BAD_FOREVER is set, or $BAD_FULL, as if the file system were full. With $BAD_STOP, the program ends right after that.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define PAGE	4096
#define SECTOR	512
#define MAX	64

static struct {
	off_t sectors[MAX];		/* in bytes; -1: good again */
	int n;
	char *base;
	int fd;
} bad = { .n = -1 };

static void read_list(void)
{
	char *text = getenv("BAD_SECTORS"), *end;

	if (bad.n >= 0)
		return;
	for (bad.n = 0; text && *text && bad.n < MAX; text = end)
		bad.sectors[bad.n++] = strtoll(text, &end, 10) * SECTOR;
}

/* Whether a range, widened to blocks of @unit bytes, has a bad sector. */
static bool is_bad(off_t offset, size_t len, int unit)
{
	off_t from = offset / unit * unit, to = (offset + len + unit - 1) / unit * unit;

	read_list();
	for (int i = 0; i < bad.n; i++)
		if (bad.sectors[i] >= from && bad.sectors[i] < to)
			return true;
	return false;
}

/* A page of an empty file: an access ends in SIGBUS. */
static void lose(off_t page)
{
	int empty = memfd_create("empty", 0);

	syscall(SYS_mmap, bad.base + page, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, empty, 0);
	close(empty);
}

static void heal(off_t page)
{
	for (int i = 0; i < bad.n; i++)
		if (bad.sectors[i] / PAGE * PAGE == page)
			bad.sectors[i] = -1;
	if (bad.base)
		syscall(SYS_mmap, bad.base + page, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, bad.fd, page);
}

void *mmap64(void *addr, size_t len, int protection, int flags, int fd, off_t offset)
{
	char *base = (char *)syscall(SYS_mmap, addr, len, protection, flags, fd, offset);

	read_list();
	if (!(flags & MAP_SHARED) || addr || fd < 0 || len < 1 << 20 || base == MAP_FAILED)
		return base;
	bad.base = base;
	bad.fd = fd;
	for (int i = 0; i < bad.n; i++)
		if (bad.sectors[i] >= 0)
			lose(bad.sectors[i] / PAGE * PAGE);
	return base;
}

ssize_t pread64(int fd, void *to, size_t len, off_t offset)
{
	int flags = fcntl(fd, F_GETFL);
	ssize_t got;

	if (is_bad(offset, len, flags & O_DIRECT ? SECTOR : PAGE)) {
		errno = EIO;
		return -1;
	}
	/* The file system of the image may not be able to read with O_DIRECT, or single sectors. */
	fcntl(fd, F_SETFL, flags & ~O_DIRECT);
	got = syscall(SYS_pread64, fd, to, len, offset);
	fcntl(fd, F_SETFL, flags);
	return got;
}

static bool may_write(off_t offset, size_t len)
{
	if (!is_bad(offset, len, PAGE))
		return true;
	if (len == PAGE && offset % PAGE == 0 && !getenv("BAD_FOREVER") && !getenv("BAD_FULL")) {
		heal(offset);
		return true;
	}
	errno = getenv("BAD_FULL") ? ENOSPC : EIO;
	return false;
}

ssize_t pwrite64(int fd, const void *from, size_t len, off_t offset)
{
	bool heals = is_bad(offset, len, PAGE);
	ssize_t written = may_write(offset, len) ? syscall(SYS_pwrite64, fd, from, len, offset) : -1;

	if (heals && getenv("BAD_STOP"))
		_exit(99);
	return written;
}
