// SPDX-License-Identifier: GPL-2.0-only
/*
 * What the verbs on ranges of files share: parsing FILE [RANGE], and explaining a refusal.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/message.h"
#include "base/shell.h"
#include "base/size.h"
#include "range.h"

static bool is_immutable(const char *path)
{
	struct statx stx;

	return !statx(AT_FDCWD, path, 0, 0, &stx) && (stx.stx_attributes & STATX_ATTR_IMMUTABLE);
}

static void say_no_room(const char *path)
{
	problem("%s: cannot pin so many pages", path);
	advice("The limit (mount option pin_limit), the cache, or its table of files is full: see `forebay status`.");
}

/**
 * range_problem - say why the kernel refused a change of a range
 * @verb: name of the verb
 * @path: the file
 *
 * errno has the reason.
 */
void range_problem(const char *verb, const char *path)
{
	int err = errno;

	if (!strcmp(verb, "pin") && err == ENOMEM) {
		say_no_room(path);
		return;
	}
	switch (err) {
	case ENOTTY:
		problem("%s is not on a forebay mount", path);
		advice("`forebay status` lists the mounts.");
		break;
	case EPERM:
		if (!strcmp(verb, "drop")) {
			problem("%s: only its owner, and users who may write it, may drop its pages", path);
		} else if (geteuid() || !is_immutable(path)) {
			problem("%s: only root may %s for all users (this needs CAP_SYS_ADMIN)", path, verb);
		} else {
			problem("%s is immutable: its pages could not be written back", path);
			advice("`chattr -i %s` first.", in_shell(path));
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

/**
 * range_open - parse FILE [RANGE], and open the file
 * @verb: the verb
 * @argc: of the verb
 * @argv: of the verb
 * @range: filled in; its fd is -1 on failure
 *
 * Return: DONE; or, after a message, the status that the verb ends with.
 */
enum exit_status range_open(const struct verb *verb, int argc, char **argv, struct file_range *range)
{
	range->fd = -1;
	if (argc - optind < 1 || argc - optind > 2)
		return usage_problem(verb, "expected a file, and optionally a range of it");
	range->path = argv[optind];
	range->offset = 0;
	range->length = 0;
	if (argc - optind == 2 && !range_parse(argv[optind + 1], &range->offset, &range->length))
		return usage_problem(verb, "invalid range '%s': expected OFFSET:LENGTH, such as 4k:8M",
				     argv[optind + 1]);
	range->fd = open(range->path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	if (range->fd >= 0)
		return DONE;
	problem("cannot open %s: %s", range->path, strerror(errno));
	return FAILED;
}
