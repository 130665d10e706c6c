// SPDX-License-Identifier: GPL-2.0-only
/*
 * Checks of the units of write logs and transit caches, and of their settings in /etc/forebay.
 */
#include <libmount.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/message.h"
#include "base/shell.h"
#include "sys/sysfs.h"
#include "doctor.h"

struct kind {
	const char *name;
	const char *keys[3];		/* of devices; the last is NULL */
};

static const struct kind kinds[] = {
	{ "writelog", { "ORIGIN", "LOG", NULL } },
	{ "transit", { "DEVICE", NULL, NULL } },
};

struct walk {
	struct doctor *doctor;
	const struct kind *kind;
};

static void each_setting(struct doctor *doctor, name_fn fn)
{
	char folder[PATH_MAX];

	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
		snprintf(folder, sizeof(folder), "/etc/forebay/%s", kinds[i].name);
		names_in(folder, fn, &(struct walk){ doctor, &kinds[i] });
	}
}

static bool is_installed(const struct kind *kind)
{
	static const char *const folders[] = { "/etc", "/usr/local/lib", "/usr/lib", "/lib" };
	char path[PATH_MAX];

	for (size_t i = 0; i < ARRAY_SIZE(folders); i++) {
		snprintf(path, sizeof(path), "%s/systemd/system/forebay-%s@.service", folders[i], kind->name);
		if (exists(path))
			return true;
	}
	return false;
}

struct line_search {
	const char *name;
	bool found;
};

static void compare_line(void *arg, struct libmnt_fs *line)
{
	const char *source = mnt_fs_get_source(line);
	struct line_search *search = arg;

	search->found |= source && !strncmp(source, "/dev/mapper/", 12) && !strcmp(source + 12, search->name);
}

/* A device that fstab names is check_fstab_unit()'s. */
static void judge_unit(void *arg, const char *name)
{
	struct line_search search = { .name = name };
	char path[PATH_MAX], object[PATH_MAX];
	struct walk *walk = arg;

	snprintf(object, sizeof(object), "/etc/forebay/%s/%s", walk->kind->name, name);
	if (strchr(name, '-')) {
		found(walk->doctor, ERROR, object, "systemd takes the dash in the name for a slash");
		mend(walk->doctor, "mv %s to a name without a dash, and change the line in /etc/fstab",
		     in_shell(object));
		return;
	}
	if (!is_installed(walk->kind)) {
		found(walk->doctor, ERROR, object, "the unit forebay-%s@.service is not installed",
		      walk->kind->name);
		mend(walk->doctor, "make install (in Forebay's sources), or install the package forebay");
		return;
	}
	machine_fstab(&walk->doctor->machine, compare_line, &search);
	snprintf(path, sizeof(path), "/etc/systemd/system/local-fs.target.wants/forebay-%s@%s.service",
		 walk->kind->name, name);
	if (search.found || exists(path) || walk->doctor->machine.fstab_error)
		return;
	found(walk->doctor, WARNING, object,
	      "no line of /etc/fstab names /dev/mapper/%s, and its unit is not enabled: the boot doesn't make it",
	      name);
	mend(walk->doctor, "systemctl enable forebay-%s@%s.service", walk->kind->name, name);
}

/**
 * check_units - the units of write logs and transit caches are installed and started
 * @doctor: takes the findings
 *
 * On a machine without systemd nothing is checked.
 */
void check_units(struct doctor *doctor)
{
	if (exists("/run/systemd/system"))
		each_setting(doctor, judge_unit);
}

/*
 * The last value of KEY=VALUE in the text of a file, as systemd reads it: without quotes of either kind, and
 * without blanks around it. False: there is none.
 */
static bool value_of(const char *text, const char *key, char *value, size_t size)
{
	size_t len = strlen(key), length;
	bool found = false;

	for (const char *line = text; *line; line += strcspn(line, "\n"), line += *line == '\n') {
		line += strspn(line, " \t");
		if (strncmp(line, key, len) || line[len] != '=')
			continue;
		line += len + 1;
		line += strspn(line, " \t");
		length = strcspn(line, "\n");
		if (*line == '"' || *line == '\'') {
			length = strcspn(line + 1, *line == '"' ? "\"\n" : "'\n");
			line++;
		}
		while (length && strchr(" \t", line[length - 1]))
			length--;
		snprintf(value, size, "%.*s", (int)length, line);
		found = true;
	}
	return found;
}

static void judge_setting(void *arg, const char *name)
{
	char path[PATH_MAX], object[PATH_MAX], text[4096], value[PATH_MAX];
	struct walk *walk = arg;

	snprintf(object, sizeof(object), "/etc/forebay/%s/%s", walk->kind->name, name);
	if (!kernel_read(kernel_path(path, "%s", object), text, sizeof(text))) {
		unseen(walk->doctor, object, "can't be read");
		return;
	}
	for (const char *const *key = walk->kind->keys; *key; key++) {
		if (!value_of(text, *key, value, sizeof(value))) {
			found(walk->doctor, ERROR, object, "it has no line %s=, which the unit needs", *key);
			mend(walk->doctor, "in %s: %s=/dev/disk/by-id/...", object, *key);
		} else if (!exists(value)) {
			found(walk->doctor, ERROR, object, "%s=%s names a device that does not exist", *key,
			      value);
			mend(walk->doctor, "ls -l /dev/disk/by-id, and change the line");
		}
	}
}

/**
 * check_settings - the settings of units name devices that exist
 * @doctor: takes the findings
 */
void check_settings(struct doctor *doctor)
{
	each_setting(doctor, judge_setting);
}
