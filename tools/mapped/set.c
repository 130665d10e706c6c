// SPDX-License-Identifier: GPL-2.0-only
/*
 * forebay writelog set, transit set: change options of a target that is in use.
 *
 * Some options depend on each other: low_mark must stay below high_mark. The target may refuse one because
 * of the other's old value. So each refused option is tried again when all others are set.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/message.h"
#include "options.h"

static const struct option options[] = { OPTION_HELP, { } };

static int set_one(const char *name, const char *pair)
{
	const char *equals = strchr(pair, '=');
	char message[MAPPED_TEXT];

	snprintf(message, sizeof(message), "set %.*s %s", (int)(equals - pair), pair, equals + 1);
	return mapped_message(name, message, NULL);
}

static void say_refused(const struct verb *verb, const char *name, const char *pair, int err)
{
	if (err == ERANGE) {
		problem("%s: %s: invalid value", name, pair);
		advice("`forebay %s --help` lists the valid ones. The previous value stays.", verb->name);
	} else {
		problem("%s: %s: %s", name, pair, strerror(err));
		advice("The previous value stays. dmesg may say more.");
	}
}

/* Moves refused pairs to the front; returns how many there are. */
static int set_each(const char *name, int n, char **pairs)
{
	int refused = 0;

	for (int i = 0; i < n; i++)
		if (set_one(name, pairs[i]))
			pairs[refused++] = pairs[i];
	return refused;
}

static enum exit_status set_all(const struct verb *verb, const char *name, int n, char **pairs)
{
	enum exit_status status = DONE;

	if (n > 1)
		n = set_each(name, n, pairs);
	for (int i = 0; i < n; i++) {
		int err = set_one(name, pairs[i]);

		if (!err)
			continue;
		say_refused(verb, name, pairs[i], err);
		status = FAILED;
	}
	return status;
}

static enum exit_status set_verb(const struct verb *verb, int argc, char **argv)
{
	struct mapped mapped;
	const char *name;

	while (next_option(verb, argc, argv) != -1)
		;
	if (argc - optind < 2)
		return usage_problem(verb, "expected the name of a mapped device, and options to set");
	name = mapped_name(argv[optind++]);
	for (int i = optind; i < argc; i++)
		if (!option_take(verb, argv[i]))
			return USAGE;
	if (!mapped_find(name, verb->kind, &mapped))
		return FAILED;
	return set_all(verb, name, argc - optind, argv + optind);
}

#define HELP \
	"Changes options of /dev/mapper/NAME at once, until it is removed: `create` sets them\n" \
	"again. If some can't be set the others are all the same, and the exit status is 8.\n" \
	"\n"

const struct verb verb_writelog_set = {
	.name = "writelog set",
	.arguments = "NAME KEY=VALUE...",
	.summary = "change options of a write log that is in use",
	.help = HELP,
	.options = options,
	.kind = &writelog_kind,
	.keys = KEYS_LATER,
	.run = set_verb,
};

const struct verb verb_transit_set = {
	.name = "transit set",
	.arguments = "NAME KEY=VALUE...",
	.summary = "change options of a transit cache that is in use",
	.help = HELP,
	.options = options,
	.kind = &transit_kind,
	.keys = KEYS_LATER,
	.run = set_verb,
};
