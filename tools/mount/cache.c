// SPDX-License-Identifier: GPL-2.0-only
/*
 * The device that cache=… means: a path, or a persistent name (UUID=…, or another tag of libblkid, such
 * as PARTUUID=… of a partition).
 *
 * A UUID is first looked for in the superblocks of all devices. So udev need not have seen the device, and
 * two devices with the same UUID are noticed.
 */
#include <blkid.h>
#include <stdlib.h>
#include <string.h>

#include "device/identity.h"
#include "cache.h"
#include "say.h"

static char *resolve_uuid(const char *uuid)
{
	char path[PATH_MAX], other[PATH_MAX];
	char *known;

	switch (find_cache(uuid, path, other)) {
	case FOUND_ONE:
		return strdup(path);
	case FOUND_SEVERAL:
		say("both %s and %s are caches with the UUID %s: say which one with cache=DEVICE",
		    path, other, uuid);
		return NULL;
	default:
		break;
	}
	known = blkid_evaluate_tag("UUID", uuid, NULL);
	if (!known)
		say("there is no cache with the UUID %s: `forebay probe DEVICE` shows a device's, and `ndctl list` the persistent memory there is",
		    uuid);
	return known;
}

static char *resolve_tag(const char *tag, const char *value)
{
	char *path;

	if (!strcmp(tag, "UUID"))
		return resolve_uuid(value);
	path = blkid_evaluate_tag(tag, value, NULL);
	if (!path)
		say("there is no device with %s=%s", tag, value);
	return path;
}

/**
 * cache_resolve - find the device of a cache
 * @value: of the option cache
 *
 * Return: its path, to be freed; NULL after a message.
 */
char *cache_resolve(const char *value)
{
	char *tag = NULL, *name = NULL, *path;

	if (*value == '/' || blkid_parse_tag_string(value, &tag, &name))
		return strdup(value);
	path = resolve_tag(tag, name);
	free(tag);
	free(name);
	return path;
}
