// SPDX-License-Identifier: GPL-2.0-only
/*
 * Checks that persistent memory and the disk that it is in front of are at the same processor (NUMA node).
 */
#include <libmount.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sys/sysfs.h"
#include "doctor.h"

/* How many devices may be mapped over each other. */
#define MAX_DEPTH	8

static void take_name(void *arg, const char *name)
{
	snprintf(arg, NAME_MAX + 1, "%s", name);
}

/* The node of a disk that is not mapped: that of the nearest device above it that has one; -1: none. */
static int node_above(const char *disk)
{
	char path[PATH_MAX], file[PATH_MAX + 16], text[16], *real, *slash;
	int number = -1;

	real = realpath(kernel_path(path, "/sys/class/block/%s", disk), NULL);
	while (real && number < 0 && (slash = strrchr(real, '/')) && slash > real) {
		snprintf(file, sizeof(file), "%s/numa_node", real);
		if (kernel_read(file, text, sizeof(text)))
			number = atoi(text);
		*slash = '\0';
	}
	free(real);
	return number;
}

/* Of a mapped device, the node of one of the disks below. */
static int node_of(const char *disk)
{
	char name[NAME_MAX + 1], below[NAME_MAX + 1], folder[PATH_MAX];

	snprintf(name, sizeof(name), "%s", disk);
	for (int depth = 0; depth < MAX_DEPTH; depth++) {
		*below = '\0';
		snprintf(folder, sizeof(folder), "/sys/class/block/%s/slaves", name);
		names_in(folder, take_name, below);
		if (!*below)
			break;
		memcpy(name, below, sizeof(name));
	}
	return node_above(name);
}

/* "10 21": from a node to each; 0: not known. */
static int distance_between(int from, int to)
{
	char path[PATH_MAX], text[1024], *at = text;

	if (!kernel_read(kernel_path(path, "/sys/devices/system/node/node%d/distance", from), text,
			 sizeof(text)))
		return 0;
	for (int i = 0; i < to && *at; i++) {
		at += strcspn(at, " ");
		at += strspn(at, " ");
	}
	return atoi(at);
}

static void compare(struct doctor *doctor, const struct disk *memory, const struct disk *disk)
{
	int a = node_of(memory->name), b = node_of(disk->name);

	if (a < 0 || b < 0 || a == b)
		return;
	found(doctor, WARNING, memory->path,
	      "it is at NUMA node %d, and %s, which it is in front of, at node %d (distance %d)",
	      a, disk->path, b, distance_between(a, b));
	mend(doctor,
	     "put the disk or the persistent memory in a slot of the same processor; or use a namespace of node %d (ndctl list -v)",
	     b);
}

/* The disk of a file system; NULL: it has several or none. */
static const struct disk *disk_of(const struct machine *machine, const char *path)
{
	struct libmnt_fs *fs = lower_mount(machine, path);

	return fs ? machine_disk(machine, mnt_fs_get_devno(fs)) : NULL;
}

/* Write logs: a mapped device has log and origin as the disks below. */
static void compare_below(struct doctor *doctor, const struct disk *mapped)
{
	const struct disk *memory = NULL, *origin = NULL;

	for (size_t i = 0; i < doctor->machine.nr_disks; i++) {
		const struct disk *disk = &doctor->machine.disks[i];
		char path[PATH_MAX];

		snprintf(path, sizeof(path), "/sys/class/block/%s/slaves/%s", mapped->name, disk->name);
		if (!exists(path))
			continue;
		if (disk->identity.type && !strcmp(disk->identity.type, TYPE_WRITELOG))
			memory = disk;
		else
			origin = disk;
	}
	if (memory && origin)
		compare(doctor, memory, origin);
}

/**
 * check_distance - persistent memory and disk are at the same processor
 * @doctor: takes the findings
 */
void check_distance(struct doctor *doctor)
{
	struct machine *machine = &doctor->machine;

	for (size_t i = 0; i < machine->nr_disks; i++) {
		const struct forebay_mount *mount = mount_of_cache(&machine->mounts, machine->disks[i].name);
		const struct disk *lower = mount ? disk_of(machine, mount->lower) : NULL;

		if (lower)
			compare(doctor, &machine->disks[i], lower);
		if (!strncmp(machine->disks[i].name, "dm-", 3))
			compare_below(doctor, &machine->disks[i]);
	}
}
