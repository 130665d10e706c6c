// SPDX-License-Identifier: GPL-2.0-only
/*
 * forebay transit flush: has the target write everything down, and shows how far it is.
 */
#include <stdio.h>

#include "flush.h"
#include "transit_flush.h"
#include "transit_target.h"

enum { OPT_QUIET = 1 };

static const struct option options[] = {
	{ "quiet", no_argument, NULL, OPT_QUIET },
	OPTION_HELP,
	{ }
};

/* What it has evicted says nothing: that may be any block. */
static bool look(const char *name, struct amounts *now)
{
	struct transit_target target = { };

	if (!mapped_read(name, &transit_kind, &target.mapped) || !transit_parse(&target))
		return false;
	now->held = target.slots_used;
	return true;
}

static const char *blocks_text(char text[SIZE_TEXT], uint64_t blocks)
{
	snprintf(text, SIZE_TEXT, "%lu block%s", blocks, PLURAL(blocks));
	return text;
}

/**
 * transit_write_down - have a transit cache written down
 * @name: of the mapped device
 * @quiet: no progress
 *
 * Return: DONE; LEFT, after a message: something stayed in the cache; FAILED, after
 * a message: it could not be tried.
 */
enum exit_status transit_write_down(const char *name, bool quiet)
{
	struct flush flush = {
		.name = name, .message = "flush", .quiet = quiet, .look = look, .text = blocks_text,
		.rest = "cache, and tried again; a power cut takes that. dmesg says more.",
	};

	return flush_run(&flush);
}

static enum exit_status flush(const struct verb *verb, int argc, char **argv)
{
	struct transit_target target;
	enum exit_status status;
	bool quiet = false;
	const char *name;

	while (next_option(verb, argc, argv) != -1)
		quiet = true;
	if (argc - optind != 1)
		return usage_problem(verb, "want the name of one mapped device");
	name = mapped_name(argv[optind]);
	if (!transit_find(name, &target))
		return FAILED;
	status = transit_write_down(name, quiet);
	if (!status && !quiet)
		printf("%s: everything is on the device\n", name);
	return status;
}

const struct verb verb_transit_flush = {
	.name = "transit flush",
	.arguments = "[--quiet] NAME",
	.summary = "write everything down to the device",
	.help = "Writes down what is in the cache of /dev/mapper/NAME, and says when that is done, as\n"
		"fsync does for a file. Exit status: 0 all written, 4 something is left in the cache,\n"
		"8 could not be tried, 16 wrong usage.\n"
		"\n"
		"  --quiet             no progress, no result; problems only\n",
	.options = options,
	.run = flush,
};
