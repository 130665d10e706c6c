// SPDX-License-Identifier: GPL-2.0-only
/*
 * How a log recognises its origin across boots. The kernel's names of disks change. So a log records an
 * identifier of the disk (with a partition, its number too), or the UUID of a mapped device or an array.
 * If the disk has none, the UUID of the partition is used.
 *
 * Invariant: a disk that has a name keeps this name, since logs record it. A new source must be added at
 * the end.
 */
#include <blkid.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <uuid.h>

#include "sys/sysfs.h"
#include "origin.h"

/* In the order in which they are tried. Sources added later have a prefix. */
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

#define NAME_SIZE	256		/* longer names are truncated */

/* Some attributes exist, but are empty or all zero. */
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

/* The UUID from the partition table, which no write to the partition can change. */
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

/* Keeps the readable beginning and adds a digest of the whole: two names may differ anywhere. */
static void shorten(char *text)
{
	size_t kept = WL_ORIGIN_ID_SIZE - UUID_STR_LEN;		/* UUID_STR_LEN has room for the dash */
	uuid_t digest;

	uuid_generate_sha1(digest, (const uuid_t){ }, text, strlen(text));
	text[kept] = '-';
	uuid_unparse_lower(digest, text + kept + 1);
}

/**
 * origin_name - find the name of an origin
 * @path: of the device
 * @rdev: its number
 * @id: set to the name, padded with zeros; all zero if there is none
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

/**
 * origin_fingerprint - compute the current fingerprint of an origin
 * @wl: the log, which has a fingerprint
 * @path: of the origin
 * @sectors: size of the origin, as the log records it
 * @fingerprint: set; to be compared with wl_fingerprint()
 *
 * Reads with O_DIRECT: a target writes past the page cache of the block device.
 *
 * Return: false if the origin can't be read.
 */
bool origin_fingerprint(const struct wl *wl, const char *path, uint64_t sectors, u32 *fingerprint)
{
	u32 blocks = wl_fingerprint_blocks(sectors);
	ssize_t size = (ssize_t)blocks * WL_PAGE_SIZE;
	u8 *data = aligned_alloc(WL_PAGE_SIZE, size);
	int fd = open(path, O_RDONLY | O_DIRECT | O_CLOEXEC);
	bool good = data && fd >= 0 && pread(fd, data, size, 0) == size;
	__le32 sums[WL_FINGERPRINT_BLOCKS];

	for (u32 i = 0; i < blocks && good; i++)
		sums[i] = wl_fingerprint_block(wl, data + i * WL_PAGE_SIZE);
	if (good)
		*fingerprint = wl_fingerprint_of(wl, sums, blocks);
	if (fd >= 0)
		close(fd);
	free(data);
	return good;
}
