// SPDX-License-Identifier: GPL-2.0-only
/*
 * What names an origin, across boots: names of disks change, so a log keeps what
 * the disk says of itself, a partition's number with it, or the UUID of a mapped
 * device or an array. Where a disk says nothing its partition table may.
 *
 * Invariant: a disk that had a name keeps it. A log is known by it, so what is
 * added here comes behind what is there.
 */
#include <blkid.h>
#include <stdio.h>
#include <string.h>
#include <uuid.h>

#include "sysfs.h"
#include "writelog_origin.h"

/* In the order in which they are asked; the newer ones say what they are. */
static const struct source {
	const char *attribute;
	const char *prefix;
} sources[] = {
	{ "dm/uuid", "" },
	{ "wwid", "" },
	{ "device/wwid", "" },
	{ "md/uuid", "md-" },
	{ "device/cid", "mmc-" },
	{ "serial", "serial-" },
};

#define NAME_SIZE	256		/* more is cut off */

/* Some are there and empty, or all zero. */
static bool says_something(const char *text)
{
	return text[strspn(text, "0- ")];
}

static bool name_of_disk(dev_t rdev, char text[NAME_SIZE])
{
	for (size_t i = 0; i < ARRAY_SIZE(sources); i++) {
		size_t prefix = strlen(sources[i].prefix);

		memcpy(text, sources[i].prefix, prefix);
		if (disk_attribute(rdev, sources[i].attribute, text + prefix, NAME_SIZE - prefix) &&
		    says_something(text + prefix))
			return true;
	}
	return false;
}

/* As the partition table has it, which no write to the partition can change. */
static bool name_of_partition(const char *path, char *text, size_t size)
{
	blkid_probe probe = blkid_new_probe_from_filename(path);
	const char *found = NULL;

	if (!probe)
		return false;
	blkid_probe_enable_superblocks(probe, 0);
	blkid_probe_enable_partitions(probe, 1);
	blkid_probe_set_partitions_flags(probe, BLKID_PARTS_ENTRY_DETAILS);
	if (blkid_do_fullprobe(probe) >= 0 &&
	    !blkid_probe_lookup_value(probe, "PART_ENTRY_UUID", &found, NULL))
		snprintf(text, size, "partuuid-%s", found);
	blkid_free_probe(probe);
	return found;
}

/* The beginning, for people, and a digest of all: what tells two disks apart may stand anywhere. */
static void shorten(char *text)
{
	size_t kept = WL_ORIGIN_ID_SIZE - UUID_STR_LEN;		/* which counts the terminator: a dash here */
	uuid_t digest;

	uuid_generate_sha1(digest, (const uuid_t){ }, text, strlen(text));
	text[kept] = '-';
	uuid_unparse_lower(digest, text + kept + 1);
}

/**
 * origin_name - what names an origin
 * @path: of the device
 * @rdev: its number
 * @id: the name, padded with zeros; all zero: it has none
 */
void origin_name(const char *path, dev_t rdev, u8 id[WL_ORIGIN_ID_SIZE])
{
	char text[NAME_SIZE + 24] = "", part[16] = "";

	disk_attribute(rdev, "partition", part, sizeof(part));
	if (name_of_disk(rdev, text)) {
		if (*part)
			strcat(strcat(text, "-part"), part);
	} else if (!*part || !name_of_partition(path, text, sizeof(text))) {
		*text = '\0';
	}
	for (char *c = text; *c; c++)
		if (*c == ' ')
			*c = '_';
	if (strlen(text) > WL_ORIGIN_ID_SIZE)
		shorten(text);
	memset(id, 0, WL_ORIGIN_ID_SIZE);
	memcpy(id, text, strlen(text));
}
