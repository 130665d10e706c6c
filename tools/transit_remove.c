// SPDX-License-Identifier: GPL-2.0-only
/*
 * forebay transit remove: writes down what is in the cache, and removes the mapped
 * device.
 */
#include <stdio.h>

#include "message.h"
#include "transit_flush.h"
#include "transit_target.h"

enum { OPT_NO_FLUSH = 1, OPT_QUIET };

static const struct option options[] = {
	{ "no-flush", no_argument, NULL, OPT_NO_FLUSH },
	{ "quiet", no_argument, NULL, OPT_QUIET },
	OPTION_HELP,
	{ }
};

static enum exit_status remove_target(const char *name, bool flush, bool quiet)
{
	struct transit_target target;
	enum exit_status status = DONE;

	if (!transit_find(name, &target))
		return FAILED;
	if (!mapped_idle(name))
		return FAILED;
	if (flush)
		status = transit_write_down(name, quiet);
	if (status) {
		advice("To remove it all the same, and lose what the device goes on to refuse: --no-flush");
		return status;
	}
	status = mapped_remove(name);
	if (!status && !quiet)
		printf("%s: removed\n", name);
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
	.run = remove_verb,
};
