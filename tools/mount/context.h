/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A file system context of the kernel: mounts are made with one, and the kernel logs its errors to it.
 */
#ifndef FOREBAY_TOOLS_MOUNT_CONTEXT_H
#define FOREBAY_TOOLS_MOUNT_CONTEXT_H

#include <stdbool.h>

#include "options.h"

struct context {
	int fd;
	bool remount;
	bool sloppy;		/* leave out options that the kernel doesn't know */
	bool verbose;
};

bool context_new(struct context *context);
bool context_pick(struct context *context, const char *target);
bool context_configure(struct context *context, const char *lower, const struct options *options);
bool context_mount(struct context *context, const char *target, const struct options *options);
bool context_remount(struct context *context, const char *target, const struct options *options);

#endif
