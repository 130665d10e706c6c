/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The persistent-memory namespace behind a device, as ndctl calls it.
 */
#ifndef FOREBAY_TOOLS_NAMESPACE_H
#define FOREBAY_TOOLS_NAMESPACE_H

#include <stdbool.h>
#include <sys/types.h>

struct pm_namespace {
	char name[32];		/* "namespace0.0" */
	const char *mode;	/* "fsdax", "raw", "sector", "devdax" */
	bool virtio;		/* data are durable only after a call to the host */
};

bool namespace_of_disk(const char *disk, struct pm_namespace *ns);
bool namespace_of_dax(dev_t rdev, struct pm_namespace *ns);

#endif
