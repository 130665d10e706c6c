// SPDX-License-Identifier: GPL-2.0-only
/* An administrator's calls and memory pressure: drain, remount, freeze, sync, drop caches, take memory. */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../../../include/uapi/linux/forebay.h"
#include "fuzz.h"

#define LEFT_MIB	150	/* left to other processes by take_memory() */
#define TAKES		2000000000ULL	/* ns; then the child gives the memory back */

static int folder;

static void put(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY);

	if (fd < 0)
		return;
	if (write(fd, text, strlen(text)) < 0)
		note("%s: %s", path, strerror(errno));
	close(fd);
}

/* A drain may fail with EBUSY as long as a process holds pages. */
static void drain(void)
{
	CALL("drain", ioctl(folder, FOREBAY_IOC_DRAIN), MAY(EBUSY));
}

static void remount(void)
{
	char parent[256];

	/* @mount_point is a folder in the root of the mount. */
	snprintf(parent, sizeof(parent), "%s", mount_point);
	*strrchr(parent, '/') = 0;
	CALL("remount", mount("none", parent, NULL, MS_REMOUNT, chance(2) ? "mode=auto" : "mode=explicit"), NEVER);
}

static void freeze(void)
{
	if (CALL("freeze", ioctl(folder, FIFREEZE, 0), MAY(EBUSY)))
		return;
	usleep(draw(300000));
	CALL("thaw", ioctl(folder, FITHAW, 0), NEVER);
}

static void sync_all(void)
{
	if (chance(2))
		CALL("syncfs", syncfs(folder), NEVER);
	else
		sync();
}

static void drop_caches(void)
{
	call("drop_caches");
	put("/proc/sys/vm/drop_caches", (const char *[]) { "1", "2", "3" }[draw(3)]);
	/* Not by the clock: it goes through all memory, and waits for each page's writeback. hang.c times those that wait for it. */
	call("");
	if (chance(3))
		put("/proc/sys/vm/compact_memory", "1");
}

static long available_mib(void)
{
	char line[128];
	long kib = 0;
	FILE *file = fopen("/proc/meminfo", "r");

	while (file && fgets(line, sizeof(line), file))
		if (sscanf(line, "MemAvailable: %ld", &kib) == 1)
			break;
	if (file)
		fclose(file);
	return kib >> 10;
}

/* A child takes the memory, so that the OOM killer ends this child and no other process. */
static void take_memory(void)
{
	long mib = available_mib() - LEFT_MIB;
	uint64_t until;
	pid_t pid;
	char *all;

	if (mib <= 0)
		return;
	call("memory pressure");
	pid = fork();
	if (!pid) {
		put("/proc/self/oom_score_adj", "1000");
		all = mmap(NULL, mib << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		/* The kernel clears a huge page in one piece; that can keep an emulated processor for many seconds. */
		if (all != MAP_FAILED)
			madvise(all, mib << 20, MADV_NOHUGEPAGE);
		until = now() + TAKES;
		for (long at = 0; all != MAP_FAILED && at < mib << 20 && now() < until; at += PAGE)
			all[at] = 1;
		_exit(0);
	}
	/* The watchdog doesn't limit this wait. */
	me->call[0] = 0;
	waitpid(pid, NULL, 0);
}

/* Reads sysfs, as monitoring does. */
static void look_around(void)
{
	struct dirent *entry;
	char path[300], text[256];
	DIR *all = opendir("/sys/fs/forebay"), *one;
	int fd;

	while (all && (entry = readdir(all))) {
		if (entry->d_name[0] == '.')
			continue;
		snprintf(path, sizeof(path), "/sys/fs/forebay/%s", entry->d_name);
		one = opendir(path);
		while (one && (entry = readdir(one))) {
			snprintf(text, sizeof(text), "%.40s/%.60s", path, entry->d_name);
			fd = open(text, O_RDONLY);
			if (fd >= 0 && read(fd, text, sizeof(text)) < 0 && errno == EIO)
				violation("EIO", "%s", entry->d_name);
			close(fd);
		}
		if (one)
			closedir(one);
		break;
	}
	if (all)
		closedir(all);
}

const struct operation root_operations[] = {
	{ "drain", drain, 5 }, { "remount", remount, 3 }, { "freeze", freeze, 2 }, { "sync_all", sync_all, 3 },
	{ "drop_caches", drop_caches, 4 }, { "memory", take_memory, 1 }, { "look", look_around, 2 }, { NULL, NULL, 0 }
};

void begin_root(void)
{
	folder = open(mount_point, O_RDONLY);
}
