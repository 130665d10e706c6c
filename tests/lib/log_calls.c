// SPDX-License-Identifier: GPL-2.0-only
/*
 * Plays random calls on a file as programs make them, and prints what each returned; for test_log_preload.py, which
 * compares runs with and without the preload.
 *
 *   log_calls FILE SEED STEPS append|write|sync [kill]
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

static char data[70000];
static int fd;

/* Sizes of a few bytes are frequent, those of more than a chunk are not rare. */
static size_t length(void)
{
	return (size_t)rand() % (rand() % 8 ? 300 : sizeof(data));
}

static void two_parts(void)
{
	struct iovec parts[] = { { data, length() }, { data + 17, length() } };

	printf("writev %zd\n", writev(fd, parts, 2));
}

static void sizes(const char *path)
{
	struct stat a, b;

	printf("sizes %d %d", fstat(fd, &a), stat(path, &b));
	printf(" %lld %lld %lld\n", (long long)a.st_size, (long long)b.st_size, (long long)lseek(fd, 0, SEEK_CUR));
}

static void cut(const char *path)
{
	struct stat st;
	off_t size;

	fstat(fd, &st);
	size = st.st_size - st.st_size % 5;
	if (rand() % 2)
		printf("ftruncate %d\n", ftruncate(fd, size));
	else
		printf("truncate %d\n", truncate(path, size));
}

/* The child writes nothing, but opens, closes and ends, as one of Redis does. */
static void child(const char *path)
{
	pid_t pid = fork();
	int status;

	if (!pid) {
		int other;

		close(fd);
		other = open(path, O_RDONLY);
		close(other);
		exit(other < 0);
	}
	waitpid(pid, &status, 0);
	printf("fork %d\n", status);
}

static void step(const char *path, int kind)
{
	if (kind < 20)
		printf("write %zd\n", write(fd, data + rand() % 100, length()));
	else if (kind < 24)
		two_parts();
	else if (kind < 28)
		printf("sync %d %d\n", fsync(fd), fdatasync(fd));
	else if (kind < 31)
		sizes(path);
	else if (kind == 31)
		cut(path);
	else if (kind == 32)
		child(path);
	else if (kind == 33)
		printf("lseek %lld\n", (long long)lseek(fd, 0, SEEK_END));
	else if (kind == 34 && rand() % 8 == 0)
		printf("pwrite %zd\n", pwrite(fd, "changed", 7, rand() % 50));
	else if (kind == 35 && rand() % 8 == 0)
		printf("lseek %lld\n", (long long)lseek(fd, rand() % 90, SEEK_SET));
}

int main(int argc, char **argv)
{
	int how = *argv[4] == 'a' ? O_APPEND : *argv[4] == 's' ? O_DSYNC : 0, steps = atoi(argv[3]);

	srand((unsigned int)atoi(argv[2]));
	for (size_t i = 0; i < sizeof(data); i++)
		data[i] = (char)(rand() % 5 ? rand() : 0);
	fd = open(argv[1], O_WRONLY | O_CREAT | how, 0600);
	for (int i = 0; i < steps; i++) {
		if (i == steps / 2) {
			printf("close %d\n", close(fd));
			fd = open(argv[1], O_WRONLY | how, 0600);
			if (!how)
				lseek(fd, 0, SEEK_END);
		}
		step(argv[1], rand() % 36);
	}
	fflush(stdout);
	if (argc > 5)
		kill(getpid(), SIGKILL);
	return fd < 0;
}
