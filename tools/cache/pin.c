// SPDX-License-Identifier: GPL-2.0-only
/*
 * forebay pin, unpin, attach, detach: an administrator says which ranges belong in the cache. The ranges
 * belong to the file (FOREBAY_KEEP) and not to the opener, since the command ends at once.
 */
#include <forebay.h>
#include <unistd.h>

#include "base/progress.h"
#include "range.h"

static const struct option options[] = { OPTION_HELP, { } };

/* @doing is the report on a call that takes long: pages are read, or others written back for them. */
static enum exit_status change(const struct verb *verb, int argc, char **argv, const char *doing,
			       int (*call)(int fd, off_t offset, off_t length, unsigned int flags))
{
	struct progress progress;
	struct file_range range;
	enum exit_status status;
	int failed;

	while (next_option(verb, argc, argv) != -1)
		;
	status = range_open(verb, argc, argv, &range);
	if (range.fd < 0)
		return status;
	progress_begin(&progress, range.path, doing);
	failed = call(range.fd, range.offset, range.length, FOREBAY_KEEP);
	progress_end(&progress);
	if (failed) {
		range_problem(verb->name, range.path);
		status = FAILED;
	}
	close(range.fd);
	return status;
}

static enum exit_status pin(const struct verb *verb, int argc, char **argv)
{
	return change(verb, argc, argv, "being pinned", forebay_pin);
}

static enum exit_status unpin(const struct verb *verb, int argc, char **argv)
{
	return change(verb, argc, argv, "being unpinned", forebay_unpin);
}

static enum exit_status attach(const struct verb *verb, int argc, char **argv)
{
	return change(verb, argc, argv, "being attached", forebay_attach);
}

static enum exit_status detach(const struct verb *verb, int argc, char **argv)
{
	return change(verb, argc, argv, "being detached", forebay_detach);
}

const struct verb verb_pin = {
	.name = "pin",
	.arguments = "FILE [RANGE]",
	.summary = "bring a file into the cache and keep it there",
	.help = "Brings a file, or a range of it, into the cache, and keeps it there until it is\n"
		"unpinned, deleted, or the file system is unmounted. Takes root.\n" RANGE_HELP,
	.options = options,
	.run = pin,
};

const struct verb verb_unpin = {
	.name = "unpin",
	.arguments = "FILE [RANGE]",
	.summary = "undo pin",
	.help = "Undoes `forebay pin`; the pages stay in the cache until room is needed. What\n"
		"programs have pinned or locked themselves stays pinned. Takes root.\n" RANGE_HELP,
	.options = options,
	.run = unpin,
};

const struct verb verb_attach = {
	.name = "attach",
	.arguments = "FILE [RANGE]",
	.summary = "send what is written to a file to the cache at once",
	.help = "From now on what is written to the file, or to a range of it, goes to the cache\n"
		"at once, whatever the mount's mode is. Until it is detached, deleted, or the file\n"
		"system is unmounted. Takes root.\n" RANGE_HELP,
	.options = options,
	.run = attach,
};

const struct verb verb_detach = {
	.name = "detach",
	.arguments = "FILE [RANGE]",
	.summary = "undo attach",
	.help = "Undoes `forebay attach`; pages stay in the cache until room is needed. Takes root.\n"
		RANGE_HELP,
	.options = options,
	.run = detach,
};
