// SPDX-License-Identifier: GPL-2.0-only
/*
 * What is done with any task of libdevmapper. The library would print its errors itself. The first one is
 * kept instead: not every error is a problem of the user, and one that is becomes part of our message.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/compiler.h"
#include "base/message.h"
#include "task.h"

#define FIRST_ERROR	200

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

/**
 * task_new - begin a task
 * @type: DM_DEVICE_CREATE ...
 * @name: of the mapped device; NULL: none
 *
 * Return: NULL if that failed.
 */
struct dm_task *task_new(int type, const char *name)
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

/**
 * task_problem - say that the last task failed
 * @name: of the device
 * @what: the task was to do
 */
void task_problem(const char *name, const char *what)
{
	problem("%s: cannot %s: %s", name, what, *first_error ? first_error : strerror(errno));
}

/**
 * task_run_with_udev - run a task that causes a uevent, and wait for udev
 * @task: that makes, resumes or removes a device
 *
 * Return: false if it failed.
 */
bool task_run_with_udev(struct dm_task *task)
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
 * task_info - ask whether a mapped device exists, and for its state
 * @name: of the device
 * @info: filled in
 *
 * Return: false if there is no such device.
 */
bool task_info(const char *name, struct dm_info *info)
{
	struct dm_task *task = task_new(DM_DEVICE_INFO, name);
	bool exists = task && dm_task_run(task) && dm_task_get_info(task, info) && info->exists;

	if (task)
		dm_task_destroy(task);
	return exists;
}
