// SPDX-License-Identifier: GPL-2.0-only
/*
 * Checks that nothing uses the origin of a write log without the log. While the log is not in use, the
 * origin has the same file system with the same UUID, but lacks what the log holds. A mount of the origin
 * loses that.
 */
#include <blkid.h>
#include <libmount.h>
#include <regex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/message.h"
#include "base/shell.h"
#include "device/device.h"
#include "device/log.h"
#include "sys/sysfs.h"
#include "writelog/origin.h"
#include "doctor.h"

/* A write log and its origin. */
struct pair {
	const struct disk *log, *origin;
	u64 entries;			/* that the origin lacks; 0 while the log is in use */
	char type[32], uuid[64], label[64];	/* of the file system on the origin; "": none */
};

typedef void (*pair_fn)(struct doctor *doctor, const struct pair *pair);

static void take_value(blkid_probe probe, const char *key, char *value, size_t size)
{
	const char *text;

	if (!blkid_probe_lookup_value(probe, key, &text, NULL))
		snprintf(value, size, "%s", text);
}

static void read_signature(struct pair *pair)
{
	char path[PATH_MAX];
	blkid_probe probe = blkid_new_probe_from_filename(node(path, pair->origin));

	if (!probe)
		return;
	blkid_probe_enable_superblocks(probe, 1);
	blkid_probe_set_superblocks_flags(probe, BLKID_SUBLKS_TYPE | BLKID_SUBLKS_UUID | BLKID_SUBLKS_LABEL);
	if (!blkid_do_safeprobe(probe)) {
		take_value(probe, "TYPE", pair->type, sizeof(pair->type));
		take_value(probe, "UUID", pair->uuid, sizeof(pair->uuid));
		take_value(probe, "LABEL", pair->label, sizeof(pair->label));
	}
	blkid_free_probe(probe);
}

/* The disk with the name that a log records; a mapped device over it may have the same name. */
static const struct disk *find_origin(const struct machine *machine, const struct wl *wl)
{
	static const u8 none[WL_ORIGIN_ID_SIZE];
	u8 id[WL_ORIGIN_ID_SIZE];
	char path[PATH_MAX];

	if (!wl_is_bound(wl) || !memcmp(wl->super.origin_id, none, sizeof(none)))
		return NULL;
	for (size_t i = 0; i < machine->nr_disks; i++) {
		origin_name(node(path, &machine->disks[i]), machine->disks[i].rdev, id);
		if (!memcmp(id, wl->super.origin_id, sizeof(id)))
			return &machine->disks[i];
	}
	return NULL;
}

static void visit(struct doctor *doctor, const struct disk *disk, const struct wl *wl, pair_fn fn)
{
	struct pair pair = { .log = disk, .origin = find_origin(&doctor->machine, wl) };
	struct log_counts counts;

	if (!pair.origin)
		return;
	if (!disk->held && log_count(disk->path, wl, &counts))
		pair.entries = counts.entries;
	read_signature(&pair);
	fn(doctor, &pair);
}

static void each_pair(struct doctor *doctor, pair_fn fn)
{
	for (size_t i = 0; i < doctor->machine.nr_disks; i++) {
		const struct disk *disk = &doctor->machine.disks[i];
		struct device dev;
		char path[PATH_MAX];
		struct wl wl;

		if (!disk->identity.type || strcmp(disk->identity.type, TYPE_WRITELOG) ||
		    !device_open(&dev, node(path, disk), DEVICE_SHARED))
			continue;
		if (log_open(&wl, &dev))
			visit(doctor, disk, &wl, fn);
		device_close(&dev);
	}
}

static void judge_visible(struct doctor *doctor, const struct pair *pair)
{
	struct libmnt_fs *fs = mnt_table_find_devno(doctor->machine.mounts.table, pair->origin->rdev,
						    MNT_ITER_FORWARD);

	if (!pair->entries || (!fs && !*pair->uuid))
		return;
	if (fs)
		found(doctor, ERROR, pair->origin->path,
		      "it is mounted at %s without its write log, %s, which holds %llu writes that it lacks",
		      mnt_fs_get_target(fs), pair->log->path, pair->entries);
	else
		found(doctor, ERROR, pair->origin->path,
		      "its %s is visible with UUID %s and lacks %llu writes of its write log, %s, which is not in use: mounting it loses them",
		      pair->type, pair->uuid, pair->entries, pair->log->path);
	if (fs)
		mend(doctor, "umount %s (at once)", in_shell(mnt_fs_get_target(fs)));
	mend(doctor, "forebay writelog create NAME %s %s", in_shell(pair->origin->path),
	     in_shell(pair->log->path));
}

/**
 * check_origin_visible - no origin can be mounted without its write log
 * @doctor: takes the findings
 */
void check_origin_visible(struct doctor *doctor)
{
	for (size_t i = 0; i < doctor->machine.nr_disks; i++) {
		const struct disk *disk = &doctor->machine.disks[i];

		if (disk->error)
			unseen(doctor, disk->path, "can't tell whether it is a write log: %s",
			       strerror(disk->error));
	}
	each_pair(doctor, judge_visible);
}

struct line_search {
	struct doctor *doctor;
	const struct pair *pair;
};

/* True if a tag such as "UUID=..." has a value, which may be in quotes. */
static bool is_tag(const char *source, const char *tag, const char *value)
{
	size_t len = strlen(tag);

	if (!*value || strncmp(source, tag, len))
		return false;
	source += len;
	source += *source == '"';
	len = strlen(value);
	return !strncmp(source, value, len) && (!source[len] || source[len] == '"');
}

/* The link that udev makes for a tag of a partition; other sources are copied. */
static void link_of(const char *source, char link[PATH_MAX])
{
	static const struct {
		const char *tag, *folder;
	} links[] = { { "PARTUUID=", "by-partuuid" }, { "PARTLABEL=", "by-partlabel" }, { "ID=", "by-id" } };

	snprintf(link, PATH_MAX, "%s", source);
	for (size_t i = 0; i < ARRAY_SIZE(links); i++)
		if (!strncmp(source, links[i].tag, strlen(links[i].tag)))
			snprintf(link, PATH_MAX, "/dev/disk/%s/%s", links[i].folder,
				 source + strlen(links[i].tag));
}

/* True if a path or tag leads to a disk, as a link in /dev/disk/by-id does. */
static bool leads_to(const char *source, const struct disk *disk)
{
	char path[PATH_MAX], link[PATH_MAX], *a, *b;
	bool same;

	link_of(source, link);
	if (strncmp(link, "/dev/", 5))
		return false;
	a = realpath(kernel_path(path, "%s", link), NULL);
	b = realpath(node(path, disk), NULL);
	same = a && b && !strcmp(a, b);
	free(a);
	free(b);
	return same;
}

static void judge_line(void *arg, struct libmnt_fs *line)
{
	const char *source = mnt_fs_get_source(line) ?: mnt_fs_get_srcpath(line), *name = NULL, *value = NULL;
	struct line_search *search = arg;
	const struct pair *pair = search->pair;
	char tagged[PATH_MAX];

	if (!mnt_fs_get_tag(line, &name, &value)) {
		snprintf(tagged, sizeof(tagged), "%s=%s", name, value);
		source = tagged;
	}
	if (!source || is_forebay(line) ||
	    (!leads_to(source, pair->origin) && !is_tag(source, "UUID=", pair->uuid) &&
	     !is_tag(source, "LABEL=", pair->label)))
		return;
	found(search->doctor, ERROR, mnt_fs_get_target(line) ?: "/etc/fstab",
	      "its line in /etc/fstab names %s, the origin of the write log %s: a boot may mount it without the log",
	      source, pair->log->path);
	mend(search->doctor,
	     "in /etc/fstab: name /dev/mapper/NAME instead of %s, with x-systemd.requires=forebay-writelog@NAME.service",
	     source);
}

static void judge_fstab(struct doctor *doctor, const struct pair *pair)
{
	machine_fstab(&doctor->machine, judge_line, &(struct line_search){ doctor, pair });
}

/**
 * check_origin_fstab - no line of fstab names the origin of a write log
 * @doctor: takes the findings
 */
void check_origin_fstab(struct doctor *doctor)
{
	each_pair(doctor, judge_fstab);
}

/* True if a pattern of LVM, "a|regex|" or "r|regex|", matches a path. */
static bool pattern_matches(const char *pattern, size_t len, const char *path)
{
	char text[256];
	regex_t regex;
	bool matches;

	if (len < 3 || len > sizeof(text))
		return false;
	snprintf(text, sizeof(text), "%.*s", (int)len - 3, pattern + 2);
	if (regcomp(&regex, text, REG_EXTENDED | REG_NOSUB))
		return false;
	matches = !regexec(&regex, path, 0, NULL, 0);
	regfree(&regex);
	return matches;
}

/* True if a line "global_filter = [ "r|^/dev/sdb$|", "a|.*|" ]" refuses a path. The first match decides. */
static bool line_refuses(const char *line, const char *path)
{
	for (const char *at = strchr(line, '"'), *end; at; at = strchr(end + 1, '"')) {
		end = strchr(++at, '"');
		if (!end)
			return false;
		if (pattern_matches(at, end - at, path))
			return *at == 'r';
	}
	return false;
}

/* True if a file of LVM's settings has a filter that refuses a path. */
static bool filter_refuses(const char *file, const char *path)
{
	FILE *settings = fopen(file, "re");
	bool refuses = false;
	char *line = NULL;
	size_t size = 0;

	while (settings && getline(&line, &size, settings) > 0) {
		const char *word = line + strspn(line, " \t");

		if (!strncmp(word, "global_filter", 13) || !strncmp(word, "filter", 6))
			refuses |= line_refuses(word, path);
	}
	free(line);
	if (settings)
		fclose(settings);
	return refuses;
}

static void judge_lvm(struct doctor *doctor, const struct pair *pair)
{
	char path[PATH_MAX];

	if (strcmp(pair->type, "LVM2_member") ||
	    filter_refuses(kernel_path(path, "/etc/lvm/lvm.conf"), pair->origin->path) ||
	    filter_refuses(kernel_path(path, "/etc/lvm/lvmlocal.conf"), pair->origin->path))
		return;
	found(doctor, ERROR, pair->origin->path,
	      "LVM may activate it without its write log, %s: it holds a physical volume, and no filter refuses it",
	      pair->log->path);
	mend(doctor,
	     "in /etc/lvm/lvm.conf: global_filter = [ \"r|^%s$|\" ] (with its names in /dev/disk/by-id, too)",
	     pair->origin->path);
}

/**
 * check_origin_lvm - LVM doesn't use the origin of a write log
 * @doctor: takes the findings
 */
void check_origin_lvm(struct doctor *doctor)
{
	each_pair(doctor, judge_lvm);
}
