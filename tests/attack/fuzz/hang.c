// SPDX-License-Identifier: GPL-2.0-only
/* Calls that take too long: the parent's watch, and what it prints of processes, interrupts and tasks. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "fuzz.h"

static void tell_file(const char *path)
{
	char buffer[8192];
	int fd = open(path, O_RDONLY);
	ssize_t got = fd < 0 ? 0 : read(fd, buffer, sizeof(buffer) - 1);

	if (got > 0)
		fprintf(stderr, "  %s:\n%.*s", path, (int)got, buffer);
	if (fd >= 0)
		close(fd);
}

static void tell_kernel(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_APPEND);

	if (fd < 0 || write(fd, text, strlen(text)) < 0)
		fprintf(stderr, "  %s, '%s': %s\n", path, text, strerror(errno));
	if (fd >= 0)
		close(fd);
}

/*
 * Traces for a moment what functions of faults and syncs return: a task that loops there shows no stack.
 * None of them has a single caller in its own file, where the compiler would leave nothing to trace.
 */
static void tell_loop(void)
{
	static const char *const functions[] = {
		"fb_fault", "fb_page_mkwrite", "fb_pfn_mkwrite", "fb_store_dax", "fb_fault_lower", "fb_prepare_folio",
		"fb_promote_page", "fb_wait_to_promote", "fb_move_in", "fb_lower_folio",
		"fb_sync_inode", "fb_sync_below", "fb_sync_size", "fb_wait_for_space", "fb_range_lock", "fb_read_some",
		"ext4_page_mkwrite", "filemap_fault", "block_page_mkwrite", "fixup_user_fault", "fb_pages_invalidate",
	};
	char text[128];

	for (size_t i = 0; i < sizeof(functions) / sizeof(functions[0]); i++) {
		snprintf(text, sizeof(text), "r:loop/%s %s result=$retval:s32", functions[i], functions[i]);
		tell_kernel("/sys/kernel/tracing/kprobe_events", text);
	}
	tell_kernel("/sys/kernel/tracing/events/loop/enable", "1");	/* one after the other, in a second or two */
	close(open("/sys/kernel/tracing/trace", O_WRONLY | O_TRUNC));
	usleep(100000);
	tell_kernel("/sys/kernel/tracing/events/loop/enable", "0");
	tell_file("/sys/kernel/tracing/trace");
}

/*
 * Prints the counts of timer and inter-processor interrupts. A processor whose counts stand still has lost
 * an interrupt, or runs with interrupts off.
 */
static void tell_interrupts(void)
{
	char line[256];
	FILE *file = fopen("/proc/interrupts", "r");

	while (file && fgets(line, sizeof(line), file))
		if (strstr(line, "LOC:") || strstr(line, "RES:") || strstr(line, "CAL:"))
			fprintf(stderr, "  %s", line);
	if (file)
		fclose(file);
}

/* Prints every task that is running, runnable or in uninterruptible sleep, kernel threads included. */
static void tell_tasks(void)
{
	char path[300], line[512], state;
	struct dirent *entry;
	DIR *all = opendir("/proc");
	int fd;
	ssize_t got;

	while (all && (entry = readdir(all))) {
		snprintf(path, sizeof(path), "/proc/%s/stat", entry->d_name);
		fd = strspn(entry->d_name, "0123456789") ? open(path, O_RDONLY) : -1;
		got = fd < 0 ? 0 : read(fd, line, sizeof(line) - 1);
		if (fd >= 0)
			close(fd);
		line[got > 0 ? got : 0] = 0;
		if (got <= 0 || !strrchr(line, ')') || sscanf(strrchr(line, ')') + 1, " %c", &state) != 1 || !strchr("RD", state))
			continue;
		fprintf(stderr, "  %s", line);
		snprintf(path, sizeof(path), "/proc/%s/stack", entry->d_name);
		tell_file(path);
	}
	if (all)
		closedir(all);
}

/* Prints the fuzzer's processes, the interrupts of 2 seconds and all tasks: what waits for what. */
static void tell_stacks(void)
{
	static bool told;
	char path[64];
	int fd;

	for (int i = 0; i <= PROCESSES; i++) {
		snprintf(path, sizeof(path), "/proc/%d/stack", shared->actor[i].pid);
		fprintf(stderr, "  process %d: %s\n", i, shared->actor[i].call);
		tell_file(path);
	}
	if (told)
		return;
	told = true;
	tell_interrupts();
	tell_tasks();
	sleep(2);
	tell_interrupts();
	fd = open("/proc/sysrq-trigger", O_WRONLY);
	if (fd >= 0 && (write(fd, "l", 1) != 1 || write(fd, "w", 1) != 1))
		perror("sysrq");
	if (fd >= 0)
		close(fd);
	tell_loop();
}

void watch(void)
{
	uint64_t time = now();

	for (int i = 0; i <= PROCESSES; i++) {
		struct actor *actor = &shared->actor[i];
		uint64_t since = actor->since;

		if (!actor->call[0] || actor->told || time < since || time - since < PATIENCE * slow * 1000000000ULL)
			continue;
		actor->told = true;
		if (__sync_add_and_fetch(&shared->violations, 1) > MOST_TOLD)
			continue;
		fprintf(stderr, "VIOLATION hang: process %d (pid %d): %s takes %llu s\n", i, actor->pid, actor->call,
			(unsigned long long)(time - since) / 1000000000);
		tell_history(actor);
		tell_stacks();
	}
}
