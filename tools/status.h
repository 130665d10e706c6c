/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A cache's state is one JSON object, whether it was read from /sys/fs/forebay or
 * from the device: keys as in docs/sysfs.md, and device, mounted, mountpoints and
 * lower. status.c gathers it, status_table.c prints it for people.
 */
#ifndef FOREBAY_TOOLS_STATUS_H
#define FOREBAY_TOOLS_STATUS_H

#include <json-c/json.h>

void print_cache(struct json_object *cache);

#endif
