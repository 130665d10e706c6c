// SPDX-License-Identifier: GPL-2.0-only
/*
 * forebay drop: writes a file back and takes its pages out of the cache.
 */
#include <forebay.h>
#include <stdio.h>
#include <unistd.h>

#include "../core/store/format.h"
#include "base/json.h"
#include "base/message.h"
#include "base/progress.h"
#include "range.h"

enum { OPT_JSON = 1 };

static const struct option options[] = { { "json", no_argument, NULL, OPT_JSON }, OPTION_HELP, { } };

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

	print_name(path);
	printf(": %s dropped", size_text(size, result->dropped << PS_PAGE_SHIFT));
	if (result->pinned)
		printf(", %s pinned", size_text(size, result->pinned << PS_PAGE_SHIFT));
	if (result->busy)
		printf(", %s in use", size_text(size, result->busy << PS_PAGE_SHIFT));
	putchar('\n');
}

static enum exit_status drop(const struct verb *verb, int argc, char **argv)
{
	struct forebay_dropped result;
	struct progress progress;
	struct file_range range;
	enum exit_status status;
	bool json = false;
	int failed;

	while (next_option(verb, argc, argv) != -1)
		json = true;
	status = range_open(verb, argc, argv, &range);
	if (range.fd < 0)
		return status;
	progress_begin(&progress, range.path, "being written back");
	failed = forebay_drop(range.fd, range.offset, range.length, &result);
	progress_end(&progress);
	if (failed) {
		range_problem(verb->name, range.path);
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

const struct verb verb_drop = {
	.name = "drop",
	.arguments = "[--json] FILE [RANGE]",
	.summary = "write a file back and take it out of the cache",
	.help = "Writes a file, or a range of it, back to the lower file system and takes its pages\n"
		"out of the cache. Exit status: 0 all gone, 4 some pages are pinned or in use by\n"
		"hardware and stay, 8 could not be done, 16 wrong usage.\n" RANGE_HELP
		"  --json              say in JSON how many pages were dropped, pinned, busy\n",
	.options = options,
	.run = drop,
};
