// SPDX-License-Identifier: GPL-2.0-only
/*
 * forebay writelog remove, transit remove: writes everything down and removes the mapped device.
 */
#include <stdio.h>
#include <string.h>

#include "base/message.h"
#include "base/shell.h"
#include "sys/sysfs.h"
#include "target.h"
#include "write_down.h"

enum { OPT_NO_FLUSH = 1, OPT_QUIET };

static const struct option options[] = {
	{ "no-flush", no_argument, NULL, OPT_NO_FLUSH },
	{ "quiet", no_argument, NULL, OPT_QUIET },
	OPTION_HELP,
	{ }
};

/* As `create` takes them. The origin's name (origin_id) is left out, since `create` finds it by itself. */
static void print_options(const char *options)
{
	char key[64], value[256];
	int len;

	for (; sscanf(options, "%63s %255s%n", key, value, &len) == 2; options += len)
		if (strcmp(key, "origin_id"))
			printf(" --option %s=%s", key, value);
}

/* An unplugged disk may come back under another name. */
static void say_gone(const char *word, const char *numbers)
{
	print_line("    %s was %s, which is gone.", word, numbers);
}

/*
 * @target was read just before the removal. A program that has opened the device since may have written.
 */
static void say_left_in_log(const char *name, const struct target *target)
{
	char size[SIZE_TEXT], log[PATH_MAX], origin[PATH_MAX];
	bool has_log = disk_path(target->log, log), has_origin = disk_path(target->below, origin);

	if (!target->bytes.used) {
		print_line("%s: removed; %s was empty just before", name, log);
		print_line("    `forebay writelog status %s` tells whether it is, and %s lacks nothing.",
			   in_shell(log), origin);
		return;
	}
	print_line("%s: removed; %s holds at most %s that %s lacks", name, log,
		   size_text(size, target->bytes.used), origin);
	print_line("    Don't mount or change %s before the two were used together again:", origin);
	printf("    forebay writelog create");
	print_options(target->options);
	printf(" %s %s %s\n", in_shell(name), in_shell(has_origin ? origin : "ORIGIN"),
	       in_shell(has_log ? log : "LOG"));
	if (!has_origin)
		say_gone("ORIGIN", origin);
	if (!has_log)
		say_gone("LOG", log);
}

static enum exit_status remove_flushed(const struct mapped_kind *kind, const char *name, bool quiet)
{
	enum exit_status status = write_down(name, kind, kind->final_message, quiet);

	if (status) {
		advice("To remove it all the same, and %s: --no-flush", kind == &writelog_kind ?
		       "keep that in the log" : "lose what the device goes on to refuse");
		return status;
	}
	status = mapped_remove(name);
	if (status && kind == &writelog_kind)
		advise_on_mode(name);
	else if (!status && !quiet)
		print_line("%s: removed%s", name,
			   kind == &writelog_kind ? "; everything is on the origin" : "");
	return status;
}

static enum exit_status remove_target(const struct mapped_kind *kind, const char *name, bool flush,
				      bool quiet)
{
	enum exit_status status;
	struct target target;

	/* Read again: a program that had it open until now may have written. */
	if (!target_find(name, kind, &target) || !mapped_idle(name) || !target_find(name, kind, &target))
		return FAILED;
	if (flush)
		return remove_flushed(kind, name, quiet);
	status = mapped_remove(name);
	if (status || quiet)
		return status;
	if (kind == &writelog_kind)
		say_left_in_log(name, &target);
	else
		print_line("%s: removed", name);
	return DONE;
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
		return usage_problem(verb, "expected the name of one mapped device");
	return remove_target(verb->kind, mapped_name(argv[optind]), flush, quiet);
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
	.kind = &writelog_kind,
	.run = remove_verb,
};

const struct verb verb_transit_remove = {
	.name = "transit remove",
	.arguments = "[--no-flush] [--quiet] NAME",
	.summary = "write everything down, and remove the mapped device",
	.help = "Writes down what is in the cache, then removes /dev/mapper/NAME. If the device\n"
		"refuses some of it nothing is removed. Exit status: 0 removed, 4 the device refuses\n"
		"something, 8 could not be tried or is in use, 16 wrong usage.\n"
		"\n"
		"  --no-flush          remove it even so; what the device refuses is lost\n"
		"  --quiet             no progress, no result; problems only\n",
	.options = options,
	.kind = &transit_kind,
	.run = remove_verb,
};
