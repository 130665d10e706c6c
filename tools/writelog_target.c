// SPDX-License-Identifier: GPL-2.0-only
/*
 * The options and the status line of docs/writelog.md; docs and the target's params.c and
 * status.c go together with this.
 */
#include <stdio.h>
#include <string.h>

#include "message.h"
#include "options.h"
#include "writelog_target.h"

static const struct target_option options[] = {
	{ "slots", false, "how many writers copy to the log at a time, 1 to 256; default: the\n"
	  "                      number of processors, 2 to 16" },
	{ "block_size", false, "the smallest write: 512, 1024, 2048 or 4096, which is best under ext4\n"
	  "                      and xfs; default: the origin's logical block size" },
	{ "high_mark", true, "begin to write back when so many percent are in use, 1 to 99; 60" },
	{ "low_mark", true, "go on until it is so many, 0 to 98, less than high_mark; 40" },
	{ "depth", true, "MiB that are on their way to the origin at a time, 1 to 256; 16" },
	{ "error_timeout", true, "seconds that a full log whose origin fails holds writers up before it\n"
	  "                      refuses them, 0 to 86400; 60" },
	{ "on_damage", false, "stop refuses a damaged log (the default), skip uses what is whole of it" },
	{ "allow_volatile", false, "1: the log may be on ordinary memory (`forebay emu create`); 0" },
	{ }
};

const struct mapped_kind writelog_kind = {
	.target = "forebay-wlog",
	.noun = "writelog",
	.what = "write log",
	.options = options,
};

/**
 * writelog_parse - take apart what a write log says
 * @target: @mapped is filled in already, the rest is zero
 *
 * Return: false if it says something else than this command expects.
 */
bool writelog_parse(struct writelog_target *target)
{
	int values = 0, options_at = 0;

	if (sscanf(target->mapped.status, "%15s %15s %lu/%lu %lu/%lu %*u %n", target->health, target->mode,
		   &target->generations_used, &target->generations_total, &target->bytes_used,
		   &target->bytes_total, &values) < 6 || !values)
		return false;
	target->values = target->mapped.status + values;
	if (sscanf(target->mapped.table, "%63s %63s%n %*u %n", target->origin, target->log, &options_at,
		   &options_at) < 2)
		return false;
	target->options = target->mapped.table + options_at;
	return true;
}

/**
 * writelog_find - read a write log that must be in use
 * @name: of the mapped device
 * @target: filled in
 *
 * Return: false, after a message, if there is no such device.
 */
bool writelog_find(const char *name, struct writelog_target *target)
{
	*target = (struct writelog_target){ };
	return mapped_find(name, &writelog_kind, &target->mapped) &&
	       (writelog_parse(target) || mapped_strange(name));
}

/**
 * writelog_say_mode - advise people of what becomes of further writes
 * @name: of the mapped device
 */
void writelog_say_mode(const char *name)
{
	struct writelog_target target = { };

	if (!mapped_read(name, &writelog_kind, &target.mapped) || !writelog_parse(&target))
		return;
	if (!strcmp(target.mode, "cleaner"))
		advice("It logs no writes any more, they go to the origin, until `forebay writelog resume %s`.",
		       name);
	else
		advice("It goes on logging writes.");
}
