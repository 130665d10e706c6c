// SPDX-License-Identifier: GPL-2.0-only
/*
 * In the guest: carries out the writers' plans until the power goes.
 *
 *	writer DIRECTORY PLANS NOISE WRITERS
 *
 * Writer w carries out PLANS/plan.<w>, a sequence of struct op, in
 * DIRECTORY/d<w>. It tells in shared memory which operation begins and which
 * one has returned. The memory is an ivshmem device's, a file of the host's.
 * The writers begin when the host says there that the plans are written.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <immintrin.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/fsuid.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "board.h"

#define PAGE 4096u

/* What the writer holds open under a name. */
static struct held {
	int fd;			/* 0: nothing */
	uint8_t *map, *sync_map;
} held[NAMES];

static const uint8_t *noise;

static const char *name_of(unsigned int name)
{
	static char text[2][16];
	static int turn;

	turn = !turn;
	snprintf(text[turn], sizeof(text[turn]), "n%u", name);
	return text[turn];
}

static void let_go(struct held *h)
{
	if (h->map)
		munmap(h->map, FILE_MAX);
	if (h->sync_map)
		munmap(h->sync_map, FILE_MAX);
	if (h->fd)
		close(h->fd);
	*h = (struct held){ 0 };
}

static int held_fd(unsigned int name)
{
	struct held *h = &held[name];

	if (!h->fd)
		h->fd = open(name_of(name), O_RDWR);
	if (h->fd < 0) {
		h->fd = 0;
		return -1;
	}
	return h->fd;
}

static uint8_t *map_file(int fd, bool sync)
{
	uint8_t *map = mmap(NULL, FILE_MAX, PROT_READ | PROT_WRITE,
			    sync ? MAP_SHARED_VALIDATE | MAP_SYNC : MAP_SHARED, fd, 0);

	return map == MAP_FAILED ? NULL : map;
}

static uint8_t *held_map(unsigned int name, bool sync)
{
	uint8_t **map = sync ? &held[name].sync_map : &held[name].map;
	int fd = held_fd(name);

	if (!*map && fd >= 0)
		*map = map_file(fd, sync);
	return *map;
}

static bool write_whole(ssize_t written, const struct op *op)
{
	if (written >= 0 && written != op->length)
		errno = EIO;
	return written == op->length;
}

static bool write_to(int fd, const struct op *op)
{
	static uint8_t aligned[FILE_MAX] __attribute__((aligned(4096)));
	const uint8_t *data = noise + op->noise;
	struct iovec vector = { (void *)data, op->length };

	switch (op->code) {
	case OP_APPEND:
		return write_whole(write(fd, data, op->length), op);
	case OP_WRITE_RWF_DSYNC:
		return write_whole(pwritev2(fd, &vector, 1, op->offset, RWF_DSYNC), op);
	case OP_WRITE_DIRECT:
		memcpy(aligned, data, op->length);
		return write_whole(pwrite(fd, aligned, op->length, op->offset), op);
	default:
		return write_whole(pwrite(fd, data, op->length, op->offset), op);
	}
}

static bool write_on(const struct op *op, int flags)
{
	bool good;
	int fd;

	if (!flags && !(op->flags & OP_FRESH)) {
		fd = held_fd(op->name);
		return fd >= 0 && write_to(fd, op);
	}
	fd = open(name_of(op->name), O_RDWR | flags);
	if (fd < 0)
		return false;
	good = write_to(fd, op);
	return !close(fd) && good;
}

static bool store(const struct op *op, bool sync)
{
	uint8_t *map, *fresh = NULL;

	if (op->flags & OP_FRESH) {
		int fd = open(name_of(op->name), O_RDWR);

		if (fd < 0)
			return false;
		fresh = map_file(fd, sync);
		close(fd);
	}
	map = op->flags & OP_FRESH ? fresh : held_map(op->name, sync);
	if (!map)
		return false;
	memcpy(map + op->offset, noise + op->noise, op->length);
	if (sync) {
		for (uint32_t line = op->offset & ~63u; line < op->offset + op->length; line += 64)
			_mm_clflush(map + line);
		_mm_sfence();
	}
	return !fresh || !munmap(fresh, FILE_MAX);
}

static bool sync_map(const struct op *op)
{
	uint8_t *map = held_map(op->name, false);

	return map && !msync(map + op->offset, op->length, MS_SYNC);
}

static bool sync_file(const struct op *op)
{
	int fd = op->flags & OP_FRESH ? open(name_of(op->name), O_RDONLY) : held_fd(op->name);
	bool good = fd >= 0 && !(op->code == OP_FSYNC ? fsync(fd) : fdatasync(fd));

	return (!(op->flags & OP_FRESH) || !close(fd)) && good;
}

static bool sync_directory(bool all)
{
	int fd = open(".", O_RDONLY | O_DIRECTORY);
	bool good = fd >= 0 && !(all ? syncfs(fd) : fsync(fd));

	return !close(fd) && good;
}

/* The new file has its owner from the transaction that creates it. */
static bool create(const struct op *op)
{
	int fd;

	setfsuid(op->id);
	fd = open(name_of(op->name), O_RDWR | O_CREAT | O_EXCL, 0644);
	setfsuid(0);
	if (fd < 0)
		return false;
	if (op->flags & OP_FRESH)
		return !close(fd);
	held[op->name].fd = fd;
	return true;
}

static bool change_name(const struct op *op)
{
	if (rename(name_of(op->name), name_of(op->name2)))
		return false;
	let_go(&held[op->name2]);
	held[op->name2] = held[op->name];
	held[op->name] = (struct held){ 0 };
	return true;
}

static bool carry_out(const struct op *op)
{
	switch (op->code) {
	case OP_WRITE:
	case OP_WRITE_RWF_DSYNC:
		return write_on(op, 0);
	case OP_WRITE_SYNC:
		return write_on(op, O_SYNC);
	case OP_WRITE_DSYNC:
		return write_on(op, O_DSYNC);
	case OP_WRITE_DIRECT:
		return write_on(op, O_DIRECT);
	case OP_APPEND:
		return write_on(op, O_APPEND);
	case OP_TRUNCATE:
		if (op->flags & OP_FRESH)
			return !truncate(name_of(op->name), op->length);
		return held_fd(op->name) >= 0 && !ftruncate(held_fd(op->name), op->length);
	case OP_PUNCH:
		return held_fd(op->name) >= 0 &&
		       !fallocate(held_fd(op->name), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, op->offset, op->length);
	case OP_STORE:
		return store(op, false);
	case OP_STORE_FLUSH:
		return store(op, true);
	case OP_MSYNC:
		return sync_map(op);
	case OP_FSYNC:
	case OP_FDATASYNC:
		return sync_file(op);
	case OP_SYNC_DIRECTORY:
		return sync_directory(false);
	case OP_SYNCFS:
		return sync_directory(true);
	case OP_CREATE:
		return create(op);
	case OP_RENAME:
		return change_name(op);
	case OP_LINK:
		return !link(name_of(op->name), name_of(op->name2));
	case OP_UNLINK:
		let_go(&held[op->name]);
		return !unlink(name_of(op->name));
	case OP_CLOSE:
		for (unsigned int name = 0; name < NAMES; name++)
			let_go(&held[name]);
		return true;
	}
	errno = ENOSYS;
	return false;
}

static void work(const struct op *plan, size_t nr_ops, volatile struct progress *progress)
{
	for (size_t i = 0; i < nr_ops; i++) {
		progress->begun = i + 1;
		if (!carry_out(&plan[i])) {
			progress->error = errno ? errno : EIO;
			exit(1);
		}
		progress->done = i + 1;
	}
	pause();	/* with all descriptors open, as a power cut finds a program */
}

static void carry_out_plan(const char *plan, size_t bytes, volatile struct progress *progress)
{
	work((const struct op *)plan, bytes / sizeof(struct op), progress);
}

int main(int argc, char **argv)
{
	size_t bytes;

	if (argc != 5) {
		fprintf(stderr, "usage: writer DIRECTORY PLANS NOISE WRITERS\n");
		return 2;
	}
	noise = map_whole(argv[3], &bytes);
	run_writers(argv[1], argv[2], atoi(argv[4]), carry_out_plan);
	return 0;
}
