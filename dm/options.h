/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Options of a target: pairs of words at the end of the table line, and messages that set them later.
 * Both targets use this; each has its own options. The includer defines DM_MSG_PREFIX.
 */
#ifndef FOREBAY_DM_OPTIONS_H
#define FOREBAY_DM_OPTIONS_H

#include <linux/device-mapper.h>

/*
 * Sets one option. 0; -ENOENT: unknown; -EPERM: not settable @later than in the table; -ERANGE: bad
 * value.
 */
typedef int (*option_set_fn)(void *target, const char *key, const char *value, bool later);

static inline const char *option_error(int err)
{
	if (err == -ENOENT)
		return "unknown option";
	return err == -EPERM ? "can be set in the table only" : "invalid value";
}

/**
 * options_parse() - set the options of a table line
 * @ti: gets ->error after a failure
 * @argc: number of words left: 0, or 1 + the number that argv[0] gives
 * @argv: these words
 * @set: sets one option
 * @target: passed to @set
 *
 * Return: 0 or -EINVAL.
 */
static inline int options_parse(struct dm_target *ti, unsigned int argc, char **argv, option_set_fn set,
				void *target)
{
	unsigned int i, count;

	if (argc && (kstrtouint(argv[0], 10, &count) || count != argc - 1 || count % 2)) {
		ti->error = "Options must be their number of words, then pairs of KEY VALUE";
		return -EINVAL;
	}
	for (i = 1; i + 1 < argc; i += 2) {
		int err = set(target, argv[i], argv[i + 1], false);

		if (err) {
			DMERR("%s: option %s %s: %s", dm_table_device_name(ti->table), argv[i], argv[i + 1],
			      option_error(err));
			ti->error = "Unknown option or invalid value";
			return -EINVAL;
		}
	}
	return 0;
}

#endif
