// SPDX-License-Identifier: GPL-2.0-only
/*
 * forebay writelog remove: writes everything back and removes the mapped device.
 */
#include <stdio.h>

#include "message.h"
#include "writelog_flush.h"

enum { OPT_NO_FLUSH = 1, OPT_QUIET };

static const struct option options[] = {
	{ "no-flush", no_argument, NULL, OPT_NO_FLUSH },
	{ "quiet", no_argument, NULL, OPT_QUIET },
	OPTION_HELP,
	{ }
};

static enum exit_status remove_target(const char *name, bool flush, bool quiet)
{
	struct writelog_target target;
	enum exit_status status = DONE;

	if (!find_target(name, &target))
		return FAILED;
	if (!mapped_idle(name))
		return FAILED;
	/* Not "flush": what somebody writes after that would be in the log. */
	if (flush)
		status = write_all_back(name, "cleaner", quiet);
	if (status) {
		advice("To remove it all the same, and keep that in the log: --no-flush");
		return status;
	}
	status = mapped_remove(name);
	if (status && flush)
		say_mode(name);
	if (!status && !quiet)
		printf("%s: removed%s\n", name, flush ? "; everything is on the origin" : "");
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
		"a plain block device again. If writing back fails nothing is removed.\n"
		"\n"
		"  --no-flush          remove it as it is: what is in the log is replayed when the two\n"
		"                      are used together again\n"
		"  --quiet             no progress, no result; problems only\n",
	.options = options,
	.run = remove_verb,
};
