// SPDX-License-Identifier: GPL-2.0-only
/*
 * Calls that few programs make on a log, for test_log_preload.py; prints what each returned.
 *
 *   log_rare LOG OTHER close_range|closefrom|freopen|aio|old|iovec|own_closed|own_replaced|printed|locked|linked
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

/* The log's own descriptor is the next number. Another file gets it, and stays what it is. */
static void take_own(void)
{
	static const char data[100] = "other";
	int fd = open_log(), other = open(other_path, O_RDWR | O_CREAT, 0600);

	printf("other %zd\n", write(other, data, sizeof(data)));
	if (!strcmp(how, "own_closed")) {
		for (int i = fd + 1; i < 64; i++)
			if (i != other)
				close(i);
		printf("dup %d\n", dup(other) > fd);
	} else {
		printf("dup2 %d\n", dup2(other, fd + 1) == fd + 1);
	}
	printf("write %zd fsync %d fdatasync %d\n", write(fd, "last\n", 5), fsync(fd), fdatasync(fd));
}

/* What is printed to a standard output that is closed is nowhere. */
static void print_into_nothing(void)
{
	int said = dup(1), fd;

	for (fd = 0; fd < 3; fd++)
		close(fd);
	fd = open(log_path, O_WRONLY | O_CREAT, 0600);
	dprintf(said, "%d write %zd", fd, write(fd, "first\n", 6));
	dprintf(said, " stdout %zd", write(1, "lost\n", 5));
	dprintf(said, " stderr %zd\n", write(2, "lost\n", 5));
}

static void lock_all(void)
{
	struct flock lock = { .l_type = F_WRLCK };
	int fd = open_log();

	printf("lockf %d", lockf(fd, F_TLOCK, 0));
	printf(" fcntl %d", fcntl(fd, F_SETLK, &lock));
	fd = open(other_path, O_WRONLY | O_CREAT, 0600);
	printf(" other %d", fcntl(fd, F_SETLK, &lock));
	printf(" write %zd\n", write(fd, "second\n", 7));
}

/* A name that no pattern matches leads to the log, too. */
static void write_by_another_name(void)
{
	int fd = open_log(), other;

	printf("symlink %d", symlink(log_path, other_path));
	other = open(other_path, O_WRONLY | O_APPEND);
	printf(" write %zd", write(other, "second\n", 7));
	printf(" write %zd", write(fd, "third\n", 6));
	printf(" truncate %d", truncate(other_path, 10));
	printf(" write %zd\n", write(fd, "fourth\n", 7));
	unlink(other_path);
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
	else if (!strncmp(how, "own", 3))
		take_own();
	else if (!strcmp(how, "printed"))
		print_into_nothing();
	else if (!strcmp(how, "locked"))
		lock_all();
	else if (!strcmp(how, "linked"))
		write_by_another_name();
	else
		write_wrong_parts();
	return 0;
}
