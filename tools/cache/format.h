/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Makes a cache, for other verbs.
 *
 * cache/ has the verbs without a noun: those of caches, files on a mount, and probe. It uses base/, sys/,
 * device/ and core/. Only emu/ uses it.
 */
#ifndef FOREBAY_TOOLS_FORMAT_H
#define FOREBAY_TOOLS_FORMAT_H

#include <stdbool.h>

bool format_cache(const char *path);

#endif
