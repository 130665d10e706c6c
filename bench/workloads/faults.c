// SPDX-License-Identifier: GPL-2.0-only
/*
 * The cost of page faults and of mmap() (PMDK thesis 4.4, figure 10). Stands in for the thesis's membench.
 *
 *	faults FILE PAGES read|write|mmap sync|shared cold|cached SECONDS
 *
 * A byte of one page in 32 is read, or stored to, in random order: at a fault the kernel maps sixteen
 * pages of the page cache or more. For the same reason the mapping begins a page beside a multiple of 2
 * MiB: no page of 2 MiB fits. The time counts if the kernel counted a fault. When all these pages are
 * mapped the file is mapped anew; cold: its pages are dropped from the page cache before. mmap: nothing is
 * read, and the calls of mmap() are timed.
 *
 * Prints how the file was mapped, how many nanoseconds each fault took, and how many pages were touched.
 * If SECONDS is "trace", one is done between two marks in the kernel's trace, which this process has for itself.
 */
#define _GNU_SOURCE
#include <sys/resource.h>
#include "driver.h"

enum { APART = 32, MOST = 20000, HUGE = 2 << 20 };

static long long took[MOST];
static int fd, flags, writes, cold, marks = -1;
static size_t size;

static long faults(void)
{
	struct rusage usage;

	getrusage(RUSAGE_SELF, &usage);
	return usage.ru_minflt + usage.ru_majflt;
}

/* Addresses where no page of 2 MiB fits. */
static char *reserve(void)
{
	int anonymous = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
	char *map = mmap(NULL, size + 2 * HUGE, PROT_NONE, anonymous, -1, 0);

	if (map == MAP_FAILED)
		err(1, "mmap");
	return (char *)(((uintptr_t)map & -(uintptr_t)HUGE) + HUGE + PAGE);
}

static void map_at(char *map)
{
	if (mmap(map, size, PROT_READ | PROT_WRITE, flags | MAP_FIXED, fd, 0) != map)
		err(1, "mmap");
}

/* The file is mapped anew, with none of its pages. */
static void map_anew(char *map)
{
	map_at(map);
	if (madvise(map, size, MADV_RANDOM))
		err(1, "madvise");
	if (cold && (fsync(fd) || posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED)))
		err(1, "posix_fadvise");
}

static void touch(volatile char *byte)
{
	if (writes)
		*byte = 'f';
	else
		(void)*byte;
}

static void mark(const char *text)
{
	if (marks >= 0 && write(marks, text, strlen(text)) < 0)
		err(1, "trace_marker");
}

static int *shuffled(int count)
{
	int *order = malloc(count * sizeof(*order));

	if (!order)
		err(1, "malloc");
	for (int i = 0; i < count; i++) {
		int other = draw(i + 1);

		order[i] = order[other];
		order[other] = i;
	}
	return order;
}

/* Returns how many faults that were; their times are kept. */
static int touch_pages(char *map, const int *order, int count)
{
	int found = 0;

	for (int i = 0; i < count; i++) {
		long before = faults();
		long long begin = now();

		touch(map + (size_t)order[i] * APART * PAGE);
		took[found] = now() - begin;
		found += faults() > before;
	}
	return found;
}

static void print(int count)
{
	for (int i = 0; i < count; i++)
		printf("%lld\n", took[i]);
}

static void fault_pages(char *map, double seconds)
{
	int count = size / PAGE / APART, touched = 0;
	int *order = shuffled(count);
	long long end;

	if (count > MOST)
		errx(2, "too large a file");
	memset(took, 1, sizeof(took));		/* so that these pages are there */
	map_anew(map);
	touch_pages(map, order, count);
	for (end = now() + seconds * 1e9; !touched || (now() < end && touched < MOST); touched += count) {
		map_anew(map);
		print(touch_pages(map, order, count));
	}
	printf("touched %d\n", touched);
}

static void map_often(char *map, double seconds)
{
	long long begin, end = now() + seconds * 1e9;
	int done = 0;

	for (; !done || (now() < end && done < MOST); done++) {
		if (munmap(map, size))
			err(1, "munmap");
		begin = now();
		map_at(map);
		took[done] = now() - begin;
	}
	print(done);
	printf("touched 0\n");
}

static void trace_one(char *map, int maps)
{
	int only = open("/sys/kernel/tracing/set_ftrace_pid", O_WRONLY);

	marks = open("/sys/kernel/tracing/trace_marker", O_WRONLY);
	if (marks < 0 || only < 0 || dprintf(only, "%d", getpid()) < 0 || close(only))
		err(1, "/sys/kernel/tracing");
	if (!maps)
		map_anew(map);
	mark("begins");
	if (maps)
		map_at(map);
	else
		touch(map + size / 2);
	mark("ends");
}

int main(int argc, char **argv)
{
	char *map;

	if (argc != 7)
		errx(2, "usage: faults FILE PAGES read|write|mmap sync|shared cold|cached SECONDS|trace");
	fd = open(argv[1], O_RDWR);
	if (fd < 0)
		err(1, "%s", argv[1]);
	size = strtoul(argv[2], NULL, 0) * PAGE;
	writes = *argv[3] == 'w';
	cold = !strcmp(argv[5], "cold");
	map = reserve();
	flags = MAP_SHARED_VALIDATE | MAP_SYNC;
	if (strcmp(argv[4], "sync") ||
	    mmap(map, size, PROT_READ | PROT_WRITE, flags | MAP_FIXED, fd, 0) != map)
		flags = MAP_SHARED;
	puts(flags == MAP_SHARED ? "MAP_SHARED" : "MAP_SYNC");
	if (!strcmp(argv[6], "trace"))
		trace_one(map, *argv[3] == 'm');
	else if (*argv[3] == 'm')
		map_often(map, atof(argv[6]));
	else
		fault_pages(map, atof(argv[6]));
	return 0;
}
