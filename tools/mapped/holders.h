/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What a block device is used by, and which mapped device a word means.
 */
#ifndef FOREBAY_TOOLS_HOLDERS_H
#define FOREBAY_TOOLS_HOLDERS_H

#include <limits.h>
#include <sys/types.h>

#include "mapped.h"

bool mapped_meant(const char *word, const struct mapped_kind *kind, char name[NAME_MAX + 1],
		  struct mapped *mapped);
bool say_user(const char *path, dev_t rdev);

#endif
