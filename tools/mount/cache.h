/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The device that cache=… means.
 */
#ifndef FOREBAY_TOOLS_MOUNT_CACHE_H
#define FOREBAY_TOOLS_MOUNT_CACHE_H

char *cache_resolve(const char *value);

#endif
