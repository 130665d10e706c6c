// SPDX-License-Identifier: GPL-2.0-only
/*
 * Finds the persistent-memory namespace behind a device, so that messages can name what has to be
 * converted.
 */
#include <daxctl/libdaxctl.h>
#include <ndctl/libndctl.h>
#include <stdio.h>
#include <string.h>
#include <sys/sysmacros.h>

#include "namespace.h"

/* What is looked for: a disk by name, or a DAX device by number. */
struct wanted {
	const char *disk;
	dev_t dax;
};

static const char *mode_name(struct ndctl_namespace *ndns)
{
	switch (ndctl_namespace_get_mode(ndns)) {
	case NDCTL_NS_MODE_FSDAX:
		return "fsdax";
	case NDCTL_NS_MODE_SECTOR:
		return "sector";
	case NDCTL_NS_MODE_DEVDAX:
		return "devdax";
	default:
		return "raw";
	}
}

static const char *namespace_disk(struct ndctl_namespace *ndns)
{
	struct ndctl_btt *btt = ndctl_namespace_get_btt(ndns);
	struct ndctl_pfn *pfn = ndctl_namespace_get_pfn(ndns);

	if (btt)
		return ndctl_btt_get_block_device(btt);
	if (pfn)
		return ndctl_pfn_get_block_device(pfn);
	return ndctl_namespace_get_block_device(ndns);
}

static bool has_dax_device(struct ndctl_namespace *ndns, dev_t rdev)
{
	struct ndctl_dax *dax = ndctl_namespace_get_dax(ndns);
	struct daxctl_region *region = dax ? ndctl_dax_get_daxctl_region(dax) : NULL;
	struct daxctl_dev *dev;

	if (!region)
		return false;
	daxctl_dev_foreach(region, dev)
		if (makedev(daxctl_dev_get_major(dev), daxctl_dev_get_minor(dev)) == rdev)
			return true;
	return false;
}

static bool matches(struct ndctl_namespace *ndns, const struct wanted *wanted)
{
	const char *disk;

	if (!wanted->disk)
		return has_dax_device(ndns, wanted->dax);
	disk = namespace_disk(ndns);
	return disk && !strcmp(disk, wanted->disk);
}

static struct ndctl_namespace *find(struct ndctl_ctx *ctx, const struct wanted *wanted)
{
	struct ndctl_namespace *ndns;
	struct ndctl_region *region;
	struct ndctl_bus *bus;

	ndctl_bus_foreach(ctx, bus)
		ndctl_region_foreach(bus, region)
			ndctl_namespace_foreach(region, ndns)
				if (matches(ndns, wanted))
					return ndns;
	return NULL;
}

static bool look_up(const struct wanted *wanted, struct pm_namespace *ns)
{
	struct ndctl_namespace *ndns;
	struct ndctl_ctx *ctx;

	if (ndctl_new(&ctx))
		return false;
	ndns = find(ctx, wanted);
	if (ndns) {
		const char *provider = ndctl_bus_get_provider(ndctl_namespace_get_bus(ndns));

		snprintf(ns->name, sizeof(ns->name), "%s", ndctl_namespace_get_devname(ndns));
		ns->mode = mode_name(ndns);
		ns->virtio = provider && !strcmp(provider, "virtio-pmem");
	}
	ndctl_unref(ctx);
	return ndns;
}

/**
 * namespace_of_disk - the namespace behind a block device
 * @disk: the kernel's name, for example "pmem0"
 * @ns: filled in if there is one
 *
 * Return: false if the disk is not persistent memory, as far as libndctl knows.
 */
bool namespace_of_disk(const char *disk, struct pm_namespace *ns)
{
	return look_up(&(struct wanted){ .disk = disk }, ns);
}

/**
 * namespace_of_dax - the namespace behind a DAX character device
 * @rdev: its number
 * @ns: filled in if there is one
 *
 * Return: false if it is no DAX device of persistent memory.
 */
bool namespace_of_dax(dev_t rdev, struct pm_namespace *ns)
{
	return look_up(&(struct wanted){ .dax = rdev }, ns);
}
