// SPDX-License-Identifier: GPL-2.0-only
/*
 * May a device be formatted: can Forebay use it, and is it nobody else's? And is it, once it was?
 */
#include <string.h>

#include "../core/host_pm.h"
#include "fitness.h"
#include "message.h"
#include "namespace.h"
#include "signature.h"
#include "sysfs.h"

/**
 * usable - is it what Forebay needs: synchronous persistent memory with DAX?
 * @dev: device, or an image of one
 *
 * Return: false, after a message, if not.
 */
bool usable(const struct device *dev)
{
	struct pm_namespace ns;
	char dax[8] = "";
	bool known;

	if (!dev->is_disk)
		return true;
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

/**
 * unclaimed - is there no file system or partition table of others?
 * @dev: device
 *
 * Return: false, after a message, if there is, or nobody can tell.
 */
bool unclaimed(const struct device *dev)
{
	char text[200];
	int found = signature_find(dev->fd, text, sizeof(text));

	if (found > 0) {
		problem("%s holds %s", dev->path, text);
		advice("`wipefs %s` shows more. To overwrite it: --force", dev->path);
	} else if (found < 0) {
		problem("cannot find out what %s holds", dev->path);
		advice("To overwrite it whatever it is: --force");
	}
	return !found;
}

/**
 * formatted - is what was just made on a device there, and nothing of others?
 * @dev: device, mapped by pm_host_map()
 *
 * New superblocks and tables have overwritten some signatures of file systems; others lie elsewhere, and go
 * now.
 *
 * Return: false, after a message, if that failed.
 */
bool formatted(const struct device *dev)
{
	if (pm_host_error())
		problem("writing to %s failed: %s", dev->path, strerror(pm_host_error()));
	else if (!signature_wipe_all(dev->fd))
		problem("cannot wipe what %s held before", dev->path);
	else
		return true;
	return false;
}
