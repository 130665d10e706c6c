// SPDX-License-Identifier: GPL-2.0-only
/*
 * Finds and wipes the signatures of file systems and partition tables on a device. libblkid knows them; it
 * doesn't know Forebay's.
 */
#include <blkid.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "signature.h"

static blkid_probe probe_new(int fd)
{
	blkid_probe probe = blkid_new_probe();

	if (!probe)
		return NULL;
	if (blkid_probe_set_device(probe, fd, 0, 0)) {
		blkid_free_probe(probe);
		return NULL;
	}
	blkid_probe_enable_superblocks(probe, 1);
	blkid_probe_set_superblocks_flags(probe, BLKID_SUBLKS_TYPE | BLKID_SUBLKS_LABEL |
					  BLKID_SUBLKS_USAGE | BLKID_SUBLKS_MAGIC |
					  BLKID_SUBLKS_BADCSUM);
	blkid_probe_enable_partitions(probe, 1);
	blkid_probe_set_partitions_flags(probe, BLKID_PARTS_MAGIC | BLKID_PARTS_FORCE_GPT);
	return probe;
}

static const char *value(blkid_probe probe, const char *name)
{
	const char *text;

	return blkid_probe_lookup_value(probe, name, &text, NULL) ? NULL : text;
}

static void describe(blkid_probe probe, char *text, size_t size)
{
	const char *type = value(probe, "TYPE"), *usage = value(probe, "USAGE");
	const char *label = value(probe, "LABEL"), *table = value(probe, "PTTYPE");

	if (!type)
		snprintf(text, size, "a partition table (%s)", table ?: "unknown");
	else if (usage && !strcmp(usage, "filesystem"))
		snprintf(text, size, "a file system (%s%s%s%s)", type, label ? ", labelled \"" : "",
			 label ?: "", label ? "\"" : "");
	else
		snprintf(text, size, "data of type %s", type);
}

/**
 * signature_find - find a file system or partition table on a device
 * @fd: the device
 * @text: what is there, as the object of a sentence
 * @size: of @text
 *
 * Return: 1 if there is something, 0 if not, below 0 if the device can't be probed.
 */
int signature_find(int fd, char *text, size_t size)
{
	blkid_probe probe = probe_new(fd);
	int found;

	if (!probe)
		return -1;
	found = blkid_do_probe(probe);
	if (!found)
		describe(probe, text, size);
	blkid_free_probe(probe);
	return found < 0 ? -1 : !found;
}

/**
 * signature_wipe_all - wipe all signatures that libblkid finds
 * @fd: the device, open for writing
 *
 * Durable on return.
 *
 * Return: false, with errno, if one couldn't be wiped.
 */
bool signature_wipe_all(int fd)
{
	blkid_probe probe = probe_new(fd);
	bool good = probe, wiped = false;

	while (good && !blkid_do_probe(probe)) {
		good = !blkid_do_wipe(probe, 0);
		wiped = true;
	}
	blkid_free_probe(probe);
	return good && (!wiped || !fsync(fd));
}
