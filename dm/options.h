/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Options of a target: pairs of words at the end of its table line, and messages that
 * set them later. The same for both targets, but for what options there are. DM_MSG_PREFIX
 * is the includer's.
 */
#ifndef FOREBAY_DM_OPTIONS_H
#define FOREBAY_DM_OPTIONS_H

#include <linux/device-mapper.h>

/* Sets one: 0; -ENOENT: there is none of that name; -EPERM: not @later than in the table; -ERANGE. */
typedef int (*option_set_fn)(void *target, const char *key, const char *value, bool later);

static inline const char *option_error(int err)
{
	if (err == -ENOENT)
		return "there is no such option";
	return err == -EPERM ? "is for the table only" : "not such a value";
}

/**
 * options_parse() - the options of a table line
 * @ti: ti->error says what is wrong
 * @argc: how many words are left: 0, or their number and so many
 * @argv: these
 * @set: sets one
 * @target: for it
 *
 * Return: 0 or -EINVAL.
 */
static inline int options_parse(struct dm_target *ti, unsigned int argc, char **argv, option_set_fn set,
				void *target)
{
	unsigned int i, count;

	if (argc && (kstrtouint(argv[0], 10, &count) || count != argc - 1 || count % 2)) {
		ti->error = "What is needed is followed by the number of words of options, in pairs";
		return -EINVAL;
	}
	for (i = 1; i + 1 < argc; i += 2) {
		int err = set(target, argv[i], argv[i + 1], false);

		if (err) {
			DMERR("%s: option %s %s: %s", dm_table_device_name(ti->table), argv[i], argv[i + 1],
			      option_error(err));
			ti->error = "An option that there is not, or a value that it can't have";
			return -EINVAL;
		}
	}
	return 0;
}

#endif
