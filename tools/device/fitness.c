// SPDX-License-Identifier: GPL-2.0-only
/*
 * Whether Forebay can use a device, whether the device may be formatted, and whether that succeeded.
 */
#include <errno.h>
#include <string.h>

#include "../core/pm/host.h"
#include "base/message.h"
#include "base/shell.h"
#include "sys/namespace.h"
#include "sys/signature.h"
#include "sys/sysfs.h"
#include "fitness.h"
#include "worth.h"

/**
 * device_usable - check that a device is synchronous persistent memory with DAX
 * @dev: device, or an image of one
 *
 * Return: false, after a message, if not.
 */
bool device_usable(const struct device *dev)
{
	struct pm_namespace ns;
	char dax[8] = "";
	bool known;

	if (!dev->is_disk)
		return true;
	if (!sysfs_is_there())
		return false;
	known = namespace_of_disk(dev->name, &ns);
	if (known && ns.virtio) {
		problem("%s is virtio-pmem, which needs a call to the host to make data durable",
			dev->path);
		advice("Forebay cannot use it: give the guest an NVDIMM instead.");
		return false;
	}
	disk_attribute(dev->rdev, "queue/dax", dax, sizeof(dax));
	if (!strcmp(dax, "1"))
		return true;
	if (known) {
		problem("%s is %s in %s mode, without DAX; it must be in fsdax mode",
			dev->path, ns.name, ns.mode);
		advice("Convert it (its contents are lost): ndctl create-namespace -f -e %s -m fsdax --map=mem",
		       ns.name);
	} else {
		problem("%s is not persistent memory: it has no DAX", dev->path);
		advice("`ndctl list` shows the persistent memory there is.");
	}
	return false;
}

static bool holds_foreign_data(const struct device *dev)
{
	char text[200];
	int found = signature_find(dev->fd, text, sizeof(text));

	if (found > 0) {
		problem("%s holds %s", dev->path, text);
		advice("`wipefs %s` shows more. To overwrite it: --force", in_shell(dev->path));
	} else if (found < 0) {
		problem("cannot find out what %s holds", dev->path);
		advice("To overwrite it whatever it is: --force");
	}
	return found;
}

/**
 * device_may_format - check that a device may be formatted
 * @dev: device, mapped
 * @force: overwrite anything that it holds
 * @wrong: what is wrong with a cache or log that it holds already; NULL: nothing
 *
 * Return: false, after a message, if not.
 */
bool device_may_format(const struct device *dev, bool force, const char *wrong)
{
	if (!device_usable(dev))
		return false;
	if (force)
		return true;
	if (!expendable(dev) || holds_foreign_data(dev))
		return false;
	if (wrong) {
		problem("%s: %s", dev->path, wrong);
		advice("To overwrite whatever is there: --force");
	}
	return !wrong;
}

/**
 * device_write_failed - say that storing to a device has failed
 * @dev: device, mapped; pm_host_error() isn't 0
 */
void device_write_failed(const struct device *dev)
{
	int err = pm_host_error();

	if (err == ENOSPC || err == EDQUOT) {
		problem("%s: no space left for the image", dev->path);
		advice("Make room on the file system that it is on.");
		return;
	}
	problem("writing to %s failed: %s", dev->path, strerror(err));
	if (dev->is_disk && err == EIO)
		advice("`ndctl list -M` shows bad blocks. `ndctl clear-errors` may clear them: what was in them reads as zeros then.");
}

/**
 * device_wipe - wipe the signatures of what others made, before a device is formatted
 * @dev: device, mapped; device_may_format() allows it
 *
 * Some lie behind what a format overwrites: the second copy of a partition table, for example. Wiped
 * afterwards, an interruption would leave a device that is a cache or log and something else, too.
 *
 * Return: false, after a message, if that failed.
 */
bool device_wipe(const struct device *dev)
{
	if (signature_wipe_all(dev->fd))
		return true;
	problem("cannot wipe what %s held before: %s", dev->path, strerror(errno));
	return false;
}

/**
 * device_formatted - report errors of the stores that a format made
 * @dev: device, mapped
 *
 * Return: false, after a message, if there was one.
 */
bool device_formatted(const struct device *dev)
{
	if (!pm_host_error())
		return true;
	device_write_failed(dev);
	return false;
}
