// SPDX-License-Identifier: GPL-2.0-only
/*
 * What the command asks device-mapper, for either target of Forebay's.
 */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/message.h"
#include "base/shell.h"
#include "sys/rights.h"
#include "sys/sysfs.h"
#include "mapped.h"
#include "task.h"

/* How long to wait for udev to close a device, and how long between two looks. */
#define VISIT_MS	1500
#define VISIT_STEP_MS	50

/**
 * mapped_name - the name of a mapped device in device-mapper
 * @text: its name or its node in /dev/mapper
 */
const char *mapped_name(const char *text)
{
	size_t folder = strlen("/dev/mapper/");

	return strncmp(text, "/dev/mapper/", folder) || !text[folder] ? text : text + folder;
}

/* Reads the status or the table; @line is the line of the only target. */
static bool ask(const char *name, const struct mapped_kind *kind, int type, struct mapped *mapped,
		char line[MAPPED_TEXT])
{
	char *target = NULL, *parameters = NULL;
	struct dm_task *task = task_new(type, name);
	uint64_t start, sectors;
	struct dm_info info;
	bool found;

	if (!task)
		return false;
	found = dm_task_run(task) && dm_task_get_info(task, &info) && info.exists;
	if (found) {
		dm_get_next_target(task, NULL, &start, &sectors, &target, &parameters);
		found = target && !strcmp(target, kind->target);
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
 * mapped_read - read the status and the table of a mapped device
 * @name: of the mapped device
 * @kind: of target
 * @mapped: filled in
 *
 * Return: false if there is no such device, or its target is of another kind.
 */
bool mapped_read(const char *name, const struct mapped_kind *kind, struct mapped *mapped)
{
	*mapped = (struct mapped){ };
	return ask(name, kind, DM_DEVICE_STATUS, mapped, mapped->status) &&
	       ask(name, kind, DM_DEVICE_TABLE, mapped, mapped->table);
}

/* Asks for the names of all mapped devices; NULL, after a message: device-mapper can't be asked. */
static struct dm_task *list_devices(void)
{
	struct dm_task *task = task_new(DM_DEVICE_LIST, NULL);

	if (task && dm_task_run(task))
		return task;
	task_problem("device-mapper", "list its devices");
	advice("%s", rights_lacking() ?: "Is the device mapper loaded? modprobe dm-mod");
	if (task)
		dm_task_destroy(task);
	return NULL;
}

/**
 * mapped_find - read the status and the table of a mapped device that must exist
 * @name: of the mapped device
 * @kind: of target
 * @mapped: filled in
 *
 * Return: false, after a message, if there is no such device, or device-mapper can't be asked.
 */
bool mapped_find(const char *name, const struct mapped_kind *kind, struct mapped *mapped)
{
	struct dm_task *task;

	if (mapped_read(name, kind, mapped))
		return true;
	task = list_devices();
	if (!task)
		return false;
	dm_task_destroy(task);
	problem("%s is not a device with a %s", name, kind->what);
	advice("`forebay %s status` lists them.", kind->noun);
	return false;
}

/**
 * mapped_each - for every mapped device with a target of some kind
 * @kind: of target
 * @each: called with the device's name, status and table
 * @arg: passed to @each
 *
 * A device that is removed meanwhile is left out.
 *
 * Return: false, after a message, if device-mapper can't be asked; or if @each returned false.
 */
bool mapped_each(const struct mapped_kind *kind, mapped_each_fn each, void *arg)
{
	struct dm_task *task = list_devices();
	struct mapped mapped;
	struct dm_names *names;
	bool good = true;

	if (!task)
		return false;
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
 * mapped_any - whether the kernel has any mapped device
 *
 * Without one, device-mapper need not be asked, which takes root and may load its module.
 */
bool mapped_any(void)
{
	char folder[PATH_MAX];
	DIR *dir = opendir(kernel_path(folder, "/sys/class/block"));
	struct dirent *entry;
	bool any = false;

	while (dir && !any && (entry = readdir(dir)))
		any = !strncmp(entry->d_name, "dm-", 3);
	if (dir)
		closedir(dir);
	return any;
}

/**
 * mapped_strange - say that this command does not understand the status or table of a target
 * @name: of the mapped device
 *
 * Return: false.
 */
bool mapped_strange(const char *name)
{
	problem("%s has a status or table that this command does not understand", name);
	advice("Are the command and the module of the same version? `dmsetup status %s` shows it.",
	       in_shell(name));
	return false;
}

/**
 * mapped_value - a number by its key, of those at the end of a status line
 * @values: "key value key value"
 * @key: which
 *
 * Return: 0 also if the key is missing.
 */
uint64_t mapped_value(const char *values, const char *key)
{
	char word[64];
	int len;

	for (; sscanf(values, "%63s%n", word, &len) == 1; values += len)
		if (!strcmp(word, key))
			return strtoull(values + len, NULL, 10);
	return 0;
}

/**
 * mapped_message - send a message to a target, and wait until it is done
 * @name: of the mapped device
 * @message: what the target is to do
 * @answer: set to the target's answer, to be freed, or to NULL on an error; NULL: no answer is wanted
 *
 * Return: 0, or the errno of the kernel.
 */
int mapped_message(const char *name, const char *message, char **answer)
{
	struct dm_task *task = task_new(DM_DEVICE_TARGET_MSG, name);
	int err = ENOMEM;

	if (task && dm_task_set_sector(task, 0) && dm_task_set_message(task, message))
		err = dm_task_run(task) ? 0 : dm_task_get_errno(task) ?: EIO;
	if (answer)
		*answer = err ? NULL : strdup(dm_task_get_message_response(task) ?: "");
	if (!err && answer && !*answer)
		err = ENOMEM;
	if (task)
		dm_task_destroy(task);
	return err;
}

static void say_busy(const char *name)
{
	problem("%s is in use", name);
	advice("`lsblk /dev/mapper/%s` may show by what. Unmount it first.", in_shell(name));
}

static bool is_open(const char *name)
{
	struct dm_info info;

	return task_info(name, &info) && info.open_count;
}

/**
 * mapped_idle - wait until no program has a mapped device open
 * @name: of the device
 *
 * When a writer closes the device, udev opens it for some milliseconds to probe it again. The wait is long
 * enough for udev.
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
 * While the device is in use, the library tries again for 5 seconds.
 *
 * Return: DONE, or FAILED after a message.
 */
enum exit_status mapped_remove(const char *name)
{
	struct dm_task *task = task_new(DM_DEVICE_REMOVE, name);
	int err = ENOMEM;

	if (task && dm_task_retry_remove(task))
		err = task_run_with_udev(task) ? 0 : dm_task_get_errno(task) ?: EIO;
	if (task)
		dm_task_destroy(task);
	if (err == EBUSY)
		say_busy(name);
	else if (err)
		problem("cannot remove %s: %s", name, strerror(err));
	return err ? FAILED : DONE;
}
