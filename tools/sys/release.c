// SPDX-License-Identifier: GPL-2.0-only
/*
 * Which kernel runs, and for which kernels Forebay's modules are installed. A module is looked for where
 * modprobe looks for it: in /lib/modules/RELEASE/modules.dep.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "release.h"
#include "sysfs.h"

#define MODULES		"/lib/modules"

/*
 * Returns whether a line of modules.dep is about @file, such as "forebay.ko". ":" or ".xz:" follows the
 * name.
 */
static bool names_file(const char *line, const char *file)
{
	const char *end = strchr(line, ':');
	const char *base = end ? memrchr(line, '/', end - line) : NULL;

	base = base ? base + 1 : line;
	return end && !strncmp(base, file, strlen(file)) && strchr(".:", base[strlen(file)]);
}

/**
 * module_path - the file of a module for a kernel
 * @release: of the kernel
 * @module: its name, as modprobe takes it
 * @path: set to the file, where this process finds it
 *
 * Return: false if the module is not installed for that kernel.
 */
bool module_path(const char *release, const char *module, char path[PATH_MAX])
{
	char file[64], *line = NULL;
	bool found = false;
	size_t size = 0;
	FILE *list;

	snprintf(file, sizeof(file), "%s.ko", module);
	list = fopen(kernel_path(path, MODULES "/%s/modules.dep", release), "re");
	while (list && !found && getline(&line, &size, list) > 0)
		found = names_file(line, file);
	if (found)
		kernel_path(path, *line == '/' ? "%s%.*s" : MODULES "/%s/%.*s", *line == '/' ? "" : release,
			    (int)strcspn(line, ":"), line);
	if (list)
		fclose(list);
	free(line);
	return found;
}

static bool has_module(const char *release, const char *module)
{
	char path[PATH_MAX];

	return module_path(release, module, path);
}

/* The kernels that have a module. */
struct releases {
	const char *module;
	char list[ADVICE_TEXT / 2];	/* "6.12.1-amd64, 6.12.9-amd64" */
	char newest[NAME_MAX + 1];
};

/* The names come in the order of versions. */
static void take_release(void *arg, const char *release)
{
	struct releases *all = arg;
	size_t len = strlen(all->list);

	if (!has_module(release, all->module))
		return;
	snprintf(all->list + len, sizeof(all->list) - len, "%s%.64s", len ? ", " : "", release);
	snprintf(all->newest, sizeof(all->newest), "%s", release);
}

/**
 * running_release - the release of the kernel that runs
 * @release: set
 */
void running_release(char release[NAME_MAX + 1])
{
	char path[PATH_MAX];

	if (!kernel_read(kernel_path(path, "/proc/sys/kernel/osrelease"), release, NAME_MAX + 1))
		snprintf(release, NAME_MAX + 1, "not known");
}

/**
 * module_is_elsewhere - find out whether a module is installed only for kernels that don't run
 * @module: its name, as modprobe takes it
 * @text: if so, sentences that say which kernels, and what to do
 */
bool module_is_elsewhere(const char *module, char text[ADVICE_TEXT])
{
	struct releases others = { .module = module };
	char release[NAME_MAX + 1];

	running_release(release);
	if (has_module(release, module))
		return false;
	names_in(MODULES, take_release, &others);
	if (!*others.list)
		return false;
	snprintf(text, ADVICE_TEXT, "This kernel is %.64s, and the modules are for %s: reboot into %.64s.",
		 release, others.list, others.newest);
	return true;
}

/**
 * module_advice - what to do if a module isn't loaded
 * @module: its name, as modprobe takes it
 * @text: where to put it
 *
 * Return: @text: one or two sentences.
 */
const char *module_advice(const char *module, char text[ADVICE_TEXT])
{
	char release[NAME_MAX + 1];

	running_release(release);
	if (has_module(release, module))
		snprintf(text, ADVICE_TEXT, "Load it: modprobe %s", module);
	else if (!module_is_elsewhere(module, text))
		snprintf(text, ADVICE_TEXT,
			 "This kernel is %.64s, and Forebay's modules are installed for no kernel: make install, or its package.",
			 release);
	return text;
}
