// SPDX-License-Identifier: GPL-2.0-only
/*
 * forebay writelog flush, transit flush: has the target write everything down, and shows how far it is.
 */
#include <string.h>

#include "base/message.h"
#include "target.h"
#include "write_down.h"

enum { OPT_CLEANER = 1, OPT_QUIET };

static const struct option writelog_options[] = {
	{ "cleaner", no_argument, NULL, OPT_CLEANER },
	{ "quiet", no_argument, NULL, OPT_QUIET },
	OPTION_HELP,
	{ }
};

static const struct option transit_options[] = {
	{ "quiet", no_argument, NULL, OPT_QUIET },
	OPTION_HELP,
	{ }
};

static enum exit_status flush(const struct verb *verb, int argc, char **argv)
{
	bool cleaner = false, quiet = false;
	enum exit_status status;
	struct target target;
	const char *name;
	int option;

	while ((option = next_option(verb, argc, argv)) != -1) {
		if (option == OPT_CLEANER)
			cleaner = true;
		else
			quiet = true;
	}
	if (argc - optind != 1)
		return usage_problem(verb, "expected the name of one mapped device");
	name = mapped_name(argv[optind]);
	if (!target_find(name, verb->kind, &target))
		return FAILED;
	status = write_down(name, verb->kind, cleaner ? "cleaner" : "flush", quiet);
	if (!status && !quiet)
		print_line("%s: everything is on the %s%s", name, verb->kind->below,
			   cleaner ? ", and further writes go there" : "");
	return status;
}

const struct verb verb_writelog_flush = {
	.name = "writelog flush",
	.arguments = "[--cleaner] [--quiet] NAME",
	.summary = "write everything back to the origin",
	.help = "Writes everything in the log of /dev/mapper/NAME back to its origin, and says when\n"
		"that is done. Exit status: 0 all written, 4 something is left in the log, 8 could\n"
		"not be tried, 16 wrong usage.\n"
		"\n"
		"  --cleaner           and log nothing more: further writes go to the origin, until\n"
		"                      `forebay writelog resume NAME`\n"
		"  --quiet             no progress, no result; problems only\n",
	.options = writelog_options,
	.kind = &writelog_kind,
	.run = flush,
};

const struct verb verb_transit_flush = {
	.name = "transit flush",
	.arguments = "[--quiet] NAME",
	.summary = "write everything down to the device",
	.help = "Writes down what is in the cache of /dev/mapper/NAME, and says when that is done, as\n"
		"fsync does for a file. Exit status: 0 all written, 4 something is left in the cache,\n"
		"8 could not be tried, 16 wrong usage.\n"
		"\n"
		"  --quiet             no progress, no result; problems only\n",
	.options = transit_options,
	.kind = &transit_kind,
	.run = flush,
};
