// SPDX-License-Identifier: GPL-2.0-only
/*
 * Checks of persistent memory. They read /sys/bus/nd rather than ask libndctl, which can't be shown a made-up
 * machine.
 */
#include <libmount.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/message.h"
#include "base/shell.h"
#include "sys/sysfs.h"
#include "doctor.h"

#define ND		"/sys/bus/nd/devices"
#define LARGE_PAGE	(2ULL << 20)

/* A namespace with memory. */
struct memory {
	const char *name;		/* "namespace0.0" */
	char mode[16];			/* "memory": fsdax; "safe": sector; "dax": devdax; "raw" */
	char holder[32];		/* "pfn0.0", "btt0.0", "dax0.0" or "" */
	char region[32], provider[32];	/* of the bus; "e820": memmap= on the kernel's command line */
	char disk[NAME_MAX + 1];	/* the kernel's name; "": none */
};

struct walk {
	struct doctor *doctor;
	void (*fn)(struct doctor *doctor, const struct memory *memory);
};

static bool attribute(const char *device, const char *name, char *text, size_t size)
{
	char path[PATH_MAX];

	*text = '\0';
	return kernel_read(kernel_path(path, ND "/%s/%s", device, name), text, size);
}

static void take_name(void *arg, const char *name)
{
	snprintf(arg, NAME_MAX + 1, "%s", name);
}

/* A namespace is in the folder of its region, which is in that of its bus. */
static void find_parents(struct memory *memory)
{
	char path[PATH_MAX], *real = realpath(kernel_path(path, ND "/%s", memory->name), NULL), *slash;

	slash = real ? strrchr(real, '/') : NULL;
	if (slash) {
		*slash = '\0';
		snprintf(memory->region, sizeof(memory->region), "%s", basename(real));
		slash = strrchr(real, '/');
	}
	if (slash) {
		*slash = '\0';
		attribute(basename(real), "provider", memory->provider, sizeof(memory->provider));
	}
	free(real);
}

static void visit(void *arg, const char *name)
{
	struct memory memory = { .name = name };
	char size[32], folder[PATH_MAX];
	struct walk *walk = arg;

	if (strncmp(name, "namespace", 9) || !attribute(name, "size", size, sizeof(size)) ||
	    !strtoull(size, NULL, 0) || !attribute(name, "mode", memory.mode, sizeof(memory.mode)))
		return;
	attribute(name, "holder", memory.holder, sizeof(memory.holder));
	find_parents(&memory);
	snprintf(folder, sizeof(folder), ND "/%s/block", *memory.holder ? memory.holder : name);
	names_in(folder, take_name, memory.disk);
	walk->fn(walk->doctor, &memory);
}

static void each_memory(struct doctor *doctor, void (*fn)(struct doctor *doctor, const struct memory *memory))
{
	names_in(ND, visit, &(struct walk){ doctor, fn });
}

/* Something is mapped over the disk, such as a transit cache, or the disk is mounted. */
static bool is_used(const struct machine *machine, const char *name)
{
	for (size_t i = 0; i < machine->nr_disks; i++) {
		const struct disk *disk = &machine->disks[i];

		if (!strcmp(disk->name, name))
			return disk->held ||
			       mnt_table_find_devno(machine->mounts.table, disk->rdev, MNT_ITER_FORWARD);
	}
	return false;
}

/* As ndctl calls the kernel's modes. */
static const char *mode_name(const char *mode)
{
	if (!strcmp(mode, "safe"))
		return "sector";
	return !strcmp(mode, "dax") ? "devdax" : "raw";
}

static void judge_mode(struct doctor *doctor, const struct memory *memory)
{
	const char *mode = mode_name(memory->mode);

	/* A transit cache is for sector mode. */
	if (!strcmp(memory->mode, "memory") ||
	    (!strcmp(mode, "sector") && is_used(&doctor->machine, memory->disk)))
		return;
	found(doctor, WARNING, memory->name, "it is in %s mode; caches and write logs need fsdax mode%s",
	      mode, !strcmp(mode, "sector") ? ", and nothing uses it" : "");
	mend(doctor, "ndctl create-namespace -f -e %s -m fsdax --map=mem (its contents are lost)",
	     memory->name);
}

static void judge_provider(struct doctor *doctor, const struct memory *memory)
{
	if (strcmp(memory->provider, "virtio-pmem"))
		return;
	found(doctor, ERROR, memory->name,
	      "it is virtio-pmem, which needs a call to the host to make data durable");
	mend(doctor, "in the host: give the guest an NVDIMM instead");
}

/**
 * check_memory_mode - persistent memory is in a mode that Forebay can use
 * @doctor: takes the findings
 */
void check_memory_mode(struct doctor *doctor)
{
	each_memory(doctor, judge_mode);
	each_memory(doctor, judge_provider);
}

static void judge_alignment(struct doctor *doctor, const struct memory *memory)
{
	char text[32], size[SIZE_TEXT];

	if (strncmp(memory->holder, "pfn", 3) || !attribute(memory->holder, "align", text, sizeof(text)) ||
	    strtoull(text, NULL, 0) >= LARGE_PAGE)
		return;
	found(doctor, WARNING, memory->name, "it is aligned to %s, so the kernel maps it in small pages",
	      size_text(size, strtoull(text, NULL, 0)));
	mend(doctor, "ndctl create-namespace -f -e %s -m fsdax --map=mem --align=2M (its contents are lost)",
	     memory->name);
}

/* The kernel has no DAX for a partition that doesn't begin at a page. */
static void judge_partition(struct doctor *doctor, const struct disk *disk)
{
	char text[32];

	if (!disk->dax || !disk_attribute(disk->rdev, "partition", text, sizeof(text)) ||
	    !disk_attribute(disk->rdev, "start", text, sizeof(text)) || !(strtoull(text, NULL, 10) % 8))
		return;
	found(doctor, ERROR, disk->path,
	      "the partition begins at sector %s, in the middle of a page: it has no DAX",
	      text);
	mend(doctor, "parted %s: make it begin at a multiple of 1 MiB (its contents are lost)", disk->path);
}

/**
 * check_alignment - persistent memory can be mapped, and in large pages
 * @doctor: takes the findings
 */
void check_alignment(struct doctor *doctor)
{
	each_memory(doctor, judge_alignment);
	for (size_t i = 0; i < doctor->machine.nr_disks; i++)
		judge_partition(doctor, &doctor->machine.disks[i]);
}

static void judge_persistence(struct doctor *doctor, const struct memory *memory)
{
	char text[32];

	/* Memory of memmap= is volatile whatever the region says: see check_volatile(). */
	if (!strcmp(memory->provider, "e820"))
		return;
	if (attribute(memory->region, "read_only", text, sizeof(text)) && !strcmp(text, "1")) {
		found(doctor, ERROR, memory->name, "its region, %s, is read-only", memory->region);
		mend(doctor, "ndctl read-infoblock %s; dmesg says why", memory->name);
	}
	if (attribute(memory->region, "persistence_domain", text, sizeof(text)) && *text)
		return;
	found(doctor, WARNING, memory->name,
	      "the platform doesn't say that %s is flushed when the power fails",
	      memory->region);
	mend(doctor,
	     "in the firmware: turn on ADR or eADR; of a QEMU guest: -machine nvdimm-persistence=mem-ctrl");
}

/**
 * check_persistence - the platform flushes its write queues when the power fails
 * @doctor: takes the findings
 */
void check_persistence(struct doctor *doctor)
{
	each_memory(doctor, judge_persistence);
}

/* The cache or log on a disk, on a partition of it, or on a device mapped over it; NULL: there is none. */
static const struct disk *forebay_on(const struct machine *machine, const struct disk *disk)
{
	char partition[PATH_MAX], mapped[PATH_MAX];

	if (disk->identity.type)
		return disk;
	for (size_t i = 0; i < machine->nr_disks; i++) {
		const struct disk *other = &machine->disks[i];

		snprintf(partition, sizeof(partition), "/sys/class/block/%s/%s", disk->name, other->name);
		snprintf(mapped, sizeof(mapped), "/sys/class/block/%s/holders/%s", disk->name, other->name);
		if (other->identity.type && (exists(partition) || exists(mapped)))
			return other;
	}
	return NULL;
}

/*
 * A block that was cleared reads as zeros. A zero record of a cache is a free one, a chunk of a log with a
 * zero word is empty, and zeros in data are data. So the blocks are cleared last: after that no check can
 * tell what was lost.
 */
static void mend_bad_blocks(struct doctor *doctor, const struct disk *disk)
{
	const char *then = "";

	if (disk && !strcmp(disk->identity.type, TYPE_CACHE)) {
		mend(doctor, "forebay check %s (unmounted) says what is damaged, and how many pages of files are lost",
		     in_shell(disk->path));
		mend(doctor, "mount, delete the files with lost pages, restore them from a backup, and unmount");
		then = ", also in files, so not before that";
	} else if (disk) {
		mend(doctor, "forebay writelog check %s (not in use) says what is damaged, apart from data without checksums",
		     in_shell(disk->path));
		then = ": writes may be missing or zero then, without a message, so compare with a backup";
	}
	mend(doctor, "ndctl clear-errors (of the namespace that `ndctl list -M` shows; the blocks read as zeros then%s)",
	     then);
}

/**
 * check_bad_blocks - persistent memory has no bad blocks
 * @doctor: takes the findings
 */
void check_bad_blocks(struct doctor *doctor)
{
	char text[4096], part[16];

	for (size_t i = 0; i < doctor->machine.nr_disks; i++) {
		const struct disk *disk = &doctor->machine.disks[i];
		unsigned long long sectors = 0;
		unsigned int len;

		/* A disk has the list, and partitions share it. */
		if (!disk->dax || disk_attribute(disk->rdev, "partition", part, sizeof(part)) ||
		    !disk_attribute(disk->rdev, "badblocks", text, sizeof(text)))
			continue;
		for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n"))
			sectors += sscanf(line, "%*u %u", &len) == 1 ? len : 0;
		if (!sectors)
			continue;
		found(doctor, ERROR, disk->path, "it has %llu bad sector%s", sectors, PLURAL(sectors));
		mend_bad_blocks(doctor, forebay_on(&doctor->machine, disk));
	}
}

static void judge_memmap(struct doctor *doctor, const struct memory *memory)
{
	if (strcmp(memory->provider, "e820"))
		return;
	found(doctor, WARNING, memory->name,
	      "it is ordinary memory, set aside by memmap= on the kernel's command line: a power cut empties it");
	mend(doctor, "use it for trying Forebay out only");
}

/**
 * check_volatile - caches and write logs survive a power cut
 * @doctor: takes the findings
 */
void check_volatile(struct doctor *doctor)
{
	each_memory(doctor, judge_memmap);
	for (size_t i = 0; i < doctor->machine.nr_disks; i++) {
		const struct disk *disk = &doctor->machine.disks[i];
		uint64_t is_volatile = 0;

		cache_attribute(disk->name, "volatile_cache", &is_volatile);
		if (!is_volatile && !(disk->identity.type && disk_is_volatile(disk->rdev)))
			continue;
		found(doctor, WARNING, disk->path,
		      "it is ordinary memory: a power cut takes what was made durable");
		mend(doctor, "forebay format on a device of persistent memory, for data that matter");
	}
}
