// SPDX-License-Identifier: GPL-2.0-only
/*
 * What the command asks device-mapper. The status line is that of
 * docs/writelog.md; docs and the target's status function go together.
 */
#include <errno.h>
#include <libdevmapper.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "message.h"
#include "writelog_target.h"

#define FIRST_ERROR	200

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
 * target_create - make a mapped device with a write log
 * @name: of the device
 * @sectors: of the origin
 * @parameters: of the target
 *
 * Return: false, after a message, if that failed.
 */
bool target_create(const char *name, uint64_t sectors, const char *parameters)
{
	struct dm_task *task = task_new(DM_DEVICE_CREATE, name);
	bool good = task && dm_task_add_target(task, 0, sectors, WRITELOG_TARGET, parameters) &&
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
static bool ask(const char *name, int type, struct writelog_target *target, char line[WRITELOG_TEXT])
{
	char *kind = NULL, *parameters = NULL;
	struct dm_task *task = task_new(type, name);
	uint64_t start, sectors;
	struct dm_info info;
	bool found;

	if (!task)
		return false;
	found = dm_task_run(task) && dm_task_get_info(task, &info) && info.exists;
	if (found) {
		dm_get_next_target(task, NULL, &start, &sectors, &kind, &parameters);
		found = kind && !strcmp(kind, WRITELOG_TARGET);
	}
	if (found) {
		target->sectors = sectors;
		target->open_count = info.open_count;
		target->suspended = info.suspended;
		snprintf(line, WRITELOG_TEXT, "%s", parameters);
	}
	dm_task_destroy(task);
	return found;
}

/**
 * target_read - what a write log that is in use says
 * @name: of the mapped device
 * @target: filled in
 *
 * Return: false if there is no such device, or it is something else.
 */
bool target_read(const char *name, struct writelog_target *target)
{
	char status[WRITELOG_TEXT], table[WRITELOG_TEXT];
	int values = 0;

	*target = (struct writelog_target){ };
	if (!ask(name, DM_DEVICE_STATUS, target, status) ||
	    !ask(name, DM_DEVICE_TABLE, target, table))
		return false;
	if (sscanf(status, "%15s %15s %lu/%lu %lu/%lu %*u %n", target->health, target->mode,
		   &target->generations_used, &target->generations_total, &target->bytes_used,
		   &target->bytes_total, &values) < 6)
		return false;
	if (values)
		snprintf(target->values, sizeof(target->values), "%s", status + values);
	return sscanf(table, "%63s %63s", target->origin, target->log) == 2;
}

/**
 * target_each - for every mapped device that is a write log
 * @each: called with its name
 * @arg: passed to @each
 *
 * Return: false, after a message, if device-mapper can't be asked, or if @each
 * returned that.
 */
bool target_each(writelog_each_fn each, void *arg)
{
	struct dm_task *task = task_new(DM_DEVICE_LIST, NULL);
	struct writelog_target target;
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
		if (target_read(names->name, &target))
			good = each(arg, names->name) && good;
		if (!names->next)
			break;
		names = (void *)((char *)names + names->next);
	}
	dm_task_destroy(task);
	return good;
}

/**
 * target_message - send a message to a write log, and wait until it is done
 * @name: of the mapped device
 * @message: what the target is to do
 *
 * Return: 0, or the errno of the kernel.
 */
int target_message(const char *name, const char *message)
{
	struct dm_task *task = task_new(DM_DEVICE_TARGET_MSG, name);
	int err = ENOMEM;

	if (task && dm_task_set_sector(task, 0) && dm_task_set_message(task, message))
		err = dm_task_run(task) ? 0 : dm_task_get_errno(task);
	if (task)
		dm_task_destroy(task);
	return err;
}

/**
 * target_remove - remove a mapped device
 * @name: of the device
 *
 * Return: 0, or the errno of the kernel.
 */
int target_remove(const char *name)
{
	struct dm_task *task = task_new(DM_DEVICE_REMOVE, name);
	int err = ENOMEM;

	if (task)
		err = run_with_udev(task) ? 0 : dm_task_get_errno(task);
	if (task)
		dm_task_destroy(task);
	return err;
}
