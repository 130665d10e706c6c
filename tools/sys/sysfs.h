/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Files in /sys and /proc that hold one value, and the kernel's names of block devices.
 *
 * sys/ is what the command asks of the system: sysfs, mounts, modules, namespaces of persistent memory,
 * foreign signatures. It uses base/ only.
 */
#ifndef FOREBAY_TOOLS_SYSFS_H
#define FOREBAY_TOOLS_SYSFS_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/compiler.h"

#define FOREBAY_SYSFS	"/sys/fs/forebay"

typedef void (*name_fn)(void *arg, const char *name);
typedef bool (*holder_fn)(void *arg, const char *holder);

const char *kernel_path(char path[PATH_MAX], const char *format, ...)
	__printf(2, 3);
bool sysfs_is_there(void);
bool kernel_read(const char *path, char *text, size_t size);
bool names_in(const char *folder, name_fn fn, void *arg);
bool disk_name(dev_t rdev, char name[NAME_MAX + 1]);
bool disk_attribute(dev_t rdev, const char *attribute, char *text, size_t size);
bool disk_is_volatile(dev_t rdev);
bool disk_path(const char *numbers, char path[PATH_MAX]);
bool disk_holder(const char *disk, holder_fn wanted, void *arg);
bool cache_attribute(const char *name, const char *attribute, uint64_t *value);

#endif
