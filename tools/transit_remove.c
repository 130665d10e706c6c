// SPDX-License-Identifier: GPL-2.0-only
/*
 * forebay transit remove: writes down what is in the cache, and removes the mapped
 * device.
 */
#include <stdio.h>
#include <string.h>

#include "message.h"
#include "transit_target.h"

enum { OPT_NO_FLUSH = 1 };

static const struct option options[] = {
	{ "no-flush", no_argument, NULL, OPT_NO_FLUSH },
	OPTION_HELP,
	{ }
};

static enum exit_status remove_target(const char *name, bool flush)
{
	struct transit_target target;
	enum exit_status status;
	int err;

	if (!transit_find(name, &target))
		return FAILED;
	if (!mapped_idle(name))
		return FAILED;
	err = flush ? mapped_message(name, "flush") : 0;
	if (err) {
		problem("%s: cannot write everything down: %s", name, strerror(err));
		advice("dmesg says more. To remove it, and lose that: --no-flush");
		return FAILED;
	}
	status = mapped_remove(name);
	if (!status)
		printf("%s: removed\n", name);
	return status;
}

static enum exit_status remove_verb(const struct verb *verb, int argc, char **argv)
{
	bool flush = true;

	while (next_option(verb, argc, argv) != -1)
		flush = false;
	if (argc - optind != 1)
		return usage_problem(verb, "want the name of one mapped device");
	return remove_target(mapped_name(argv[optind]), flush);
}

const struct verb verb_transit_remove = {
	.name = "transit remove",
	.arguments = "[--no-flush] NAME",
	.summary = "write everything down, and remove the mapped device",
	.help = "Writes down what is in the cache, then removes /dev/mapper/NAME. If the device\n"
		"refuses some of it nothing is removed.\n"
		"\n"
		"  --no-flush          remove it even so; what the device refuses is lost\n",
	.options = options,
	.run = remove_verb,
};
