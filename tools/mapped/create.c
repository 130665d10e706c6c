// SPDX-License-Identifier: GPL-2.0-only
/*
 * Loads tables: creates a mapped device, or loads its own table again. The devices below are examined
 * first, since the kernel gives only an error number for most failures.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/message.h"
#include "base/shell.h"
#include "sys/release.h"
#include "sys/rights.h"
#include "holders.h"
#include "mapped.h"
#include "task.h"

/**
 * mapped_may_create - check that no mapped device has a name yet
 * @name: of the device
 *
 * Return: false, after a message, if there is one already.
 */
bool mapped_may_create(const char *name)
{
	struct dm_info info;

	if (!task_info(name, &info))
		return true;
	problem("%s: a mapped device of that name already exists", name);
	advice("`dmsetup table %s` shows what it is. Choose another name.", in_shell(name));
	return false;
}

static bool has_target(struct dm_versions *versions, const char *target)
{
	for (;; versions = (void *)((char *)versions + versions->next)) {
		if (!strcmp(versions->name, target))
			return true;
		if (!versions->next)
			return false;
	}
}

/* The kernel has tried to load the module of the target by itself. */
static void advise_why(const struct mapped_kind *kind)
{
	struct dm_task *task = task_new(DM_DEVICE_LIST_VERSIONS, NULL);
	char module[64], text[ADVICE_TEXT];

	snprintf(module, sizeof(module), "dm-forebay-%s", kind->noun);
	if (rights_lacking())
		advice("%s", rights_lacking());
	else if (!task || !dm_task_run(task))
		advice("Is the device mapper loaded? modprobe dm-mod");
	else if (has_target(dm_task_get_versions(task), kind->target))
		advice("dmesg says why the kernel refused it.");
	else if (module_is_elsewhere(module, text))
		advice("The kernel has no target %s. %s", kind->target, text);
	else
		advice("The kernel has no target %s: `modprobe %s` tells why. Is Forebay installed for this kernel (make install, or its package)?",
		       kind->target, module);
	if (task)
		dm_task_destroy(task);
}

/**
 * mapped_create - make a mapped device
 * @name: of the device
 * @sectors: its length
 * @kind: of its target
 * @parameters: of the target
 *
 * Return: false, after a message, if that failed.
 */
bool mapped_create(const char *name, uint64_t sectors, const struct mapped_kind *kind,
		   const char *parameters)
{
	struct dm_task *task = task_new(DM_DEVICE_CREATE, name);
	bool good = task && dm_task_add_target(task, 0, sectors, kind->target, parameters) &&
		    task_run_with_udev(task);

	if (!good) {
		task_problem(name, "create it");
		advise_why(kind);
	} else {
		dm_task_update_nodes();
	}
	if (task)
		dm_task_destroy(task);
	return good;
}

static bool load_same(const char *name, const struct mapped_kind *kind, const struct mapped *mapped)
{
	struct dm_task *task = task_new(DM_DEVICE_RELOAD, name);
	bool good = task && dm_task_add_target(task, 0, mapped->sectors, kind->target, mapped->table) &&
		    dm_task_run(task);

	if (!good) {
		task_problem(name, "load its table again");
		advice("It keeps its old table. dmesg says why the kernel refused the new one.");
	}
	if (task)
		dm_task_destroy(task);
	return good;
}

/**
 * mapped_reload - restart a target with the same table
 * @name: of the device
 * @kind: of its target
 * @mapped: from mapped_find()
 *
 * Programs that use the device wait meanwhile, and notice nothing else.
 *
 * Return: DONE, or FAILED after a message.
 */
enum exit_status mapped_reload(const char *name, const struct mapped_kind *kind,
			       const struct mapped *mapped)
{
	struct dm_task *task;
	bool good;

	if (!load_same(name, kind, mapped))
		return FAILED;
	/* With a loaded table, resuming also suspends the device first. */
	task = task_new(DM_DEVICE_RESUME, name);
	good = task && task_run_with_udev(task);
	if (!good) {
		task_problem(name, "use the table that was loaded again");
		advice("It may be suspended now (`dmsetup info %s`); then programs that use it wait. dmesg says why; `dmsetup resume %s` tries again.",
		       in_shell(name), in_shell(name));
	}
	if (task)
		dm_task_destroy(task);
	return good ? DONE : FAILED;
}

static bool say_unfit(const char *path, const char *what, const struct stat *st, int err)
{
	if (!err && S_ISREG(st->st_mode)) {
		problem("%s cannot be %s: it is a file, not a block device", path, what);
		advice("`losetup --find --show %s` makes a block device of it.", in_shell(path));
	} else if (!err) {
		problem("%s cannot be %s: it is not a block device", path, what);
		advice("`lsblk` lists the block devices.");
	} else if (err == EBUSY) {
		if (!say_user(path, st->st_rdev)) {
			problem("%s is in use", path);
			advice("`lsblk %s` may show by what. Unmount it first.", in_shell(path));
		}
	} else {
		problem("%s cannot be %s: %s", path, what, strerror(err));
		if (err == EACCES || err == EPERM)
			advice("%s", rights_advice());
		else if (err == ENOENT)
			advice("`lsblk` lists the block devices there are.");
	}
	return false;
}

/**
 * mapped_below - measure an unused block device, to map a target over it
 * @path: of the device
 * @what: what it will be, for the message
 * @sectors: its length
 * @rdev: its number
 *
 * Return: false, after a message, if it is in use or no block device.
 */
bool mapped_below(const char *path, const char *what, uint64_t *sectors, dev_t *rdev)
{
	uint64_t bytes = 0;
	struct stat st;
	int fd, err;

	if (stat(path, &st))
		return say_unfit(path, what, &st, errno);
	if (!S_ISBLK(st.st_mode))
		return say_unfit(path, what, &st, 0);
	fd = open(path, O_RDONLY | O_EXCL | O_CLOEXEC);
	if (fd < 0)
		return say_unfit(path, what, &st, errno);
	err = fstat(fd, &st) || ioctl(fd, BLKGETSIZE64, &bytes) ? errno : 0;
	close(fd);
	if (err)
		return say_unfit(path, what, &st, err);
	*rdev = st.st_rdev;
	*sectors = bytes >> 9;
	return true;
}
