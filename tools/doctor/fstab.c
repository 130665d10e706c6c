// SPDX-License-Identifier: GPL-2.0-only
/*
 * Checks of the lines of /etc/fstab: those of forebay mounts, and those of mapped devices that a unit makes.
 */
#include <ctype.h>
#include <libmount.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "doctor.h"

#define FSTAB "/etc/fstab"

/* "pmem0", "pmem0.1", "pmem0p1": names that follow the order in which the kernel finds the devices. */
static bool is_numbered(const char *cache)
{
	return !strncmp(cache, "/dev/pmem", 9) && isdigit((unsigned char)cache[9]);
}

static const char *uuid_of(const struct machine *machine, const char *path)
{
	for (size_t i = 0; i < machine->nr_disks; i++)
		if (!strcmp(machine->disks[i].path, path) && machine->disks[i].identity.type)
			return machine->disks[i].identity.uuid;
	return "... (forebay probe prints it)";
}

/* True also if a device could not be read: it may be the one. */
static bool has_cache(const struct machine *machine, const char *uuid)
{
	for (size_t i = 0; i < machine->nr_disks; i++) {
		const struct disk *disk = &machine->disks[i];

		if (!strcasecmp(disk->identity.uuid, uuid) ||
		    (disk->dax && !disk->identity.type && !disk->identity.why))
			return true;
	}
	return false;
}

static void judge_cache(void *arg, struct libmnt_fs *line)
{
	const char *target = mnt_fs_get_target(line) ?: FSTAB;
	struct doctor *doctor = arg;
	char cache[PATH_MAX];

	if (!is_forebay(line))
		return;
	if (!option_value(line, "cache", cache, sizeof(cache))) {
		found(doctor, ERROR, target, "its line in " FSTAB " names no cache");
		mend(doctor, "in " FSTAB ": add the option cache=UUID=... (forebay probe DEVICE prints it)");
	} else if (is_numbered(cache)) {
		found(doctor, WARNING, target,
		      "its line in " FSTAB " names the cache %s, which may be another device after a reboot",
		      cache);
		mend(doctor, "in " FSTAB ": cache=UUID=%s", uuid_of(&doctor->machine, cache));
	} else if (!strncmp(cache, "/dev/", 5) && !exists(cache)) {
		found(doctor, ERROR, target, "its line in " FSTAB " names the cache %s, which does not exist",
		      cache);
		mend(doctor, "ls -l /dev/disk/by-id; forebay probe DEVICE");
	} else if (!strncmp(cache, "UUID=", 5) && !has_cache(&doctor->machine, cache + 5)) {
		found(doctor, ERROR, target, "its line in " FSTAB " names the cache %s, and no device has that UUID",
		      cache);
		mend(doctor, "forebay probe DEVICE prints the UUID; forebay format gives a new one");
	}
	if (mnt_fs_get_passno(line) > 0) {
		found(doctor, WARNING, target, "its line in " FSTAB " asks for fsck, which knows no forebay");
		mend(doctor, "in " FSTAB ": end the line with 0 0");
	}
}

/**
 * check_fstab_cache - lines of fstab name a cache that stays the same
 * @doctor: takes the findings
 */
void check_fstab_cache(struct doctor *doctor)
{
	if (doctor->machine.fstab_error)
		unseen(doctor, FSTAB, "can't be read: %s", strerror(doctor->machine.fstab_error));
	machine_fstab(&doctor->machine, judge_cache, doctor);
}

/* Looks for the line whose mount point a lower directory is on. */
struct search {
	struct doctor *doctor;
	struct libmnt_fs *upper;	/* the forebay line */
	bool passed;			/* the walk has passed it */
	struct libmnt_fs *best;
	bool best_is_later;
};

static void look_at(void *arg, struct libmnt_fs *line)
{
	const char *target = mnt_fs_get_target(line);
	struct search *search = arg;
	const char *lower = mnt_fs_get_source(search->upper);
	size_t len = target ? strlen(target) : 0;

	if (line == search->upper)
		search->passed = true;
	if (!lower || len < 2 || is_forebay(line) || strncmp(lower, target, len) ||
	    (lower[len] && lower[len] != '/') ||
	    (search->best && len < strlen(mnt_fs_get_target(search->best))))
		return;
	search->best = line;
	search->best_is_later = search->passed;
}

static void find_lower(struct search *search)
{
	machine_fstab(&search->doctor->machine, look_at, search);
}

static void judge_order(void *arg, struct libmnt_fs *line)
{
	struct search search = { .doctor = arg, .upper = line };

	if (!is_forebay(line))
		return;
	find_lower(&search);
	if (!search.best || !search.best_is_later)
		return;
	found(arg, WARNING, mnt_fs_get_target(line),
	      "its line in " FSTAB " precedes that of its lower file system, %s: mount -a fails",
	      mnt_fs_get_target(search.best));
	mend(arg, "in " FSTAB ": put the line of %s first", mnt_fs_get_target(search.best));
}

/**
 * check_fstab_order - lower file systems are mounted before
 * @doctor: takes the findings
 */
void check_fstab_order(struct doctor *doctor)
{
	machine_fstab(&doctor->machine, judge_order, doctor);
}

static void judge_nofail(void *arg, struct libmnt_fs *line)
{
	struct search search = { .doctor = arg, .upper = line };
	bool upper, lower;

	if (!is_forebay(line) || has_option(line, "noauto"))
		return;
	find_lower(&search);
	if (!search.best)
		return;
	upper = has_option(line, "nofail");
	lower = has_option(search.best, "nofail");
	if (upper == lower)
		return;
	found(arg, WARNING, mnt_fs_get_target(line),
	      "its line in " FSTAB " has %s nofail, and that of its lower file system, %s, has %s: a missing disk ends the boot in emergency mode",
	      upper ? "an option" : "no", mnt_fs_get_target(search.best), lower ? "it" : "none");
	mend(arg, "in " FSTAB ": add nofail to the line of %s (or take it out of the other)",
	     mnt_fs_get_target(upper ? search.best : line));
}

/**
 * check_fstab_nofail - lower file system and mount agree about nofail
 * @doctor: takes the findings
 */
void check_fstab_nofail(struct doctor *doctor)
{
	machine_fstab(&doctor->machine, judge_nofail, doctor);
}

/* "writelog" or "transit": which settings there are of a mapped device; NULL: none. */
static const char *kind_of(const char *name)
{
	static const char *const kinds[] = { "writelog", "transit" };
	char path[PATH_MAX];

	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
		snprintf(path, sizeof(path), "/etc/forebay/%s/%s", kinds[i], name);
		if (exists(path))
			return kinds[i];
	}
	return NULL;
}

static void judge_unit(void *arg, struct libmnt_fs *line)
{
	const char *source = mnt_fs_get_source(line), *target = mnt_fs_get_target(line), *kind;
	char unit[NAME_MAX + 32], path[PATH_MAX];
	struct doctor *doctor = arg;

	if (!source || strncmp(source, "/dev/mapper/", 12) || has_option(line, "noauto"))
		return;
	kind = kind_of(source + 12);
	if (!kind)
		return;
	snprintf(unit, sizeof(unit), "forebay-%s@%.128s.service", kind, source + 12);
	snprintf(path, sizeof(path), "/etc/systemd/system/local-fs.target.wants/%s", unit);
	if (!has_option(line, "x-systemd.requires") && !exists(path)) {
		found(doctor, ERROR, target, "its line in " FSTAB " doesn't ask for the unit that makes %s",
		      source);
		mend(doctor, "in " FSTAB ": add the option x-systemd.requires=%s", unit);
		mend(doctor, "systemctl daemon-reload");
	}
	if (has_option(line, "nofail") && !has_option(line, "x-systemd.before")) {
		found(doctor, WARNING, target,
		      "its line in " FSTAB " has nofail, so services may start before the mount");
		mend(doctor, "in " FSTAB ": add the option x-systemd.before=local-fs.target");
	}
}

/**
 * check_fstab_unit - lines of fstab ask for the unit of their device
 * @doctor: takes the findings
 */
void check_fstab_unit(struct doctor *doctor)
{
	machine_fstab(&doctor->machine, judge_unit, doctor);
}
