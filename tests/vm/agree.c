// SPDX-License-Identifier: GPL-2.0-only
/*
 * Two processes use one file. One has a DAX mapping of a part of the file, the other a plain mapping of
 * that part and more; both read and write the file by calls, also direct ones. The processes take turns.
 * After every step both look at the file, each in a way chosen at random, and must see what the steps so
 * far have made of it. A model of the file is in memory that both share.
 *
 *	agree FILE FILE_MIB FIRST_MIB DAX_MIB STEPS SECONDS SEED
 *
 * Ends after so many steps or seconds, whatever comes first. Only pages in the DAX mapping and around it
 * are touched, so that the caller can check that only pages of the mapping are in PMem.
 */
#define _GNU_SOURCE
#include <emmintrin.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define PAGE	4096L
#define MIB	(1L << 20)
#define AROUND	(64 * PAGE)		/* plain pages before and behind the DAX mapping that are played with */
#define LONGEST	(16 * PAGE)

static struct shared {
	uint64_t steps;
	uint64_t random;
	bool failed;
} *shared;

static struct player {
	const char *name;
	int fd, direct;
	char *map;		/* of the window, or of the DAX range */
	long map_first, map_last;
} me;

static char *model;		/* of the window */
static long first, last, dax_first, dax_last;	/* bytes of the file; last is exclusive */
static char *buffer;		/* aligned, LONGEST bytes */

static uint64_t draw(uint64_t below)
{
	uint64_t x = shared->random;

	x ^= x << 13;
	x ^= x >> 7;
	x ^= x << 17;
	shared->random = x;
	return x % below;
}

static void fail(const char *what, long position)
{
	fprintf(stderr, "step %llu: %s: %s at byte %ld (page %ld): %s\n", (unsigned long long)shared->steps, me.name, what,
		position, position / PAGE, strerror(errno));
	shared->failed = true;
	_exit(1);
}

/* A range of the window; whole pages for direct I/O. */
static void choose(long from, long to, bool pages, long *position, long *length)
{
	long most = draw(3) ? 300 : LONGEST;

	if (pages) {
		*position = from + draw((to - from) / PAGE) * PAGE;
		*length = PAGE * (1 + draw(LONGEST / PAGE));
	} else {
		*position = from + draw(to - from);
		*length = 1 + draw(most);
	}
	if (*length > to - *position)
		*length = to - *position;
}

static void fill(long position, long length)
{
	uint64_t word = draw(UINT64_MAX);

	for (long i = 0; i < length; i++)
		buffer[i] = (char)(word >> (i % 8 * 8)) + i / 8;
	memcpy(model + position - first, buffer, length);
}

static void flush(const char *from, long length)
{
	for (const char *line = (const char *)((uintptr_t)from & ~63UL); line < from + length; line += 64)
		_mm_clflush(line);
	_mm_sfence();
}

static void change(void)
{
	unsigned int how = draw(8);
	long position, length;

	if (how < 3) {		/* store */
		choose(me.map_first, me.map_last, false, &position, &length);
		fill(position, length);
		memcpy(me.map + position - me.map_first, buffer, length);
		flush(me.map + position - me.map_first, length);
	} else if (how < 5) {
		choose(first, last, false, &position, &length);
		fill(position, length);
		if (pwrite(me.fd, buffer, length, position) != length)
			fail("pwrite", position);
	} else if (how == 5) {
		choose(first, last, true, &position, &length);
		fill(position, length);
		if (pwrite(me.direct, buffer, length, position) != length)
			fail("direct pwrite", position);
	} else if (how == 6) {
		if (draw(2) ? fdatasync(me.fd) : msync(me.map, me.map_last - me.map_first, MS_SYNC))
			fail("sync", 0);
	} else if (!draw(16)) {
		if (posix_fadvise(me.fd, first, last - first, POSIX_FADV_DONTNEED))
			fail("fadvise", 0);
	}
}

static void look(void)
{
	unsigned int how = draw(3);
	const char *seen = buffer;
	long position, length;

	if (how == 0) {
		choose(me.map_first, me.map_last, false, &position, &length);
		seen = me.map + position - me.map_first;
	} else {
		choose(first, last, how == 2, &position, &length);
		if (pread(how == 1 ? me.fd : me.direct, buffer, length, position) != length)
			fail("pread", position);
	}
	for (long i = 0; i < length; i++) {
		if (seen[i] != model[position - first + i]) {
			errno = 0;
			fail(how == 0 ? "mapping" : how == 1 ? "read" : "direct read", position + i);
		}
	}
}

static void join(const char *path, bool dax)
{
	me.name = dax ? "DAX mapping" : "plain mapping";
	me.fd = open(path, O_RDWR);
	me.direct = open(path, O_RDWR | O_DIRECT);
	me.map_first = dax ? dax_first : first;
	me.map_last = dax ? dax_last : last;
	me.map = mmap(NULL, me.map_last - me.map_first, PROT_READ | PROT_WRITE,
		      dax ? MAP_SHARED_VALIDATE | MAP_SYNC : MAP_SHARED, me.fd, me.map_first);
	if (me.fd < 0 || me.direct < 0 || me.map == MAP_FAILED)
		fail("cannot begin", 0);
}

/* A byte through the pipe hands the turn over: the process that reads it looks, changes and looks again. */
static int play(int in, int out, uint64_t steps, time_t until, bool begins)
{
	char turn = 'x';

	if (begins && write(out, &turn, 1) != 1)
		return 1;
	while (read(in, &turn, 1) == 1 && turn == 'x') {
		look();
		change();
		look();
		if (++shared->steps >= steps || time(NULL) >= until)
			turn = 'q';
		if (write(out, &turn, 1) != 1)
			return 1;
		if (turn == 'q')
			return 0;
	}
	return turn == 'q' ? 0 : 1;
}

int main(int argc, char **argv)
{
	int there[2], back[2], status;
	uint64_t steps;
	time_t until;
	pid_t child;

	if (argc != 8)
		return 2;
	dax_first = atol(argv[3]) * MIB;
	dax_last = dax_first + atol(argv[4]) * MIB;
	first = dax_first - AROUND;
	last = dax_last + AROUND;
	steps = strtoull(argv[5], NULL, 0);
	until = time(NULL) + atol(argv[6]);
	shared = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	model = mmap(NULL, last - first, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	shared->random = strtoull(argv[7], NULL, 0) * 2 + 88172645463325252ULL;
	buffer = mmap(NULL, LONGEST, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	me.fd = open(argv[1], O_RDWR | O_CREAT, 0600);
	if (me.fd < 0 || ftruncate(me.fd, atol(argv[2]) * MIB) || pread(me.fd, model, last - first, first) != last - first ||
	    fsync(me.fd) || pipe(there) || pipe(back)) {
		perror(argv[1]);
		return 1;
	}
	close(me.fd);
	child = fork();
	join(argv[1], !child);
	if (!child) {
		close(there[1]);
		close(back[0]);
		status = play(there[0], back[1], steps, until, false);
		/* The last step may have dropped all pages; test_agree.py needs one in PMem at the end. */
		me.map[0] = model[dax_first - first];
		_exit(status);
	}
	close(there[0]);
	close(back[1]);
	status = play(back[0], there[1], steps, until, true);
	waitpid(child, &child, 0);
	if (status || child || shared->failed)
		return 1;
	printf("%llu\n", (unsigned long long)shared->steps);
	return 0;
}
