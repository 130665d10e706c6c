// SPDX-License-Identifier: GPL-2.0-only
/*
 * Whether a device holds data of a cache or write log that are nowhere else.
 */
#include "base/message.h"
#include "base/shell.h"
#include "log.h"
#include "worth.h"

/* A mount would write such pages back; from damaged records, it can't be told. */
static bool expendable_cache(const struct device *dev, const struct ps *ps)
{
	char uuid[37], size[SIZE_TEXT];
	struct store_counts counts;

	store_count(dev->path, ps, &counts);
	uuid_text(uuid, ps->super.lower_uuid);
	if (counts.records_damaged) {
		problem("%s is a cache with %llu damaged record%s", dev->path,
			counts.records_damaged, PLURAL(counts.records_damaged));
		advice("`forebay check %s` tells more. To lose what it holds: --force", in_shell(dev->path));
		return false;
	}
	if (counts.names_damaged) {
		problem("%s is a cache whose name log is damaged", dev->path);
		advice("`forebay check %s` tells more. To lose what it holds: --force", in_shell(dev->path));
		return false;
	}
	if (counts.pages_out_of_sync)
		problem("%s is a cache that holds %llu page%s (%s) not yet written to the lower file system, %s",
			dev->path, counts.pages_out_of_sync, PLURAL(counts.pages_out_of_sync),
			size_text(size, counts.pages_out_of_sync << PS_PAGE_SHIFT), uuid);
	else if (counts.names_records)
		problem("%s is a cache that holds %llu change%s of names for the lower file system, %s",
			dev->path, counts.names_records, PLURAL(counts.names_records), uuid);
	else if (counts.files_unflushed)
		problem("%s is a cache that holds the size or time of %llu file%s of the lower file system, %s",
			dev->path, counts.files_unflushed, PLURAL(counts.files_unflushed), uuid);
	else
		return true;
	advice("To keep that: mount -t forebay -o cache=%s LOWER MOUNTPOINT, then unmount.",
	       in_shell(dev->path));
	advice("To lose it: --force");
	return false;
}

/* The origin lacks what entries hold. */
static bool expendable_log(const struct device *dev, const struct wl *wl)
{
	char origin[2 * WL_ORIGIN_ID_SIZE + 1], size[SIZE_TEXT];
	struct log_counts counts;

	if (!log_count(dev->path, wl, &counts))
		return false;
	if (counts.damaged) {
		problem("%s is a write log that is damaged in %llu place%s", dev->path,
			counts.damaged, PLURAL(counts.damaged));
		advice("`forebay writelog check %s` tells more. To lose what it holds: --force",
		       in_shell(dev->path));
		return false;
	}
	if (!counts.entries)
		return true;
	problem("%s is a write log that holds %llu write%s (%s) not yet on its origin", dev->path,
		counts.entries, PLURAL(counts.entries), size_text(size, counts.bytes));
	log_origin(origin, wl->super.origin_id);
	advice("To keep that: forebay writelog create NAME ORIGIN %s, then forebay writelog remove NAME.%s%s",
	       in_shell(dev->path), *origin ? " The origin: " : "", origin);
	advice("To lose it: --force");
	return false;
}

/**
 * expendable - check that a device holds no data of a cache or write log that are nowhere else
 * @dev: device, mapped
 *
 * Return: false, after a message that says what would be lost and how to keep it.
 */
bool expendable(const struct device *dev)
{
	struct ps ps;
	struct wl wl;

	if (!ps_open(&ps, dev->base, dev->size, PS_OPEN_READ_ONLY))
		return expendable_cache(dev, &ps);
	if (!wl_open(&wl, dev->base, dev->size, WL_OPEN_READ_ONLY))
		return expendable_log(dev, &wl);
	return true;
}
