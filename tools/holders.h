/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Which devices the kernel has made of a block device.
 */
#ifndef FOREBAY_TOOLS_HOLDERS_H
#define FOREBAY_TOOLS_HOLDERS_H

#include <limits.h>
#include <sys/types.h>

#include "mapped.h"

bool mapped_meant(const char *word, const struct mapped_kind *kind, char name[NAME_MAX + 1],
		  struct mapped *mapped);
bool say_holder(const char *path, const char *disk);

#endif
