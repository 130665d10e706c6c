// SPDX-License-Identifier: GPL-2.0-only
/*
 * A library to preload. It replaces libdevmapper, and the folder $FAKE_MAPPER replaces the kernel. A folder in
 * $FAKE_MAPPER is a mapped device; its files "target", "status", "table", "suspended" and "open" hold what the
 * kernel would say. "targets" names a target that is loaded. Each request is added to "journal" as a line:
 *
 *	create NAME TABLE, reload NAME TABLE, resume NAME, remove NAME, message NAME WORDS
 *
 * A file in the folder "answers", named like such a line, holds the result of the request: "ERRNO TIMES SECONDS
 * TEXT". The request fails with ERRNO so many TIMES, and takes SECONDS; then, while there is a file "hold", up to a
 * minute more. TEXT is the answer to a message.
 *
 * $FAKE_SIGNAL is sent to a process as soon as it has forked; $FAKE_BYTES is the size of every block device.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <libdevmapper.h>
#include <linux/fs.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#define TEXT	16384

struct dm_task {
	int type, err;
	char name[128], message[512], target[64], parameters[TEXT], text[TEXT];
	uint64_t length;
	_Alignas(8) char list[TEXT];
};

static const char *path(const char *name, const char *file)
{
	static char text[TEXT];

	snprintf(text, sizeof(text), "%s/%s/%s", getenv("FAKE_MAPPER"), name, file);
	return text;
}

/* The first line of a file; "" if there is no file. */
static char *load(const char *name, const char *file, char text[TEXT])
{
	FILE *from = fopen(path(name, file), "r");
	size_t len = from ? fread(text, 1, TEXT - 1, from) : 0;

	text[len] = '\0';
	if (from)
		fclose(from);
	return text;
}

static void store(const char *name, const char *file, const char *how, const char *text)
{
	FILE *to = fopen(path(name, file), how);

	if (!to || fputs(text, to) < 0 || fclose(to))
		abort();
}

static bool exists(const struct dm_task *task)
{
	return *task->name && !access(path(task->name, "target"), F_OK);
}

/* Adds a request to the journal, and finds its result. */
static bool told(struct dm_task *task, const char *what, const char *more)
{
	char line[3 * TEXT], text[TEXT], left[TEXT + 64];
	int err = 0, times = 0, seconds = 0, at = 0;

	snprintf(line, sizeof(line), "%s %s%s%s", what, task->name, *more ? " " : "", more);
	store(".", "journal", "a", line);
	store(".", "journal", "a", "\n");
	if (sscanf(load("answers", line, text), "%d %d %d %n", &err, &times, &seconds, &at) < 3)
		return true;
	strcpy(task->text, text + at);
	sleep(seconds);
	for (int step = 0; step < 6000 && !access(path(".", "hold"), F_OK); step++)
		usleep(10000);
	if (!times)
		return true;
	snprintf(left, sizeof(left), "%d %d %d %s", err, times - 1, seconds, task->text);
	store("answers", line, "w", left);
	task->err = err;
	return false;
}

static bool load_table(struct dm_task *task, const char *what)
{
	char table[2 * TEXT];

	snprintf(table, sizeof(table), "0 %lu %s %s", task->length, task->target, task->parameters);
	return told(task, what, table);
}

static bool list_devices(struct dm_task *task)
{
	struct dm_names *names = (void *)task->list, *last = NULL;
	DIR *dir = opendir(getenv("FAKE_MAPPER"));
	struct dirent *entry;

	while (dir && (entry = readdir(dir))) {
		if (*entry->d_name == '.' || access(path(entry->d_name, "target"), F_OK))
			continue;
		if (last) {
			last->next = 8 * ((sizeof(*last) + strlen(last->name) + 8) / 8);
			names = (void *)((char *)last + last->next);
		}
		names->dev = 1;
		names->next = 0;
		strcpy(names->name, entry->d_name);
		last = names;
	}
	return dir && !closedir(dir);
}

/* A target that is always loaded, and the one named in "targets". */
static void list_targets(struct dm_task *task)
{
	struct dm_versions *first = (void *)task->list, *second = (void *)(task->list + 64);

	memcpy(task->list + sizeof(*first), "linear", 7);
	if (sscanf(load(".", "targets", task->text), "%63s", task->list + 64 + sizeof(*second)) == 1)
		first->next = 64;
}

int dm_task_run(struct dm_task *task)
{
	char text[TEXT];

	switch (task->type) {
	case DM_DEVICE_INFO:
		return 1;
	case DM_DEVICE_LIST:
		return list_devices(task);
	case DM_DEVICE_LIST_VERSIONS:
		list_targets(task);
		return 1;
	case DM_DEVICE_CREATE:
		return load_table(task, "create");
	case DM_DEVICE_RELOAD:
		return load_table(task, "reload");
	case DM_DEVICE_RESUME:
		return told(task, "resume", "");
	case DM_DEVICE_TARGET_MSG:
		return told(task, "message", task->message);
	case DM_DEVICE_REMOVE:
		return told(task, "remove", "") && !unlink(path(task->name, "target"));
	}
	if (!exists(task))
		return 0;
	strcpy(task->target, load(task->name, "target", text));
	load(task->name, task->type == DM_DEVICE_TABLE ? "table" : "status", task->parameters);
	task->length = 131072;
	return 1;
}

struct dm_task *dm_task_create(int type)
{
	struct dm_task *task = calloc(1, sizeof(*task));

	task->type = type;
	return task;
}

void dm_task_destroy(struct dm_task *task)
{
	free(task);
}

int dm_task_set_name(struct dm_task *task, const char *name)
{
	snprintf(task->name, sizeof(task->name), "%s", name);
	return 1;
}

int dm_task_set_message(struct dm_task *task, const char *message)
{
	snprintf(task->message, sizeof(task->message), "%s", message);
	return 1;
}

int dm_task_add_target(struct dm_task *task, uint64_t start, uint64_t size, const char *target, const char *parameters)
{
	if (start)
		abort();
	task->length = size;
	snprintf(task->target, sizeof(task->target), "%s", target);
	snprintf(task->parameters, sizeof(task->parameters), "%s", parameters);
	return 1;
}

int dm_task_get_info(struct dm_task *task, struct dm_info *info)
{
	*info = (struct dm_info){
		.exists = exists(task),
		.suspended = !access(path(task->name, "suspended"), F_OK),
		.open_count = !access(path(task->name, "open"), F_OK),
	};
	return 1;
}

void *dm_get_next_target(struct dm_task *task, void *next, uint64_t *start, uint64_t *length, char **target,
			 char **parameters)
{
	*start = 0;
	*length = task->length;
	*target = task->target;
	*parameters = task->parameters;
	return next;
}

int dm_task_get_errno(struct dm_task *task)
{
	return task->err;
}

struct dm_names *dm_task_get_names(struct dm_task *task)
{
	return (void *)task->list;
}

struct dm_versions *dm_task_get_versions(struct dm_task *task)
{
	return (void *)task->list;
}

const char *dm_task_get_message_response(struct dm_task *task)
{
	return task->text;
}

int dm_task_set_cookie(struct dm_task *task, uint32_t *cookie, uint16_t flags)
{
	*cookie = flags;
	return task->type == DM_DEVICE_CREATE || task->type == DM_DEVICE_RESUME || task->type == DM_DEVICE_REMOVE;
}

int dm_task_set_sector(struct dm_task *task, uint64_t sector)
{
	return task && !sector;
}

int dm_task_retry_remove(struct dm_task *task)
{
	return task->type == DM_DEVICE_REMOVE;
}

int dm_udev_wait(uint32_t cookie)
{
	return !cookie;
}

void dm_task_update_nodes(void)
{
}

void dm_log_with_errno_init(dm_log_with_errno_fn fn)
{
	(void)fn;
}

pid_t fork(void)
{
	pid_t (*real)(void) = (pid_t (*)(void))dlsym(RTLD_NEXT, "fork");
	const char *number = getenv("FAKE_SIGNAL");
	pid_t child = real();

	if (child && number)
		raise(atoi(number));
	return child;
}

int ioctl(int fd, unsigned long request, ...)
{
	int (*real)(int, unsigned long, ...) = (int (*)(int, unsigned long, ...))dlsym(RTLD_NEXT, "ioctl");
	const char *bytes = getenv("FAKE_BYTES");
	va_list arguments;
	void *argument;

	va_start(arguments, request);
	argument = va_arg(arguments, void *);
	va_end(arguments);
	if (request != BLKGETSIZE64 || !bytes)
		return real(fd, request, argument);
	*(uint64_t *)argument = strtoull(bytes, NULL, 10);
	return 0;
}
