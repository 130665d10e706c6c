/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A cache device, or an image of one, open and mapped; and the store on it.
 */
#ifndef FOREBAY_TOOLS_STORE_H
#define FOREBAY_TOOLS_STORE_H

#include <json-c/json.h>
#include <limits.h>
#include <sys/types.h>

#include "../core/pagestore.h"

struct device {
	const char *path;
	int fd;
	bool is_disk;			/* a block device, not an image file */
	dev_t rdev;
	char name[NAME_MAX + 1];	/* the kernel's; of an image the path's last part */
	u64 size;
	void *base;
};

/* Flags of device_open(). */
#define DEVICE_WRITE	1
#define DEVICE_SHARED	2	/* though somebody else may use it */

/* What a store holds, counted record by record. */
struct store_counts {
	u64 files_used;
	u64 files_unsettled;	/* their record promises a size that may not be durable below */
	u64 pages_out_of_sync;
	u64 pages_clean;
	u64 pages_free;
	u64 records_damaged;
};

bool device_open(struct device *dev, const char *path, unsigned int flags);
void device_close(struct device *dev);
void store_count(const struct ps *ps, struct store_counts *counts);
void store_describe(const struct ps *ps, const struct store_counts *counts, json_object *json);
const char *uuid_text(char text[37], const u8 uuid[PS_UUID_SIZE]);

#endif
