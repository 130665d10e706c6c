/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The ranges of persistent memory that are in use, and their users. Kernel only.
 *
 * The block layer claims block devices. But /dev/pmem0, a dm-linear over it and a partition of it are
 * different devices over the same memory. And device-mapper claims the devices of all its tables as one
 * holder. So the caches of the file system and the write logs reserve the memory itself here, by its
 * kernel address. The kernel maps a pmem device once, whichever block device leads to it.
 *
 * A range that its user reads and stores to by address also stays mapped. The kernel takes a device's struct
 * pages and their mapping away when the device's driver is unbound (a write to `unbind` in sysfs). It waits
 * for users that have a reference (struct dev_pagemap). So it waits for us, and the unbind ends when the
 * range is given up.
 *
 * This is a module of its own, forebay-ranges.ko, so that its users are independent of each other.
 */
#ifndef FOREBAY_CORE_PM_RANGES_H
#define FOREBAY_CORE_PM_RANGES_H

#include <linux/types.h>

#define PM_RANGE_USER	64

struct dev_pagemap;

/* Zeroed: not registered. */
struct pm_range {
	struct list_head list;
	const void *start;
	u64 size;
	const void *owner;		/* ranges of one owner may overlap: two tables of a mapped device */
	bool by_address;		/* its user reads and stores to it by address: it stays mapped */
	char user[PM_RANGE_USER];	/* what the range is used for, for messages */
	struct dev_pagemap **maps;	/* what keeps it mapped; of each device that it lies on */
	unsigned int nr_maps;
};

int pm_range_register(struct pm_range *range, char other[PM_RANGE_USER]);
void pm_range_unregister(struct pm_range *range);

#endif
