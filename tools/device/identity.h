/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Whether a device is a cache or a write log, and which device has a UUID.
 */
#ifndef FOREBAY_TOOLS_IDENTITY_H
#define FOREBAY_TOOLS_IDENTITY_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* As udev and lsblk show them: ID_FS_TYPE. */
#define TYPE_CACHE	"forebay"
#define TYPE_WRITELOG	"forebay-writelog"

struct identity {
	const char *type;		/* TYPE_*; NULL: neither */
	char uuid[37];
	unsigned int version;		/* of the format */
	uint64_t names_size;		/* of a cache's name log, in bytes; 0: there is none */
	const char *why;		/* it is neither, or unreadable: a sentence without full stop */
};

/* How the search for a UUID ended. */
enum found { FOUND_NONE, FOUND_ONE, FOUND_SEVERAL };

typedef bool (*cache_fn)(void *arg, const char *disk, const char *path, const struct identity *identity);

bool identify(const char *path, struct identity *identity);
void caches_each(cache_fn fn, void *arg);
enum found find_cache(const char *uuid, char path[PATH_MAX], char other[PATH_MAX]);

#endif
