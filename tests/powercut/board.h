/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the programs that carry out plans in the guest have in common: they wait for the host's word, start a process for
 * each writer, and tell in shared memory which operation begins and which one has returned. The memory is an ivshmem
 * device's, a file of the host's.
 */
#ifndef POWERCUT_BOARD_H
#define POWERCUT_BOARD_H

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "ops.h"

#define DEVICES "/sys/bus/pci/devices"
#define BOARD_BYTES 4096

static void __attribute__((noreturn)) die(const char *what)
{
	fprintf(stderr, "writer: %s: %s\n", what, strerror(errno));
	exit(1);
}

static const void *map_whole(const char *path, size_t *bytes)
{
	struct stat st;
	int fd = open(path, O_RDONLY);
	void *map;

	if (fd < 0 || fstat(fd, &st))
		die(path);
	/* All pages are read before the start, so that no page comes from the host during the run. */
	map = mmap(NULL, st.st_size, PROT_READ, MAP_PRIVATE | MAP_POPULATE, fd, 0);
	if (map == MAP_FAILED)
		die(path);
	close(fd);
	*bytes = st.st_size;
	return map;
}

static volatile struct progress *map_board(const char *path)
{
	int fd = open(path, O_RDWR);
	void *map = mmap(NULL, BOARD_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	if (map == MAP_FAILED)
		die(path);
	return map;
}

/* POWERCUT_BOARD names a file in its place, for tests of the programs themselves. */
static volatile struct progress *find_board(void)
{
	DIR *devices = opendir(DEVICES);
	struct dirent *entry;

	if (getenv("POWERCUT_BOARD"))
		return map_board(getenv("POWERCUT_BOARD"));

	while (devices && (entry = readdir(devices))) {
		char path[300], id[16] = "";
		FILE *file;

		snprintf(path, sizeof(path), DEVICES "/%s/device", entry->d_name);
		file = fopen(path, "r");
		if (!file)
			continue;
		if (!fgets(id, sizeof(id), file))
			id[0] = 0;
		fclose(file);
		if (strncmp(id, "0x1110", 6))
			continue;
		snprintf(path, sizeof(path), DEVICES "/%s/resource2", entry->d_name);
		return map_board(path);
	}
	fprintf(stderr, "writer: no ivshmem device\n");
	exit(1);
}

/* Starts them when the host says that the plans are there; returns when all have ended, which is never before the cut. */
static void run_writers(const char *directory, const char *plans, int writers,
			void (*carry_out_plan)(const char *plan, size_t bytes, volatile struct progress *progress))
{
	volatile struct progress *board = find_board();
	size_t bytes;

	while (!board[BOARD_GO].begun)
		usleep(10000);
	puts("running");
	fflush(stdout);
	umask(0);
	for (int w = 0; w < writers; w++) {
		char path[4096];
		const char *plan;

		snprintf(path, sizeof(path), "%s/plan.%d", plans, w);
		plan = map_whole(path, &bytes);
		if (fork())
			continue;
		snprintf(path, sizeof(path), "%s/d%d", directory, w);
		if (chdir(path))
			die(path);
		carry_out_plan(plan, bytes, &board[w]);
	}
	while (wait(NULL) > 0)
		;
}

#endif
