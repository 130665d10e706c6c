// SPDX-License-Identifier: GPL-2.0-only
/*
 * forebay writelog remove: writes everything back and removes the mapped device.
 */
#include <stdio.h>
#include <string.h>

#include "message.h"
#include "sysfs.h"
#include "writelog_flush.h"
#include "writelog_target.h"

enum { OPT_NO_FLUSH = 1, OPT_QUIET };

static const struct option options[] = {
	{ "no-flush", no_argument, NULL, OPT_NO_FLUSH },
	{ "quiet", no_argument, NULL, OPT_QUIET },
	OPTION_HELP,
	{ }
};

/* As it was given, but for the name of the origin, which `create` finds by itself. */
static void print_options(const char *options)
{
	char key[64], value[256];
	int len;

	for (; sscanf(options, "%63s %255s%n", key, value, &len) == 2; options += len)
		if (strcmp(key, "origin_id"))
			printf(" --option %s=%s", key, value);
}

/* As it was just before. Who opened it since then, and has closed it, may have written. */
static void say_kept(const char *name, const struct writelog_target *target)
{
	char size[SIZE_TEXT], log[PATH_MAX], origin[PATH_MAX];

	disk_path(target->log, log);
	disk_path(target->origin, origin);
	if (!target->bytes_used) {
		printf("%s: removed; %s was empty just before\n", name, log);
		printf("    `forebay writelog status %s` tells whether it is, and %s lacks nothing.\n", log,
		       origin);
		return;
	}
	printf("%s: removed; %s holds at most %s that %s lacks\n", name, log,
	       size_text(size, target->bytes_used), origin);
	printf("    Don't mount or change %s before the two were used together again:\n", origin);
	printf("    forebay writelog create");
	print_options(target->options);
	printf(" %s %s %s\n", name, origin, log);
}

static enum exit_status remove_flushed(const char *name, bool quiet)
{
	/* Not "flush": what somebody writes after that would be in the log. */
	enum exit_status status = writelog_write_back(name, "cleaner", quiet);

	if (status) {
		advice("To remove it all the same, and keep that in the log: --no-flush");
		return status;
	}
	status = mapped_remove(name);
	if (status)
		writelog_say_mode(name);
	else if (!quiet)
		printf("%s: removed; everything is on the origin\n", name);
	return status;
}

static enum exit_status remove_target(const char *name, bool flush, bool quiet)
{
	struct writelog_target target;
	enum exit_status status;

	/* And again, when whoever had it open has written all. */
	if (!writelog_find(name, &target) || !mapped_idle(name) || !writelog_find(name, &target))
		return FAILED;
	if (flush)
		return remove_flushed(name, quiet);
	status = mapped_remove(name);
	if (!status && !quiet)
		say_kept(name, &target);
	return status;
}

static enum exit_status remove_verb(const struct verb *verb, int argc, char **argv)
{
	bool flush = true, quiet = false;
	int option;

	while ((option = next_option(verb, argc, argv)) != -1) {
		if (option == OPT_NO_FLUSH)
			flush = false;
		else
			quiet = true;
	}
	if (argc - optind != 1)
		return usage_problem(verb, "want the name of one mapped device");
	return remove_target(mapped_name(argv[optind]), flush, quiet);
}

const struct verb verb_writelog_remove = {
	.name = "writelog remove",
	.arguments = "[--no-flush] [--quiet] NAME",
	.summary = "write everything back, and remove the mapped device",
	.help = "Writes everything back to the origin, then removes /dev/mapper/NAME; the origin is\n"
		"a plain block device again. If writing back fails nothing is removed. Exit status:\n"
		"0 removed, 4 something is left in the log, 8 could not be tried or is in use, 16\n"
		"wrong usage.\n"
		"\n"
		"  --no-flush          remove it as it is: what is in the log is replayed when the two\n"
		"                      are used together again; until then the origin lacks it\n"
		"  --quiet             no progress, no result; problems only\n",
	.options = options,
	.run = remove_verb,
};
