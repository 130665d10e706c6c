/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The state of a cache is one JSON object, whether it was read from /sys/fs/forebay or from the device.
 * Its keys are those of docs/sysfs.md, and device, mounted, mountpoints and lower. status.c gathers the
 * object, and status_table.c prints it as a table. status_file.c does both for a file.
 */
#ifndef FOREBAY_TOOLS_STATUS_H
#define FOREBAY_TOOLS_STATUS_H

#include <json-c/json.h>
#include <stdbool.h>

bool gather_mounted_caches(struct json_object *all);
void print_cache(struct json_object *cache);
struct json_object *gather_file(const char *path, bool *good);
void print_file(struct json_object *file);

#endif
