/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A device, or an image of one, that holds a cache or a write log or shall hold one: open and mapped.
 *
 * device/ is what caches and write logs share: opening, identifying, counting, and judging whether a
 * device may be overwritten. It uses base/, sys/, core/, and mapped/ for what uses a device. cache/ and
 * writelog/ use it.
 */
#ifndef FOREBAY_TOOLS_DEVICE_H
#define FOREBAY_TOOLS_DEVICE_H

#include <limits.h>
#include <sys/types.h>

#include "../core/store/store.h"

struct device {
	const char *path;
	int fd;
	bool is_disk;			/* a block device; else an image file */
	dev_t rdev;
	char name[NAME_MAX + 1];	/* the kernel's name; of an image, the path's last part */
	u64 size;
	void *base;
};

/* Flags of device_open(). */
#define DEVICE_WRITE	1
#define DEVICE_SHARED	2	/* not exclusive: the device may be in use */

bool device_open(struct device *dev, const char *path, unsigned int flags);
void device_close(struct device *dev);
const char *uuid_text(char text[37], const u8 uuid[PS_UUID_SIZE]);

#endif
