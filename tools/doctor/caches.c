// SPDX-License-Identifier: GPL-2.0-only
/*
 * Checks of caches: of mounted ones by /sys/fs/forebay, of others by what they hold.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/message.h"
#include "base/shell.h"
#include "device/store.h"
#include "sys/sysfs.h"
#include "doctor.h"

/* Percent of sync calls that may find too few free pages, and of pages that may be out-of-sync. */
#define MAX_FULL_SYNCS	1
#define MAX_FULL_PAGES	90

typedef void (*cache_check)(struct doctor *doctor, const struct disk *disk, const char *object);

/* A mounted cache is called by its mount point, or by its device where this process can't see the mount. */
static void each_mounted(struct doctor *doctor, cache_check fn)
{
	struct machine *machine = &doctor->machine;

	for (size_t i = 0; i < machine->nr_disks; i++) {
		const struct disk *disk = &machine->disks[i];
		const struct forebay_mount *mount = mount_of_cache(&machine->mounts, disk->name);

		if (disk->mounted)
			fn(doctor, disk, mount ? mount->target : disk->path);
	}
}

static uint64_t number(const struct disk *disk, const char *attribute)
{
	uint64_t value = 0;

	cache_attribute(disk->name, attribute, &value);
	return value;
}

static void judge_writeback(struct doctor *doctor, const struct disk *disk, const char *object)
{
	int err = -(int)(int64_t)number(disk, "last_error");

	if (err <= 0)
		return;
	found(doctor, ERROR, object, "writing back to the lower file system fails: %s", strerror(err));
	mend(doctor, "%s", lower_advice(err));
	mend(doctor, "forebay drain %s", in_shell(object));
}

/**
 * check_writeback - storage takes what caches write back
 * @doctor: takes the findings
 */
void check_writeback(struct doctor *doctor)
{
	each_mounted(doctor, judge_writeback);
}

static void judge_lost(struct doctor *doctor, const struct disk *disk, const char *object)
{
	uint64_t lost = number(disk, "pages_lost"), unplaced = number(disk, "pages_unplaced");

	if (lost) {
		found(doctor, ERROR, object,
		      "the cache can't read %lu page%s that the lower file system lacks", lost,
		      PLURAL(lost));
		mend(doctor, "delete these files, and restore them from a backup: dmesg has the inodes, `forebay status FILE` a file's lost pages");
	}
	if (unplaced) {
		found(doctor, WARNING, object, "%lu page%s of the cache ha%s no file that can be opened",
		      unplaced, PLURAL(unplaced), unplaced == 1 ? "s" : "ve");
		mend(doctor, "forebay drain --discard-unplaced %s (loses the pages)", in_shell(object));
	}
}

/**
 * check_lost_pages - caches can read their pages and know their files
 * @doctor: takes the findings
 */
void check_lost_pages(struct doctor *doctor)
{
	each_mounted(doctor, judge_lost);
}

static void judge_size(struct doctor *doctor, const struct disk *disk, const char *object)
{
	uint64_t full = number(disk, "cache_full"), total = number(disk, "pages_total");
	uint64_t syncs = number(disk, "syncs_absorbed") + number(disk, "syncs_lower");
	uint64_t pages = number(disk, "pages_out_of_sync");
	char size[SIZE_TEXT], all[SIZE_TEXT];

	if (full * 100 > syncs * MAX_FULL_SYNCS)
		found(doctor, WARNING, object, "%lu of %lu syncs found too few free pages in a cache of %s",
		      full, syncs,
		      size_text(all, total << PS_PAGE_SHIFT));
	else if (total && pages * 100 > total * MAX_FULL_PAGES)
		found(doctor, WARNING, object, "%s of a cache of %s wait to be written back",
		      size_text(size, pages << PS_PAGE_SHIFT), size_text(all, total << PS_PAGE_SHIFT));
	else
		return;
	mend(doctor, "umount %s, then forebay format a larger device and mount with that", in_shell(object));
}

/**
 * check_cache_size - caches are large enough for what is made durable
 * @doctor: takes the findings
 */
void check_cache_size(struct doctor *doctor)
{
	each_mounted(doctor, judge_size);
}

static void judge_names(struct doctor *doctor, const struct disk *disk, const char *object)
{
	char path[PATH_MAX], state[256];

	kernel_path(path, FOREBAY_SYSFS "/%s/names_state", disk->name);
	if (!kernel_read(path, state, sizeof(state)) || strncmp(state, "unfit", 5))
		return;
	found(doctor, WARNING, object, "the cache has a name log, which is off: the lower file system %s",
	      state + 5 + strspn(state + 5, ": "));
	mend(doctor,
	     "use ext4 with a journal or xfs below, mounted with barriers; or umount %s && forebay format %s (without --names)",
	     in_shell(object), in_shell(disk->path));
}

/**
 * check_name_log - the lower file system can have the name log of its cache
 * @doctor: takes the findings
 */
void check_name_log(struct doctor *doctor)
{
	each_mounted(doctor, judge_names);
}

static void judge_store(struct doctor *doctor, const struct disk *disk, const struct ps *ps)
{
	char size[SIZE_TEXT], uuid[37];
	struct store_counts counts;

	store_count(disk->path, ps, &counts);
	if (counts.records_damaged || counts.names_damaged) {
		found(doctor, ERROR, disk->path, "this cache is not mounted and has %llu damaged record%s",
		      counts.records_damaged + counts.names_damaged,
		      PLURAL(counts.records_damaged + counts.names_damaged));
		mend(doctor, "forebay check %s", in_shell(disk->path));
		return;
	}
	if (!counts.pages_out_of_sync && !counts.files_unflushed && !counts.names_records)
		return;
	found(doctor, ERROR, disk->path,
	      "this cache is not mounted and holds what its lower directory lacks: %s, %llu sizes or times, %llu changes of names",
	      size_text(size, counts.pages_out_of_sync << PS_PAGE_SHIFT), counts.files_unflushed,
	      counts.names_records);
	mend(doctor,
	     "mount -t forebay -o cache=UUID=%s LOWER MOUNTPOINT (before anything writes to LOWER; its file system has UUID %s)",
	     disk->identity.uuid, uuid_text(uuid, ps->super.lower_uuid));
}

/**
 * check_unmounted - caches that hold data are mounted
 * @doctor: takes the findings
 */
void check_unmounted(struct doctor *doctor)
{
	for (size_t i = 0; i < doctor->machine.nr_disks; i++) {
		const struct disk *disk = &doctor->machine.disks[i];
		struct device dev;
		char path[PATH_MAX];
		struct ps ps;

		if (disk->error)
			unseen(doctor, disk->path, "can't tell whether it is a cache: %s",
			       strerror(disk->error));
		if (disk->mounted || disk->held || !disk->identity.type ||
		    strcmp(disk->identity.type, TYPE_CACHE) ||
		    !device_open(&dev, node(path, disk), DEVICE_SHARED))
			continue;
		if (!ps_open(&ps, dev.base, dev.size, PS_OPEN_READ_ONLY))
			judge_store(doctor, disk, &ps);
		device_close(&dev);
	}
}
