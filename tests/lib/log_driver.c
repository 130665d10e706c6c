// SPDX-License-Identifier: GPL-2.0-only
/*
 * Drives libforebay-log for tests.
 *
 *   log_driver FILE CHUNK COMMAND...	commands, in order:
 *     append N	one append of N bytes; byte i of the file is pattern(i)
 *     sync | settle | end		end prints the offset
 *     wait				for a line on standard input
 *     kill				SIGKILL to this process
 *     copy FILE			copies the file as every process sees it now, its places too
 *     forever N			appends of up to N bytes; prints the end after each sync
 *     threads N M			N threads append lines "thread number\n", M each
 *     sizes N M			three threads append: one N times 300,001 bytes of "a", two M times 97 of "b" or "c"
 *     recover				forebay_log_recover() instead of an open log; first command only
 */
#include <errno.h>
#include <fcntl.h>
#include <forebay-log.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct forebay_log *handle;

static void fail(const char *what)
{
	printf("%s: %s\n", what, strerror(errno));
	exit(1);
}

/* Null bytes, too: the end of a log doesn't depend on them. */
static char pattern(off_t at)
{
	unsigned long n = (unsigned long)at * 2654435761u;

	return at % 7 == 6 ? 0 : (char)(n >> 13);
}

static void append(size_t length)
{
	off_t end = forebay_log_end(handle);
	char *data = malloc(length + 1);

	for (size_t i = 0; i < length; i++)
		data[i] = pattern(end + (off_t)i);
	if (forebay_log_append(handle, data, length))
		fail("append");
	free(data);
}

static void forever(size_t most)
{
	for (unsigned int i = 0;; i++) {
		append(1 + (size_t)rand() % most);
		if (i % 3)
			continue;
		if (forebay_log_sync(handle))
			fail("sync");
		printf("%lld\n", (long long)forebay_log_end(handle));
		fflush(stdout);
	}
}

static void copy(const char *from, const char *to)
{
	static char buffer[1 << 20];
	int in = open(from, O_RDONLY), out = open(to, O_WRONLY | O_CREAT | O_TRUNC, 0600);
	ssize_t n;

	while ((n = read(in, buffer, sizeof(buffer))) > 0)
		if (write(out, buffer, (size_t)n) != n)
			fail(to);
	close(in);
	close(out);
}

static int lines;

static void *write_lines(void *argument)
{
	char line[40];

	for (int i = 0; i < lines; i++) {
		int length = snprintf(line, sizeof(line), "%ld %d\n", (long)argument, i);

		if (forebay_log_append(handle, line, (size_t)length))
			fail("append");
		if (i % 64 == 0 && forebay_log_sync(handle))
			fail("sync");
		if (i % 512 == 0 && forebay_log_settle(handle))
			fail("settle");
	}
	return NULL;
}

static int rounds[2];

static void *write_sizes(void *argument)
{
	long id = (long)argument;
	size_t length = id ? 97 : 300001;
	char *data = malloc(length);

	memset(data, 'a' + (int)id, length);
	for (int i = 0; i < rounds[!!id]; i++)
		if (forebay_log_append(handle, data, length))
			fail("append");
	free(data);
	return NULL;
}

static void threads_of(void *(*work)(void *), long n)
{
	pthread_t ids[16];

	for (long i = 0; i < n; i++)
		pthread_create(&ids[i], NULL, work, (void *)i);
	for (long i = 0; i < n; i++)
		pthread_join(ids[i], NULL);
}

int main(int argc, char **argv)
{
	struct forebay_log_options options = { .size = sizeof(options), .chunk = (size_t)atol(argv[2]),
					       .low_water = 2, .pre_alloc = 3 };
	int fd = open(argv[1], O_WRONLY | O_CREAT, 0600);
	int at = 3;

	if (argc > at && !strcmp(argv[at], "recover")) {
		printf("%lld\n", (long long)forebay_log_recover(fd));
		return 0;
	}
	handle = forebay_log_open(fd, &options);
	if (!handle)
		fail("open");
	close(fd);
	for (; at < argc; at++) {
		if (!strcmp(argv[at], "append"))
			append((size_t)atol(argv[++at]));
		else if (!strcmp(argv[at], "sync") && forebay_log_sync(handle))
			fail("sync");
		else if (!strcmp(argv[at], "settle") && forebay_log_settle(handle))
			fail("settle");
		else if (!strcmp(argv[at], "end"))
			printf("%lld\n", (long long)forebay_log_end(handle));
		else if (!strcmp(argv[at], "wait")) {
			fflush(stdout);
			getchar();
		} else if (!strcmp(argv[at], "copy"))
			copy(argv[1], argv[++at]);
		else if (!strcmp(argv[at], "forever"))
			forever((size_t)atol(argv[++at]));
		else if (!strcmp(argv[at], "threads")) {
			lines = atoi(argv[at + 2]);
			threads_of(write_lines, atol(argv[at + 1]));
			at += 2;
		} else if (!strcmp(argv[at], "sizes")) {
			rounds[0] = atoi(argv[++at]);
			rounds[1] = atoi(argv[++at]);
			threads_of(write_sizes, 3);
		} else if (!strcmp(argv[at], "kill")) {
			fflush(stdout);
			kill(getpid(), SIGKILL);
		}
	}
	if (forebay_log_close(handle))
		fail("close");
	return 0;
}
