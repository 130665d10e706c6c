// SPDX-License-Identifier: GPL-2.0-only
/*
 * What persistent memory is used for, if not for Forebay. That is no mistake, so the findings are notes: they
 * say why there is no memory for a cache.
 */
#include <fcntl.h>
#include <libmount.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/shell.h"
#include "sys/signature.h"
#include "sys/sysfs.h"
#include "doctor.h"

#define ND	"/sys/bus/nd/devices"

/* What is in a file with this signature: "a file system (ext4)". False: nothing is known of it. */
static bool signature_of(const struct disk *disk, char *text, size_t size)
{
	char path[PATH_MAX];
	int fd = open(node(path, disk), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	bool found = fd >= 0 && signature_find(fd, text, size) > 0;

	if (fd >= 0)
		close(fd);
	return found;
}

static void judge_use(struct doctor *doctor, const struct disk *disk)
{
	struct libmnt_fs *mount = mnt_table_find_devno(doctor->machine.mounts.table, disk->rdev,
						       MNT_ITER_FORWARD);
	const char *target = mount ? mnt_fs_get_target(mount) : NULL;
	char text[200];

	/* A device without identity->why was not read. Partitions of a table are disks of their own. */
	if (!disk->identity.why || disk->held || !signature_of(disk, text, sizeof(text)) ||
	    strstr(text, "partition table"))
		return;
	found(doctor, NOTE, disk->path, "it holds %s%s%s: it is neither a cache nor a write log", text,
	      target ? ", mounted at " : "", target ?: "");
	if (target)
		mend(doctor, "to use it for Forebay: umount %s", in_shell(target));
	else if (strstr(text, "type swap"))
		mend(doctor, "to use it for Forebay: swapoff %s", in_shell(disk->path));
	mend(doctor, "%sforebay format --force %s (its contents are lost)",
	     target || strstr(text, "type swap") ? "" : "to use it for Forebay: ", in_shell(disk->path));
}

struct regions {
	unsigned int nr, nr_namespaces;
};

/* A namespace without a size is one that could be made. */
static void count(void *arg, const char *name)
{
	struct regions *regions = arg;
	char path[PATH_MAX], size[32];

	if (!kernel_read(kernel_path(path, ND "/%s/size", name), size, sizeof(size)) || !strcmp(size, "0"))
		return;
	regions->nr += !strncmp(name, "region", 6);
	regions->nr_namespaces += !strncmp(name, "namespace", 9);
}

static void judge_absence(struct doctor *doctor)
{
	struct regions regions = { };

	for (size_t i = 0; i < doctor->machine.nr_disks; i++)
		if (doctor->machine.disks[i].dax)
			return;
	names_in(ND, count, &regions);
	if (regions.nr_namespaces)	/* check_memory_mode() tells of them */
		return;
	if (regions.nr) {
		found(doctor, NOTE, "this machine", "it has no persistent memory in use: a region has no namespace");
		mend(doctor, "ndctl create-namespace -m fsdax --map=mem");
		return;
	}
	found(doctor, NOTE, "this machine",
	      "it has no persistent memory that the kernel knows, for a cache or a write log");
	mend(doctor, "to try Forebay out in ordinary memory: modprobe forebay-emu && forebay emu create --size 1G");
}

/**
 * check_memory_use - nothing else is on persistent memory, and there is some
 * @doctor: takes the findings
 */
void check_memory_use(struct doctor *doctor)
{
	judge_absence(doctor);
	for (size_t i = 0; i < doctor->machine.nr_disks; i++)
		judge_use(doctor, &doctor->machine.disks[i]);
}
