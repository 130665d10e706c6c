// SPDX-License-Identifier: GPL-2.0-only
/*
 * forebay writelog flush: has the target write everything back, and shows how
 * far it is.
 */
#include <stdio.h>
#include <string.h>

#include "flush.h"
#include "writelog_flush.h"
#include "writelog_target.h"

enum { OPT_CLEANER = 1, OPT_QUIET };

static const struct option options[] = {
	{ "cleaner", no_argument, NULL, OPT_CLEANER },
	{ "quiet", no_argument, NULL, OPT_QUIET },
	OPTION_HELP,
	{ }
};

static bool look(const char *name, struct amounts *now)
{
	struct writelog_target target = { };

	if (!mapped_read(name, &writelog_kind, &target.mapped) || !writelog_parse(&target))
		return false;
	now->held = target.bytes_used;
	now->passed_on = (mapped_value(target.values, "writeback_sectors") +
			  mapped_value(target.values, "superseded_sectors")) << 9;
	now->refused = mapped_value(target.values, "origin_errors") +
		       mapped_value(target.values, "medium_errors");
	return true;
}

/**
 * writelog_write_back - have a write log written back
 * @name: of the mapped device
 * @message: "flush" or "cleaner"
 * @quiet: no progress
 *
 * Return: DONE; LEFT, after a message: something stayed in the log; FAILED, after
 * a message: it could not be tried.
 */
enum exit_status writelog_write_back(const char *name, const char *message, bool quiet)
{
	bool cleaner = !strcmp(message, "cleaner");
	/* A cleaner passes on what is written meanwhile, too. */
	struct flush flush = {
		.name = name, .message = message, .quiet = quiet, .counts = !cleaner, .look = look,
		.text = size_text, .rest = "log; nothing is lost. dmesg says more.",
	};
	enum exit_status status = flush_run(&flush);

	if (status && cleaner)
		writelog_say_mode(name);
	return status;
}

static enum exit_status flush(const struct verb *verb, int argc, char **argv)
{
	bool cleaner = false, quiet = false;
	struct writelog_target target;
	enum exit_status status;
	const char *name;
	int option;

	while ((option = next_option(verb, argc, argv)) != -1) {
		if (option == OPT_CLEANER)
			cleaner = true;
		else
			quiet = true;
	}
	if (argc - optind != 1)
		return usage_problem(verb, "want the name of one mapped device");
	name = mapped_name(argv[optind]);
	if (!writelog_find(name, &target))
		return FAILED;
	status = writelog_write_back(name, cleaner ? "cleaner" : "flush", quiet);
	if (!status && !quiet)
		printf("%s: everything is on the origin%s\n", name,
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
	.options = options,
	.run = flush,
};
