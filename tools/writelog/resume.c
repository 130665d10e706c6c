// SPDX-License-Identifier: GPL-2.0-only
/*
 * forebay writelog resume: has a cleaner log writes again. Only a newly loaded table has this effect. The
 * same table is enough, since being a cleaner is no part of a table.
 */
#include <string.h>

#include "base/message.h"
#include "base/shell.h"
#include "mapped/target.h"

static const struct option options[] = { OPTION_HELP, { } };

static enum exit_status resume_target(const char *name)
{
	struct target target;
	enum exit_status status;

	if (!target_find(name, &writelog_kind, &target))
		return FAILED;
	if (target.mapped.suspended) {
		problem("%s is suspended", name);
		advice("`dmsetup resume %s` ends that; then try again, if it still logs no writes.",
		       in_shell(name));
		return FAILED;
	}
	if (!strcmp(target.mode, "write")) {
		print_line("%s: logs writes; there was nothing to do", name);
		return DONE;
	}
	if (strcmp(target.mode, "cleaner")) {
		problem("%s is being written back and will then log no more writes", name);
		advice("Wait for that, or interrupt the command that does it: `forebay writelog flush --cleaner` or `remove`.");
		return FAILED;
	}
	status = mapped_reload(name, &writelog_kind, &target.mapped);
	if (!status)
		print_line("%s: logs writes again", name);
	return status;
}

static enum exit_status resume(const struct verb *verb, int argc, char **argv)
{
	while (next_option(verb, argc, argv) != -1)
		;
	if (argc - optind != 1)
		return usage_problem(verb, "expected the name of one mapped device");
	return resume_target(mapped_name(argv[optind]));
}

const struct verb verb_writelog_resume = {
	.name = "writelog resume",
	.arguments = "NAME",
	.summary = "log writes again, after flush --cleaner",
	.help = "Has /dev/mapper/NAME log writes again, after `forebay writelog flush --cleaner` or a\n"
		"failed `remove` has stopped that. Programs may use the device meanwhile.\n"
		"\n",
	.options = options,
	.run = resume,
};
