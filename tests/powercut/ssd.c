// SPDX-License-Identifier: GPL-2.0-only
/*
 * An SSD with a volatile write cache that is lost when the machine goes.
 *
 *	ssd SOCKET IMAGE BYTES SEED REPORT
 *
 * QEMU speaks NBD with it, as the medium of the guest's NVMe device. IMAGE
 * always shows the newest writes; beside it, in this process, are the writes
 * that no flush has covered yet (struct write) and what the blocks under them
 * held before (old[]). A flush forgets those it covers. When QEMU is gone, a
 * random part of what is left is taken back (lose()), and IMAGE is what a
 * machine would find after a power cut.
 *
 * A flush covers the writes that were answered before the flush arrived, and
 * no later ones. So the SSD loses writes of a file system that flushes without
 * waiting for its writes. A write with FUA is never taken back. A block of
 * 4 KiB is written whole or not at all; a write of several blocks may be torn.
 */
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

enum { BLOCK = 4096, LONGEST = 32 << 20, FLUSH_NS_MAX = 1500000 };

/* NBD, as nbd/doc/proto.md has it. */
#define NBD_MAGIC	0x4e42444d41474943ULL
#define OPTION_MAGIC	0x49484156454f5054ULL
#define REPLY_MAGIC	0x0003e889045565a9ULL
enum { OPT_EXPORT_NAME = 1, OPT_ABORT = 2, OPT_INFO = 6, OPT_GO = 7 };
enum { REP_ACK = 1, REP_INFO = 3 };
#define REP_ERR_UNSUP	0x80000001u
enum { HANDSHAKE_FIXED_NO_ZEROES = 3, EXPORT_FLAGS = 1 | 4 | 8 /* flags, flush, FUA */ };
enum { CMD_READ, CMD_WRITE, CMD_DISC, CMD_FLUSH, CMD_FLAG_FUA = 1 };
#define REQUEST		0x25609513u
#define SIMPLE_REPLY	0x67446698u
enum { REQUEST_BYTES = 28 };

struct write {
	uint64_t offset;
	uint32_t length;
	bool fua;
	uint8_t *data;
};

static uint8_t *image;
static uint64_t size;
static uint8_t **old;		/* a block's durable content, where a write is in the cache */
static struct write *writes;
static size_t nr_writes, max_writes;
static struct { uint64_t writes, fua, flushes, cached, kept, torn, lost; } count;
static uint64_t random_state;

static void __attribute__((noreturn)) die(const char *what)
{
	fprintf(stderr, "ssd: %s: %s\n", what, strerror(errno));
	exit(1);
}

static uint64_t random_number(void)	/* xorshift64* */
{
	random_state ^= random_state >> 12;
	random_state ^= random_state << 25;
	random_state ^= random_state >> 27;
	return random_state * 0x2545f4914f6cdd1dULL;
}

static bool chance(unsigned int percent)
{
	return random_number() % 100 < percent;
}

/* Calls @each for the part of a write in every block it touches. */
static void for_each_block(const struct write *w, void (*each)(uint64_t block, uint32_t at, const uint8_t *data,
							      uint32_t bytes))
{
	uint64_t offset = w->offset, end = w->offset + w->length;

	while (offset < end) {
		uint32_t at = offset % BLOCK, bytes = BLOCK - at;

		if (bytes > end - offset)
			bytes = end - offset;
		each(offset / BLOCK, at, w->data + (offset - w->offset), bytes);
		offset += bytes;
	}
}

static void save_old(uint64_t block, uint32_t at, const uint8_t *data, uint32_t bytes)
{
	(void)at, (void)data, (void)bytes;
	if (old[block])
		return;
	old[block] = malloc(BLOCK);
	if (!old[block])
		die("malloc");
	memcpy(old[block], image + block * BLOCK, BLOCK);
}

static void into_old(uint64_t block, uint32_t at, const uint8_t *data, uint32_t bytes)
{
	memcpy(old[block] + at, data, bytes);
}

static void drop_old(uint64_t block, uint32_t at, const uint8_t *data, uint32_t bytes)
{
	(void)at, (void)data, (void)bytes;
	free(old[block]);
	old[block] = NULL;
}

static void into_image(uint64_t block, uint32_t at, const uint8_t *data, uint32_t bytes)
{
	memcpy(image + block * BLOCK + at, data, bytes);
}

static void old_into_image(uint64_t block, uint32_t at, const uint8_t *data, uint32_t bytes)
{
	(void)at, (void)data, (void)bytes;
	memcpy(image + block * BLOCK, old[block], BLOCK);
}

static void into_image_perhaps(uint64_t block, uint32_t at, const uint8_t *data, uint32_t bytes)
{
	if (chance(50))
		into_image(block, at, data, bytes);
}

static void cache_write(uint64_t offset, uint32_t length, bool fua, const uint8_t *data)
{
	struct write *w;

	if (nr_writes == max_writes) {
		max_writes = max_writes ? 2 * max_writes : 1024;
		writes = realloc(writes, max_writes * sizeof(*writes));
		if (!writes)
			die("realloc");
	}
	w = &writes[nr_writes++];
	*w = (struct write){ offset, length, fua, malloc(length) };
	if (!w->data)
		die("malloc");
	memcpy(w->data, data, length);
	for_each_block(w, save_old);
	for_each_block(w, into_image);
	count.writes++;
	count.fua += fua;
}

/* Makes the first @covered writes durable. */
static void flush(size_t covered)
{
	struct timespec pause = { 0, random_number() % FLUSH_NS_MAX };

	nanosleep(&pause, NULL);
	count.flushes++;
	for (size_t i = 0; i < covered; i++)
		for_each_block(&writes[i], into_old);
	/* A block stays in old[] as long as a later write is in the cache; into_old() needs it until then. */
	for (size_t i = 0; i < covered; i++) {
		if (covered == nr_writes)
			for_each_block(&writes[i], drop_old);
		free(writes[i].data);
	}
	nr_writes -= covered;
	memmove(writes, writes + covered, nr_writes * sizeof(*writes));
}

/* The power cut: takes a random part of the cached writes back from the image. */
static void lose(void)
{
	static const unsigned int percents[] = { 0, 0, 10, 50, 90, 100 };
	unsigned int keep = percents[random_number() % (sizeof(percents) / sizeof(*percents))];
	unsigned int tear = chance(50) ? 30 : 0;

	count.cached = nr_writes;
	for (size_t i = 0; i < nr_writes; i++)
		for_each_block(&writes[i], old_into_image);
	for (size_t i = 0; i < nr_writes; i++) {
		if (!writes[i].fua && chance(tear)) {
			count.torn++;
			for_each_block(&writes[i], into_image_perhaps);
		} else if (writes[i].fua || chance(keep)) {
			count.kept++;
			for_each_block(&writes[i], into_image);
		} else {
			count.lost++;
		}
	}
}

static void send_all(int fd, const void *data, size_t bytes)
{
	while (bytes) {
		ssize_t n = send(fd, data, bytes, MSG_NOSIGNAL);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return;		/* QEMU is gone: receiving will tell */
		data = (const uint8_t *)data + n;
		bytes -= n;
	}
}

static bool receive_all(int fd, void *data, size_t bytes)
{
	while (bytes) {
		ssize_t n = recv(fd, data, bytes, 0);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return false;
		data = (uint8_t *)data + n;
		bytes -= n;
	}
	return true;
}

static void put16(uint8_t *at, uint16_t v) { v = htobe16(v); memcpy(at, &v, sizeof(v)); }
static void put32(uint8_t *at, uint32_t v) { v = htobe32(v); memcpy(at, &v, sizeof(v)); }
static void put64(uint8_t *at, uint64_t v) { v = htobe64(v); memcpy(at, &v, sizeof(v)); }
static uint16_t get16(const uint8_t *at) { uint16_t v; memcpy(&v, at, sizeof(v)); return be16toh(v); }
static uint32_t get32(const uint8_t *at) { uint32_t v; memcpy(&v, at, sizeof(v)); return be32toh(v); }
static uint64_t get64(const uint8_t *at) { uint64_t v; memcpy(&v, at, sizeof(v)); return be64toh(v); }

static void option_reply(int fd, uint32_t option, uint32_t type, const uint8_t *data, uint32_t bytes)
{
	uint8_t head[20];

	put64(head, REPLY_MAGIC);
	put32(head + 8, option);
	put32(head + 12, type);
	put32(head + 16, bytes);
	send_all(fd, head, sizeof(head));
	send_all(fd, data, bytes);
}

static bool negotiate(int fd)
{
	uint8_t hello[18], head[16], data[4096];
	uint8_t export[10];

	put64(hello, NBD_MAGIC);
	put64(hello + 8, OPTION_MAGIC);
	put16(hello + 16, HANDSHAKE_FIXED_NO_ZEROES);
	send_all(fd, hello, sizeof(hello));
	if (!receive_all(fd, data, 4))
		return false;
	put64(export, size);
	put16(export + 8, EXPORT_FLAGS);
	while (receive_all(fd, head, sizeof(head))) {
		uint32_t option = get32(head + 8), bytes = get32(head + 12);

		if (bytes > sizeof(data) || !receive_all(fd, data, bytes))
			return false;
		if (option == OPT_EXPORT_NAME) {
			send_all(fd, export, sizeof(export));
			return true;
		}
		if (option == OPT_GO || option == OPT_INFO) {
			uint8_t info[12];

			put16(info, 0);			/* NBD_INFO_EXPORT */
			memcpy(info + 2, export, sizeof(export));
			option_reply(fd, option, REP_INFO, info, sizeof(info));
			option_reply(fd, option, REP_ACK, NULL, 0);
			if (option == OPT_GO)
				return true;
		} else if (option == OPT_ABORT) {
			option_reply(fd, option, REP_ACK, NULL, 0);
			return false;
		} else {
			option_reply(fd, option, REP_ERR_UNSUP, NULL, 0);
		}
	}
	return false;
}

static void answer(int fd, const uint8_t *request, uint32_t error)
{
	uint8_t head[16];

	put32(head, SIMPLE_REPLY);
	put32(head + 4, error);
	memcpy(head + 8, request + 8, 8);	/* the cookie */
	send_all(fd, head, sizeof(head));
}

/* One whole request; @covered is how many cached writes had been answered when it came. */
static bool serve(int fd, const uint8_t *request, size_t covered)
{
	uint16_t flags = get16(request + 4), type = get16(request + 6);
	uint64_t offset = get64(request + 16);
	uint32_t length = get32(request + 24);
	bool inside = offset <= size && length <= size - offset;

	switch (type) {
	case CMD_READ:
		answer(fd, request, inside ? 0 : EINVAL);
		if (inside)
			send_all(fd, image + offset, length);
		break;
	case CMD_WRITE:
		if (inside)
			cache_write(offset, length, flags & CMD_FLAG_FUA, request + REQUEST_BYTES);
		answer(fd, request, inside ? 0 : EINVAL);
		break;
	case CMD_FLUSH:
		flush(covered);
		answer(fd, request, 0);
		return true;
	case CMD_DISC:
		break;
	default:
		answer(fd, request, EINVAL);
	}
	return false;
}

static size_t request_bytes(const uint8_t *request)
{
	return REQUEST_BYTES + (get16(request + 6) == CMD_WRITE ? get32(request + 24) : 0);
}

static void transmit(int fd)
{
	uint8_t *buffer = malloc(LONGEST + REQUEST_BYTES);
	size_t have = 0, covered = 0;	/* of the first request in the buffer */

	if (!buffer)
		die("malloc");
	for (;;) {
		size_t at = 0, answered = nr_writes;
		ssize_t n = recv(fd, buffer + have, LONGEST + REQUEST_BYTES - have, 0);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			break;
		if (!have)
			covered = answered;
		have += n;
		while (have - at >= REQUEST_BYTES) {
			size_t bytes = request_bytes(buffer + at);

			if (get32(buffer + at) != REQUEST || bytes > LONGEST + REQUEST_BYTES) {
				fprintf(stderr, "ssd: not an NBD request\n");
				exit(1);
			}
			if (have - at < bytes)
				break;
			if (serve(fd, buffer + at, covered)) {
				answered -= covered;
				covered = 0;
			}
			at += bytes;
			/* Only the first request can have begun to come before this recv(). */
			covered = answered;
		}
		have -= at;
		memmove(buffer, buffer + at, have);
	}
	free(buffer);
}

/* The socket has its name only when it can be connected to. */
static int listen_at(const char *path)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (snprintf(address.sun_path, sizeof(address.sun_path), "%s~", path) >= (int)sizeof(address.sun_path)) {
		errno = ENAMETOOLONG;
		die(path);
	}
	unlink(address.sun_path);
	if (fd < 0 || bind(fd, (struct sockaddr *)&address, sizeof(address)) || listen(fd, 1) ||
	    rename(address.sun_path, path))
		die(path);
	return fd;
}

int main(int argc, char **argv)
{
	int fd, listener;
	FILE *report;

	if (argc != 6) {
		fprintf(stderr, "usage: ssd SOCKET IMAGE BYTES SEED REPORT\n");
		return 2;
	}
	size = strtoull(argv[3], NULL, 10) / BLOCK * BLOCK;
	random_state = strtoull(argv[4], NULL, 10) * 2 + 1;
	fd = open(argv[2], O_RDWR | O_CREAT | O_CLOEXEC, 0644);
	if (fd < 0 || ftruncate(fd, size))
		die(argv[2]);
	image = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	old = calloc(size / BLOCK, sizeof(*old));
	if (image == MAP_FAILED || !old)
		die(argv[2]);

	listener = listen_at(argv[1]);
	fd = accept(listener, NULL, NULL);
	if (fd < 0)
		die("accept");
	if (negotiate(fd))
		transmit(fd);
	lose();

	report = fopen(argv[5], "w");
	if (!report)
		die(argv[5]);
	fprintf(report, "{\"writes\": %ju, \"fua\": %ju, \"flushes\": %ju, \"cached\": %ju, \"kept\": %ju, \"torn\": %ju, "
			"\"lost\": %ju}\n", (uintmax_t)count.writes, (uintmax_t)count.fua, (uintmax_t)count.flushes,
		(uintmax_t)count.cached, (uintmax_t)count.kept, (uintmax_t)count.torn, (uintmax_t)count.lost);
	return fclose(report) ? 1 : 0;
}
