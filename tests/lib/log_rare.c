// SPDX-License-Identifier: GPL-2.0-only
/*
 * Calls that few programs make on a log, for test_log_preload.py; prints what each returned.
 *
 *   log_rare LOG OTHER close_range|closefrom|freopen|aio|old|iovec
 */
#include <aio.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/close_range.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

/* As programs know them that were built with a glibc before 2.33. */
int old_stat(int version, const char *path, struct stat *st);
int old_fstat(int version, int fd, struct stat *st);
__asm__(".symver old_stat, __xstat64@GLIBC_2.2.5");
__asm__(".symver old_fstat, __fxstat@GLIBC_2.2.5");

static const char *log_path, *other_path, *how;

static int open_log(void)
{
	int fd = open(log_path, O_WRONLY | O_CREAT | O_APPEND, 0600);

	printf("write %zd\n", write(fd, "first\n", 6));
	return fd;
}

/* The log's number is then that of another file. */
static void close_many(void)
{
	int fd = open_log(), other;

	if (!strcmp(how, "closefrom"))
		closefrom(fd);
	else
		close_range((unsigned int)fd, ~0U, CLOSE_RANGE_UNSHARE);
	other = open(other_path, O_WRONLY | O_CREAT, 0600);
	printf("%d write %zd\n", other == fd, write(other, "other\n", 6));
	close(other);
}

/* A process that is killed leaves a log without its size. */
static void open_as_stream(void)
{
	pid_t pid = fork();
	FILE *stream;

	if (!pid) {
		open_log();
		raise(SIGKILL);
	}
	waitpid(pid, NULL, 0);
	stream = freopen(log_path, "a", fopen("/dev/null", "w"));
	printf("fputs %d", fputs("second\n", stream) >= 0);
	printf(" fclose %d\n", fclose(stream));
}

static void write_later(void)
{
	int fd = open_log();
	struct aiocb control = { .aio_fildes = fd, .aio_buf = "later\n", .aio_nbytes = 6 };

	printf("aio_write %d", aio_write(&control));
	while (aio_error(&control) == EINPROGRESS)
		usleep(1000);
	printf(" %zd\n", aio_return(&control));
	printf("write %zd\n", write(fd, "last\n", 5));
}

static void ask_in_the_old_way(void)
{
	int fd = open_log();
	struct stat a, b;

	printf("stat %d", old_stat(1, log_path, &a));
	printf(" fstat %d", old_fstat(1, fd, &b));
	printf(" %lld %lld\n", (long long)a.st_size, (long long)b.st_size);
}

static void write_wrong_parts(void)
{
	struct iovec part = { "x", 1 };
	int fd = open_log();

	for (int n = -1; n < 2; n++)
		printf("writev %d: %zd\n", n, writev(fd, &part, n));
}

int main(int argc, char **argv)
{
	if (argc != 4)
		return 2;
	log_path = argv[1];
	other_path = argv[2];
	how = argv[3];
	setvbuf(stdout, NULL, _IONBF, 0);
	if (!strncmp(how, "close", 5))
		close_many();
	else if (!strcmp(how, "freopen"))
		open_as_stream();
	else if (!strcmp(how, "aio"))
		write_later();
	else if (!strcmp(how, "old"))
		ask_in_the_old_way();
	else
		write_wrong_parts();
	return 0;
}
