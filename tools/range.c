// SPDX-License-Identifier: GPL-2.0-only
/*
 * forebay pin, unpin, attach, detach, drop: what belongs in the cache, said by an administrator. Pins and
 * attached ranges made here belong to the file (FOREBAY_KEEP), for the command itself is gone at once.
 */
#include <errno.h>
#include <fcntl.h>
#include <forebay.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../core/format.h"
#include "message.h"
#include "range.h"
#include "verb.h"

enum { OPT_JSON = 1 };

static const struct option range_options[] = { OPTION_HELP, { } };
static const struct option drop_options[] = { { "json", no_argument, NULL, OPT_JSON }, OPTION_HELP, { } };

static bool size_before(const char *text, char **end, uint64_t *size)
{
	static const char units[] = "kmgt";
	bool hex = text[0] == '0' && (text[1] | 0x20) == 'x';	/* and never octal */
	const char *unit;
	int shift;

	errno = 0;
	*size = strtoull(text, end, hex ? 16 : 10);
	if (*end == text || *text == '-' || errno)
		return false;
	unit = **end ? strchr(units, **end | 0x20) : NULL;
	if (!unit)
		return true;
	shift = 10 * (unit - units + 1);
	++*end;
	if (*size > UINT64_MAX >> shift)
		return false;
	*size <<= shift;
	return true;
}

/**
 * size_parse - read a number of bytes from the command line
 * @text: the number, with k, m, g or t behind it or not
 * @size: filled in
 *
 * Return: false if @text is none.
 */
bool size_parse(const char *text, __u64 *size)
{
	uint64_t bytes;
	char *end;

	if (!size_before(text, &end, &bytes) || *end)
		return false;
	*size = bytes;
	return true;
}

/**
 * range_parse - read a range from the command line
 * @text: OFFSET or OFFSET:LENGTH, with k, m, g or t behind a number or not
 * @offset: filled in, in bytes
 * @length: filled in; 0: up to the end
 *
 * Return: false if @text is no range.
 */
bool range_parse(const char *text, uint64_t *offset, uint64_t *length)
{
	char *end;

	*length = 0;
	if (!size_before(text, &end, offset))
		return false;
	if (!*end)
		return true;
	return *end == ':' && size_before(end + 1, &end, length) && !*end && *length;
}

static bool is_immutable(const char *path)
{
	struct statx stx;

	return !statx(AT_FDCWD, path, 0, 0, &stx) && (stx.stx_attributes & STATX_ATTR_IMMUTABLE);
}

static void say_no_room(int err, const char *path)
{
	if (err == ENOSPC) {
		problem("%s: the cache's table of files is full", path);
		advice("`forebay drain` makes room in it; `forebay format --files` makes a larger one.");
	} else {
		problem("%s: cannot pin so many pages", path);
		advice("The mount option pin_limit, or room in the cache, is used up: see `forebay status`.");
	}
}

static void say_failed(const char *verb, const char *path)
{
	int err = errno;

	if (!strcmp(verb, "pin") && (err == ENOSPC || err == ENOMEM)) {
		say_no_room(err, path);
		return;
	}
	switch (err) {
	case ENOTTY:
		problem("%s is not on a forebay mount", path);
		advice("`forebay status` lists the mounts.");
		break;
	case EPERM:
		if (geteuid() || !is_immutable(path)) {
			problem("%s: only root may %s for everybody, with CAP_SYS_ADMIN", path, verb);
		} else {
			problem("%s is immutable: its pages could not be written back", path);
			advice("`chattr -i %s` first.", path);
		}
		break;
	case EINVAL:
		problem("%s: no such range of a regular file", path);
		advice("A range is OFFSET:LENGTH in bytes, such as 0:8M; what is pinned must be inside the file.");
		break;
	default:
		problem("%s: cannot %s: %s", path, verb, strerror(err));
		if (!strcmp(verb, "drop"))
			advice("%s Nothing is lost.", lower_advice(err));
	}
}

/* Opens FILE [RANGE] as the arguments have it; if that fails, fd is -1 and the status says how. */
static enum exit_status open_range(const struct verb *verb, int argc, char **argv, struct file_range *range)
{
	range->fd = -1;
	if (argc - optind < 1 || argc - optind > 2)
		return usage_problem(verb, "want a file, and perhaps a range of it");
	range->path = argv[optind];
	range->offset = 0;
	range->length = 0;
	if (argc - optind == 2 && !range_parse(argv[optind + 1], &range->offset, &range->length))
		return usage_problem(verb, "no range: %s; say OFFSET:LENGTH, such as 4k:8M",
				     argv[optind + 1]);
	range->fd = open(range->path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	if (range->fd >= 0)
		return DONE;
	problem("cannot open %s: %s", range->path, strerror(errno));
	return FAILED;
}

static enum exit_status change(const struct verb *verb, int argc, char **argv,
			       int (*call)(int fd, off_t offset, off_t length, unsigned int flags))
{
	struct file_range range;
	enum exit_status status;

	while (next_option(verb, argc, argv) != -1)
		;
	status = open_range(verb, argc, argv, &range);
	if (range.fd < 0)
		return status;
	if (call(range.fd, range.offset, range.length, FOREBAY_KEEP)) {
		say_failed(verb->name, range.path);
		status = FAILED;
	}
	close(range.fd);
	return status;
}

static enum exit_status pin(const struct verb *verb, int argc, char **argv)
{
	return change(verb, argc, argv, forebay_pin);
}

static enum exit_status unpin(const struct verb *verb, int argc, char **argv)
{
	return change(verb, argc, argv, forebay_unpin);
}

static enum exit_status attach(const struct verb *verb, int argc, char **argv)
{
	return change(verb, argc, argv, forebay_attach);
}

static enum exit_status detach(const struct verb *verb, int argc, char **argv)
{
	return change(verb, argc, argv, forebay_detach);
}

static void print_dropped_json(const struct forebay_dropped *result)
{
	json_object *json = json_object_new_object();

	json_object_object_add(json, "dropped", json_object_new_int64(result->dropped));
	json_object_object_add(json, "pinned", json_object_new_int64(result->pinned));
	json_object_object_add(json, "busy", json_object_new_int64(result->busy));
	print_json(json);
}

static void print_dropped(const char *path, const struct forebay_dropped *result)
{
	char size[SIZE_TEXT];

	printf("%s: %s dropped", path, size_text(size, result->dropped << PS_PAGE_SHIFT));
	if (result->pinned)
		printf(", %s pinned", size_text(size, result->pinned << PS_PAGE_SHIFT));
	if (result->busy)
		printf(", %s in use", size_text(size, result->busy << PS_PAGE_SHIFT));
	putchar('\n');
}

static enum exit_status drop(const struct verb *verb, int argc, char **argv)
{
	struct forebay_dropped result;
	struct file_range range;
	enum exit_status status;
	bool json = false;

	while (next_option(verb, argc, argv) != -1)
		json = true;
	status = open_range(verb, argc, argv, &range);
	if (range.fd < 0)
		return status;
	if (forebay_drop(range.fd, range.offset, range.length, &result)) {
		say_failed(verb->name, range.path);
		status = FAILED;
	} else {
		if (json)
			print_dropped_json(&result);
		else
			print_dropped(range.path, &result);
		status = result.pinned || result.busy ? LEFT : DONE;
	}
	close(range.fd);
	return status;
}

#define RANGE_HELP							\
	"RANGE is OFFSET:LENGTH, or OFFSET, which means from there to the end, in bytes\n"	\
	"or with k, m, g or t behind the number; all of the file if it is left out.\n\n"

const struct verb verb_pin = {
	.name = "pin",
	.arguments = "FILE [RANGE]",
	.summary = "bring a file into the cache and keep it there",
	.help = "Brings a file, or a range of it, into the cache, and keeps it there until it is\n"
		"unpinned, deleted, or the file system is unmounted. Takes root.\n" RANGE_HELP,
	.options = range_options,
	.run = pin,
};

const struct verb verb_unpin = {
	.name = "unpin",
	.arguments = "FILE [RANGE]",
	.summary = "let pages go that were pinned",
	.help = "Undoes `forebay pin`; the pages stay in the cache until room is needed. What\n"
		"programs have pinned or locked themselves stays pinned. Takes root.\n" RANGE_HELP,
	.options = range_options,
	.run = unpin,
};

const struct verb verb_attach = {
	.name = "attach",
	.arguments = "FILE [RANGE]",
	.summary = "have what is written to a file go to the cache",
	.help = "From now on what is written to the file, or to a range of it, goes to the cache\n"
		"at once, whatever the mount's mode is. Until it is detached, deleted, or the file\n"
		"system is unmounted. Takes root.\n" RANGE_HELP,
	.options = range_options,
	.run = attach,
};

const struct verb verb_detach = {
	.name = "detach",
	.arguments = "FILE [RANGE]",
	.summary = "undo attach",
	.help = "Undoes `forebay attach`; pages stay in the cache until room is needed. Takes root.\n"
		RANGE_HELP,
	.options = range_options,
	.run = detach,
};

const struct verb verb_drop = {
	.name = "drop",
	.arguments = "[--json] FILE [RANGE]",
	.summary = "write a file back and take it out of the cache",
	.help = "Writes a file, or a range of it, back to the lower file system and takes its pages\n"
		"out of the cache. Exit status: 0 all gone, 4 some pages are pinned or in use by\n"
		"hardware and stay, 8 could not be done, 16 wrong usage.\n" RANGE_HELP
		"  --json              say in JSON how many pages were dropped, pinned, busy\n",
	.options = drop_options,
	.run = drop,
};
