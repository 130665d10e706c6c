// SPDX-License-Identifier: GPL-2.0-only
/*
 * What the command asks device-mapper, whichever of our targets it is about.
 */
#include <errno.h>
#include <fcntl.h>
#include <libdevmapper.h>
#include <linux/fs.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "mapped.h"
#include "message.h"

#define FIRST_ERROR	200

/* How long udev may look at a device, and between two looks whether it does. */
#define VISIT_MS	1500
#define VISIT_STEP_MS	50

/* What the library would print: kept, for it may be no problem. */
static char first_error[FIRST_ERROR];

__printf(5, 6)
static void keep_error(int level, const char *file, int line, int err, const char *format, ...)
{
	va_list args;

	(void)file;
	(void)line;
	(void)err;
	if (level > 3 || *first_error)	/* 3: an error, in the library's numbers */
		return;
	va_start(args, format);
	vsnprintf(first_error, sizeof(first_error), format, args);
	va_end(args);
}

static struct dm_task *task_new(int type, const char *name)
{
	struct dm_task *task;

	dm_log_with_errno_init(keep_error);
	*first_error = '\0';
	task = dm_task_create(type);
	if (task && (!name || dm_task_set_name(task, name)))
		return task;
	if (task)
		dm_task_destroy(task);
	return NULL;
}

static void say_failed(const char *name, const char *what)
{
	problem("%s: cannot %s: %s", name, what, *first_error ? first_error : strerror(errno));
}

/* Runs a task that makes or removes the node in /dev/mapper, and waits for udev. */
static bool run_with_udev(struct dm_task *task)
{
	uint32_t cookie = 0;
	bool good;

	if (!dm_task_set_cookie(task, &cookie, 0))
		return false;
	good = dm_task_run(task);
	dm_udev_wait(cookie);
	return good;
}

/**
 * mapped_name - what device-mapper calls a device
 * @text: its name or its node in /dev/mapper
 */
const char *mapped_name(const char *text)
{
	size_t folder = strlen("/dev/mapper/");

	return strncmp(text, "/dev/mapper/", folder) ? text : text + folder;
}

/**
 * mapped_create - make a mapped device
 * @name: of the device
 * @sectors: its length
 * @kind: name of its target
 * @parameters: of the target
 *
 * Return: false, after a message, if that failed.
 */
bool mapped_create(const char *name, uint64_t sectors, const char *kind, const char *parameters)
{
	struct dm_task *task = task_new(DM_DEVICE_CREATE, name);
	bool good = task && dm_task_add_target(task, 0, sectors, kind, parameters) &&
		    run_with_udev(task);

	if (!good) {
		say_failed(name, "create it");
		advice("dmesg tells what the kernel had against it.");
	} else {
		dm_task_update_nodes();
	}
	if (task)
		dm_task_destroy(task);
	return good;
}

/* Asks for the status or the table; @line has what the only target says. */
static bool ask(const char *name, const char *kind, int type, struct mapped *mapped, char line[MAPPED_TEXT])
{
	char *found_kind = NULL, *parameters = NULL;
	struct dm_task *task = task_new(type, name);
	uint64_t start, sectors;
	struct dm_info info;
	bool found;

	if (!task)
		return false;
	found = dm_task_run(task) && dm_task_get_info(task, &info) && info.exists;
	if (found) {
		dm_get_next_target(task, NULL, &start, &sectors, &found_kind, &parameters);
		found = found_kind && !strcmp(found_kind, kind);
	}
	if (found) {
		mapped->sectors = sectors;
		mapped->open_count = info.open_count;
		mapped->suspended = info.suspended;
		snprintf(line, MAPPED_TEXT, "%s", parameters);
	}
	dm_task_destroy(task);
	return found;
}

/**
 * mapped_read - what a target that is in use says
 * @name: of the mapped device
 * @kind: name of the target
 * @mapped: filled in
 *
 * Return: false if there is no such device, or it is something else.
 */
bool mapped_read(const char *name, const char *kind, struct mapped *mapped)
{
	*mapped = (struct mapped){ };
	return ask(name, kind, DM_DEVICE_STATUS, mapped, mapped->status) &&
	       ask(name, kind, DM_DEVICE_TABLE, mapped, mapped->table);
}

/**
 * mapped_each - for every mapped device with a target of some kind
 * @kind: name of the target
 * @each: called with the device's name and what its target says
 * @arg: passed to @each
 *
 * A device that goes meanwhile is left out.
 *
 * Return: false, after a message, if device-mapper can't be asked, or if @each
 * returned that.
 */
bool mapped_each(const char *kind, mapped_each_fn each, void *arg)
{
	struct dm_task *task = task_new(DM_DEVICE_LIST, NULL);
	struct mapped mapped;
	struct dm_names *names;
	bool good = true;

	if (!task || !dm_task_run(task)) {
		say_failed("device-mapper", "list its devices");
		advice(geteuid() ? "This needs root." : "Is the device mapper there? modprobe dm-mod");
		if (task)
			dm_task_destroy(task);
		return false;
	}
	names = dm_task_get_names(task);
	while (names && names->dev) {
		if (mapped_read(names->name, kind, &mapped))
			good = each(arg, names->name, &mapped) && good;
		if (!names->next)
			break;
		names = (void *)((char *)names + names->next);
	}
	dm_task_destroy(task);
	return good;
}

/**
 * mapped_strange - say that a target says something that this command does not understand
 * @name: of the mapped device
 *
 * Return: false.
 */
bool mapped_strange(const char *name)
{
	problem("%s has a status or a table of a kind that is not known here", name);
	advice("Are the command and the module of the same version? `dmsetup status %s` shows it.", name);
	return false;
}

/**
 * mapped_message - send a message to a target, and wait until it is done
 * @name: of the mapped device
 * @message: what the target is to do
 *
 * Return: 0, or the errno of the kernel.
 */
int mapped_message(const char *name, const char *message)
{
	struct dm_task *task = task_new(DM_DEVICE_TARGET_MSG, name);
	int err = ENOMEM;

	if (task && dm_task_set_sector(task, 0) && dm_task_set_message(task, message))
		err = dm_task_run(task) ? 0 : dm_task_get_errno(task) ?: EIO;
	if (task)
		dm_task_destroy(task);
	return err;
}

static void say_busy(const char *name)
{
	problem("%s is in use", name);
	advice("`lsblk /dev/mapper/%s` may show by what. Unmount it first.", name);
}

static bool is_open(const char *name)
{
	struct dm_task *task = task_new(DM_DEVICE_INFO, name);
	struct dm_info info;
	bool open;

	open = task && dm_task_run(task) && dm_task_get_info(task, &info) && info.exists && info.open_count;
	if (task)
		dm_task_destroy(task);
	return open;
}

/**
 * mapped_idle - does nobody have a mapped device open?
 * @name: of the device
 *
 * When somebody who could write to it has closed it, udev opens it for some
 * milliseconds to see what is there now: such a visitor is waited for.
 *
 * Return: false, after a message, if it is in use.
 */
bool mapped_idle(const char *name)
{
	const struct timespec step = { .tv_nsec = VISIT_STEP_MS * 1000000L };

	for (int waited = 0; is_open(name); waited += VISIT_STEP_MS) {
		if (waited >= VISIT_MS) {
			say_busy(name);
			return false;
		}
		nanosleep(&step, NULL);
	}
	return true;
}

/**
 * mapped_remove - remove a mapped device
 * @name: of the device
 *
 * If it is in use that is tried again, as the library does it: for 5 seconds.
 *
 * Return: DONE, or FAILED after a message.
 */
enum exit_status mapped_remove(const char *name)
{
	struct dm_task *task = task_new(DM_DEVICE_REMOVE, name);
	int err = ENOMEM;

	if (task && dm_task_retry_remove(task))
		err = run_with_udev(task) ? 0 : dm_task_get_errno(task) ?: EIO;
	if (task)
		dm_task_destroy(task);
	if (err == EBUSY)
		say_busy(name);
	else if (err)
		problem("cannot remove %s: %s", name, strerror(err));
	return err ? FAILED : DONE;
}

/**
 * mapped_below - measure a block device that nobody uses, to map something over it
 * @path: of the device
 * @what: what it will be, for the message
 * @sectors: its length
 * @rdev: its number
 *
 * Return: false, after a message, if it is in use or no block device.
 */
bool mapped_below(const char *path, const char *what, uint64_t *sectors, dev_t *rdev)
{
	int fd = open(path, O_RDONLY | O_EXCL | O_CLOEXEC);
	struct stat st;
	uint64_t bytes;
	bool good;

	if (fd < 0 && errno == EBUSY) {
		problem("%s is in use", path);
		advice("`lsblk %s` may show by what. Unmount it first.", path);
		return false;
	}
	good = fd >= 0 && !fstat(fd, &st) && !ioctl(fd, BLKGETSIZE64, &bytes);
	if (!good)
		problem("%s cannot be %s: %s", path, what, strerror(errno));
	else
		*rdev = st.st_rdev;
	if (fd >= 0)
		close(fd);
	*sectors = good ? bytes >> 9 : 0;
	return good;
}

/**
 * pairs_add - add an option to those of a table line
 * @pairs: begins empty
 * @key: its name
 * @key_len: length of @key
 * @value: without a blank
 *
 * Return: false if there is no room for it.
 */
bool pairs_add(struct pairs *pairs, const char *key, int key_len, const char *value)
{
	size_t at = strlen(pairs->text);
	int len = snprintf(pairs->text + at, sizeof(pairs->text) - at, " %.*s %s", key_len, key, value);

	pairs->words += 2;
	return len < (int)(sizeof(pairs->text) - at);
}

/**
 * pairs_take - add what --option was given
 * @verb: for the message
 * @pairs: begins empty
 * @pair: "key=value", neither with a blank
 *
 * Return: false, after a message, if it is not that.
 */
bool pairs_take(const struct verb *verb, struct pairs *pairs, const char *pair)
{
	const char *equals = strchr(pair, '=');

	if (equals && equals > pair && equals[1] && !strpbrk(pair, " \t\n") &&
	    pairs_add(pairs, pair, equals - pair, equals + 1))
		return true;
	usage_problem(verb, "--option %s: want KEY=VALUE", pair);
	return false;
}
