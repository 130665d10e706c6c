// SPDX-License-Identifier: GPL-2.0-only
/*
 * Checks of lower file systems: type, mount options, features. A lower directory is that of a mount, or of a
 * line of fstab that is not mounted.
 */
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <libmount.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/shell.h"
#include "sys/sysfs.h"
#include "doctor.h"

/* In the superblock of ext4. */
#define EXT4_AT			1024
#define EXT4_AT_MAGIC		56
#define EXT4_MAGIC		0xef53
#define EXT4_AT_INCOMPAT	96
#define EXT4_CASEFOLD		0x20000

/* @lower is the line of mountinfo. */
typedef void (*lower_check)(struct doctor *doctor, const char *object, struct libmnt_fs *lower);

struct walk {
	struct doctor *doctor;
	lower_check fn;
};

static bool is_mounted(const struct machine *machine, const char *target)
{
	for (int i = 0; i < machine->mounts.n; i++)
		if (!strcmp(machine->mounts.mount[i].target, target))
			return true;
	return false;
}

static void visit(struct walk *walk, const char *object, const char *directory)
{
	struct libmnt_fs *lower = lower_mount(&walk->doctor->machine, directory);

	if (lower)
		walk->fn(walk->doctor, object, lower);
}

static void visit_line(void *arg, struct libmnt_fs *line)
{
	const char *source = mnt_fs_get_source(line), *target = mnt_fs_get_target(line);
	struct walk *walk = arg;

	if (is_forebay(line) && source && target && !is_mounted(&walk->doctor->machine, target))
		visit(walk, target, source);
}

static void each_lower(struct doctor *doctor, lower_check fn)
{
	const struct forebay_mounts *mounts = &doctor->machine.mounts;
	struct walk walk = { doctor, fn };

	for (int i = 0; i < mounts->n; i++)
		visit(&walk, mounts->mount[i].target, mounts->mount[i].lower);
	machine_fstab(&doctor->machine, visit_line, &walk);
}

static bool option_is(struct libmnt_fs *lower, const char *name, const char *wanted)
{
	char value[64];

	return option_value(lower, name, value, sizeof(value)) && !strcmp(value, wanted);
}

static void judge_barriers(struct doctor *doctor, const char *object, struct libmnt_fs *lower)
{
	const char *target = mnt_fs_get_target(lower);

	if (!has_option(lower, "nobarrier") && !option_is(lower, "barrier", "0"))
		return;
	found(doctor, ERROR, object,
	      "its lower file system, %s, is mounted without barriers: a power cut loses what the cache has given up",
	      target);
	mend(doctor, "mount -o remount,barrier %s", in_shell(target));
	mend(doctor, "in /etc/fstab: take nobarrier or barrier=0 out of the line of %s", target);
}

/**
 * check_barriers - lower file systems flush their disks
 * @doctor: takes the findings
 */
void check_barriers(struct doctor *doctor)
{
	each_lower(doctor, judge_barriers);
}

/* Without a value the option means "always". */
static bool is_dax(struct libmnt_fs *lower)
{
	return has_option(lower, "dax") && !option_is(lower, "dax", "inode") && !option_is(lower, "dax", "never");
}

static void judge_options(struct doctor *doctor, const char *object, struct libmnt_fs *lower)
{
	const char *target = mnt_fs_get_target(lower), *source = mnt_fs_get_source(lower) ?: "its device";

	if (option_is(lower, "data", "journal")) {
		found(doctor, WARNING, object,
		      "its lower file system, %s, is mounted with data=journal: each page is written twice",
		      target);
		mend(doctor, "in /etc/fstab: take data=journal out of the line of %s; then umount and mount",
		     target);
		mend(doctor, "tune2fs -o ^journal_data %s (if the file system has it as default)",
		     in_shell(source));
	}
	if (is_dax(lower)) {
		found(doctor, ERROR, object,
		      "its lower file system, %s, is mounted with dax: Forebay never caches its files",
		      target);
		mend(doctor, "in /etc/fstab: take dax out of the line of %s; then umount and mount", target);
	}
	if (has_option(lower, "discard")) {
		found(doctor, WARNING, object,
		      "its lower file system, %s, discards at each deletion, which delays writeback",
		      target);
		mend(doctor, "mount -o remount,nodiscard %s, and take discard out of /etc/fstab",
		     in_shell(target));
		mend(doctor, "systemctl enable --now fstrim.timer");
	}
}

/**
 * check_lower_options - lower file systems have no options that cost time
 * @doctor: takes the findings
 */
void check_lower_options(struct doctor *doctor)
{
	each_lower(doctor, judge_options);
}

static void judge_type(struct doctor *doctor, const char *object, struct libmnt_fs *lower)
{
	const char *type = mnt_fs_get_fstype(lower), *target = mnt_fs_get_target(lower);
	static const char *const good[] = { "ext4", "xfs", "btrfs", "f2fs" };
	bool known = false;

	for (size_t i = 0; i < ARRAY_SIZE(good); i++)
		known |= type && !strcmp(type, good[i]);
	if (!known) {
		found(doctor, ERROR, object,
		      "its lower file system, %s, is %s; Forebay works over ext4, xfs, btrfs and f2fs",
		      target, type ?: "of no known type");
		mend(doctor, "in /etc/fstab: name a directory of such a file system");
	}
	if (has_option(lower, "ro")) {
		found(doctor, ERROR, object, "its lower file system, %s, is read-only", target);
		mend(doctor, "mount -o remount,rw %s (dmesg says why, if an error has made it read-only)",
		     in_shell(target));
	}
}

/**
 * check_lower_type - lower file systems are of a type that Forebay can use, and writable
 * @doctor: takes the findings
 */
void check_lower_type(struct doctor *doctor)
{
	each_lower(doctor, judge_type);
}

/* Reads ext4's incompatible features; false: the superblock can't be read. */
static bool read_features(const struct disk *disk, unsigned int *features)
{
	unsigned char super[256];
	char path[PATH_MAX];
	int fd = open(node(path, disk), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	ssize_t got = fd < 0 ? -1 : pread(fd, super, sizeof(super), EXT4_AT);

	if (got < 0) {
		int err = errno;

		if (fd >= 0)
			close(fd);
		errno = err;
		return false;
	}
	close(fd);
	errno = EINVAL;
	if (got != sizeof(super) || (super[EXT4_AT_MAGIC] | super[EXT4_AT_MAGIC + 1] << 8) != EXT4_MAGIC)
		return false;
	memcpy(features, super + EXT4_AT_INCOMPAT, sizeof(*features));
	*features = le32toh(*features);
	return true;
}

static void judge_casefold(struct doctor *doctor, const char *object, struct libmnt_fs *lower)
{
	const struct disk *disk = machine_disk(&doctor->machine, mnt_fs_get_devno(lower));
	const char *target = mnt_fs_get_target(lower);
	unsigned int features;

	if (!disk || !mnt_fs_match_fstype(lower, "ext4"))
		return;
	if (!read_features(disk, &features)) {
		unseen(doctor, disk->path, "can't read the superblock of the lower file system: %s",
		       strerror(errno));
		return;
	}
	if (!(features & EXT4_CASEFOLD))
		return;
	found(doctor, ERROR, object,
	      "its lower file system, %s, has the feature casefold, and Forebay refuses it", target);
	mend(doctor, "umount %s && tune2fs -O ^casefold %s (if no directory has the flag; else make it anew)",
	     in_shell(target), in_shell(disk->path));
}

/**
 * check_casefold - lower file systems take names byte for byte
 * @doctor: takes the findings
 */
void check_casefold(struct doctor *doctor)
{
	each_lower(doctor, judge_casefold);
}
