// SPDX-License-Identifier: GPL-2.0-only
/*
 * attack: what an attack test needs at C's speed.
 *
 *	attack grow FILE SECONDS		appends 100 bytes of 0x55 and syncs them, drops PMem's pages now and then
 *	attack rewrite FILE SECONDS MIB		truncates to 0 and writes 0x55 again, in pieces, with a sync now and then
 *	attack shorten FILE SECONDS		truncates within the first page, which is in PMem, and writes 0x55 again
 *	attack reads FILE SECONDS KIND		reads the whole file and beyond; "READS WRONG FIRST": reads that returned bytes,
 *						wrong bytes, first offset
 *	attack aio FILE MIB read|write		one libaio request from or into untouched memory; prints its result
 *	attack stall FILE MIB			latencies beside one write() of so many MiB: "READ FAULT WRITE" in ms
 *	attack sync FILE THREADS SECONDS	O_DIRECT 4 KiB + fdatasync; prints calls in a second
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <liburing.h>
#include <linux/aio_abi.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#define PAGE	4096L
#define MIB	(1L << 20)
#define BEYOND	(4 * MIB)	/* how far a read goes beyond the end of the file */
#define FILL	0x55
#define DROP_EVERY 200		/* appends */

static const char *path;

static void die(const char *what)
{
	perror(what);
	exit(2);
}

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + t.tv_nsec / 1e9;
}

static int must_open(int flags)
{
	int fd = open(path, flags, 0600);

	if (fd < 0)
		die(path);
	return fd;
}

static char *memory(size_t length)
{
	char *p = mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		die("mmap");
	return p;
}

static int grow(double seconds)
{
	int fd = must_open(O_WRONLY | O_APPEND);
	double until = now() + seconds;
	char data[100];
	long n = 0;

	memset(data, FILL, sizeof(data));
	for (; now() < until; n++) {
		if (write(fd, data, sizeof(data)) != sizeof(data) || fdatasync(fd))
			die("append");
		/*
		 * A read that begins without a page in PMem goes below as a whole.
		 * Appends meanwhile go to PMem.
		 */
		if (n % DROP_EVERY == DROP_EVERY - 1 && posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED))
			die("drop");
		usleep(200);
	}
	printf("%ld\n", n);
	return 0;
}

static int rewrite(double seconds, long mib)
{
	int fd = must_open(O_WRONLY);
	double until = now() + seconds;
	size_t piece = 300000;
	char *data = memory(piece);
	long n = 0;

	memset(data, FILL, piece);
	for (; now() < until; n++) {
		if (ftruncate(fd, 0))
			die("ftruncate");
		for (off_t at = 0; at < mib * MIB; at += piece)
			if (pwrite(fd, data, piece, at) != (ssize_t)piece || (at / piece % 4 == 0 && fdatasync(fd)))
				die("rewrite");
	}
	printf("%ld\n", n);
	return 0;
}

#define MAPPINGS 4000

static int shorten(double seconds)
{
	int fd = must_open(O_RDWR);
	double until = now() + seconds;
	char data[4 * PAGE];
	long n = 0;

	/* They take time when the page leaves them: a read that waits for the truncation is likely then. */
	for (int i = 0; i < MAPPINGS; i++)
		if (mmap(NULL, PAGE, PROT_READ, MAP_SHARED, fd, 0) == MAP_FAILED)
			die("mmap");
	memset(data, FILL, sizeof(data));
	for (; now() < until; n++) {
		if (pwrite(fd, data, sizeof(data), 0) != sizeof(data) || (n % 64 == 0 && fdatasync(fd)))
			die("write");
		if (ftruncate(fd, 1 + n % PAGE))
			die("ftruncate");
	}
	printf("%ld\n", n);
	return 0;
}

static ssize_t by_aio(int fd, int opcode, char *buffer, size_t length)
{
	struct iocb cb = { .aio_fildes = fd, .aio_lio_opcode = opcode, .aio_buf = (uintptr_t)buffer, .aio_nbytes = length };
	struct iocb *list = &cb;
	aio_context_t context = 0;
	struct io_event event;
	ssize_t ret = -1;

	if (syscall(SYS_io_setup, 1, &context))
		die("io_setup");
	if (syscall(SYS_io_submit, context, 1, &list) == 1 &&
	    syscall(SYS_io_getevents, context, 1, 1, &event, NULL) == 1) {
		ret = event.res;
		if (ret < 0) {
			errno = -ret;
			ret = -1;
		}
	}
	syscall(SYS_io_destroy, context);
	return ret;
}

static ssize_t by_uring(int fd, char *buffer, size_t length)
{
	struct io_uring_cqe *cqe;
	struct io_uring ring;
	ssize_t ret;

	if (io_uring_queue_init(2, &ring, 0))
		die("io_uring");
	io_uring_prep_read(io_uring_get_sqe(&ring), fd, buffer, length, 0);
	if (io_uring_submit(&ring) != 1 || io_uring_wait_cqe(&ring, &cqe))
		die("io_uring");
	ret = cqe->res;
	io_uring_queue_exit(&ring);
	if (ret < 0) {
		errno = -ret;
		return -1;
	}
	return ret;
}

static ssize_t by_pipe(int fd, char *buffer, size_t length)
{
	size_t done = 0;
	int ends[2];
	off_t at = 0;
	ssize_t got;

	if (pipe(ends) || fcntl(ends[1], F_SETPIPE_SZ, MIB) < 0)
		die("pipe");
	while (done < length) {
		got = splice(fd, &at, ends[1], NULL, length - done, 0);
		if (got <= 0)
			break;
		for (ssize_t out = 0, n; out < got; out += n) {
			n = read(ends[0], buffer + done + out, got - out);
			if (n <= 0)
				die("read of the pipe");
		}
		done += got;
	}
	close(ends[0]);
	close(ends[1]);
	return done;
}

static ssize_t by_sendfile(int fd, char *buffer, size_t length)
{
	int copy = memfd_create("copy", 0);
	off_t at = 0;
	size_t done = 0;
	ssize_t got;

	while (done < length && (got = sendfile(copy, fd, &at, length - done)) > 0)
		done += got;
	if (pread(copy, buffer, done, 0) != (ssize_t)done)
		die("sendfile");
	close(copy);
	return done;
}

static ssize_t read_all(const char *kind, int fd, char *buffer, size_t length)
{
	struct iovec parts[3] = { { buffer, length / 2 + 1 }, { buffer + length / 2 + 1, 4097 },
				  { buffer + length / 2 + 4098, length - length / 2 - 4098 } };

	if (!strcmp(kind, "preadv"))
		return preadv(fd, parts, 3, 0);
	if (!strcmp(kind, "splice"))
		return by_pipe(fd, buffer, length);
	if (!strcmp(kind, "sendfile"))
		return by_sendfile(fd, buffer, length);
	if (!strncmp(kind, "aio", 3))
		return by_aio(fd, IOCB_CMD_PREAD, buffer, length);
	if (!strncmp(kind, "uring", 5))
		return by_uring(fd, buffer, length);
	return pread(fd, buffer, length, 0);
}

static int reads(double seconds, const char *kind)
{
	int fd = must_open(O_RDONLY | (strstr(kind, "direct") ? O_DIRECT : 0));
	long n = 0, wrong = 0, first = -1;
	double until = now() + seconds;
	size_t most = 0, length;
	char *buffer = NULL;
	struct stat stat;
	ssize_t got;

	while (now() < until) {
		if (fstat(fd, &stat))
			die("fstat");
		length = (stat.st_size + BEYOND) & -PAGE;
		if (length > most) {
			most = length + 64 * MIB;
			buffer = memory(most);
		}
		got = read_all(kind, fd, buffer, length);
		if (got < 0)
			die(kind);
		n += got > 0;
		for (ssize_t i = 0; i < got; i++) {
			if (buffer[i] != FILL) {
				wrong++;
				if (first < 0)
					first = i;
			}
		}
	}
	printf("%ld %ld %ld\n", n, wrong, first);
	return 0;
}

static int aio(long mib, const char *how)
{
	bool is_write = !strcmp(how, "write");
	int fd = must_open(O_RDWR);

	printf("%zd\n", by_aio(fd, is_write ? IOCB_CMD_PWRITE : IOCB_CMD_PREAD, memory(mib * MIB), mib * MIB));
	return 0;
}

/* Beside one large write: readers use the first MiB, the write changes the file from 16 MiB on. */
#define WRITE_AT	(16 * MIB)
#define READ_PAGES	256

static atomic_bool begun, over;

static double looked(double *max, double start)
{
	double took = now() - start;

	if (begun && !over && took > *max)
		*max = took;
	return took;
}

static void *read_beside(void *result)
{
	int fd = must_open(O_RDONLY);
	unsigned int random = 1;
	char page[PAGE];
	double start;

	while (!over) {
		start = now();
		if (pread(fd, page, PAGE, rand_r(&random) % READ_PAGES * PAGE) != PAGE)
			die("pread");
		looked(result, start);
		usleep(1000);
	}
	return NULL;
}

static void *fault_beside(void *result)
{
	int fd = must_open(O_RDWR);
	volatile char *map = mmap(NULL, READ_PAGES * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	unsigned int random = 2;
	double start;
	long at;

	if (map == MAP_FAILED)
		die("mmap");
	while (!over) {
		at = rand_r(&random) % READ_PAGES * PAGE;
		madvise((char *)map + at, PAGE, MADV_DONTNEED);
		start = now();
		(void)map[at];
		looked(result, start);
		usleep(1000);
	}
	return NULL;
}

/* Calls that move and flush pages: on Forebay they exclude the tasks that look pages up. */
static void *sync_beside(void *unused)
{
	int fd = must_open(O_RDWR);
	char *map = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	(void)unused;
	while (!over) {
		map[0]++;
		if (msync(map, PAGE, MS_SYNC) || posix_fadvise(fd, PAGE, PAGE, POSIX_FADV_DONTNEED))
			die("msync");
		usleep(20000);
	}
	return NULL;
}

static int stall(long mib)
{
	double read_max = 0, fault_max = 0, start;
	int fd = must_open(O_RDWR | O_CREAT);
	char *data = memory(mib * MIB);
	pthread_t thread[3];
	ssize_t done;

	memset(data, FILL, mib * MIB);
	if (pwrite(fd, data, READ_PAGES * PAGE, 0) != READ_PAGES * PAGE || fsync(fd))
		die("prepare");
	for (int i = 0; i < READ_PAGES; i += 8)		/* the sync brings these to PMem */
		if (pwrite(fd, data, PAGE, i * PAGE) != PAGE || fdatasync(fd))
			die("prepare");
	pthread_create(&thread[0], NULL, read_beside, &read_max);
	pthread_create(&thread[1], NULL, fault_beside, &fault_max);
	pthread_create(&thread[2], NULL, sync_beside, NULL);
	usleep(200000);
	start = now();
	begun = true;
	done = pwrite(fd, data, mib * MIB, WRITE_AT);
	start = now() - start;
	usleep(100000);		/* calls that began during the write end here */
	over = true;
	for (int i = 0; i < 3; i++)
		pthread_join(thread[i], NULL);
	if (done != mib * MIB)
		die("pwrite");
	printf("%.1f %.1f %.1f\n", read_max * 1e3, fault_max * 1e3, start * 1e3);
	return 0;
}

#define SYNC_PAGES	256	/* of each thread */

static double sync_until;
static atomic_long syncs;

static void *sync_one(void *number)
{
	long first = (intptr_t)number * SYNC_PAGES;
	int fd = must_open(O_RDWR | O_DIRECT);
	unsigned int random = first + 1;
	char *page = memory(PAGE);

	while (now() < sync_until) {
		if (pwrite(fd, page, PAGE, (first + rand_r(&random) % SYNC_PAGES) * PAGE) != PAGE || fdatasync(fd))
			die("sync");
		syncs++;
	}
	close(fd);
	return NULL;
}

static int sync_rate(int threads, double seconds)
{
	pthread_t thread[64];
	double start = now();

	sync_until = start + seconds;
	for (int i = 0; i < threads; i++)
		pthread_create(&thread[i], NULL, sync_one, (void *)(intptr_t)i);
	for (int i = 0; i < threads; i++)
		pthread_join(thread[i], NULL);
	printf("%.1f\n", syncs / (now() - start));
	return 0;
}

int main(int argc, char **argv)
{
	if (argc < 4)
		return 2;
	path = argv[2];
	if (!strcmp(argv[1], "grow"))
		return grow(atof(argv[3]));
	if (!strcmp(argv[1], "rewrite") && argc == 5)
		return rewrite(atof(argv[3]), atol(argv[4]));
	if (!strcmp(argv[1], "shorten"))
		return shorten(atof(argv[3]));
	if (!strcmp(argv[1], "reads") && argc == 5)
		return reads(atof(argv[3]), argv[4]);
	if (!strcmp(argv[1], "aio") && argc == 5)
		return aio(atol(argv[3]), argv[4]);
	if (!strcmp(argv[1], "stall"))
		return stall(atol(argv[3]));
	if (!strcmp(argv[1], "sync") && argc == 5 && atoi(argv[3]) <= 64)
		return sync_rate(atoi(argv[3]), atof(argv[4]));
	return 2;
}
