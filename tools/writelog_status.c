// SPDX-License-Identifier: GPL-2.0-only
/*
 * forebay writelog status: the state of write logs, of those in use from their
 * target, of others from the device itself. All of it is gathered in JSON first;
 * people get a table of that.
 */
#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "message.h"
#include "report.h"
#include "verb.h"
#include "writelog_log.h"
#include "writelog_target.h"

enum { OPT_JSON = 1 };

static const struct option options[] = {
	{ "json", no_argument, NULL, OPT_JSON },
	OPTION_HELP,
	{ }
};

static bool gather_target(void *arg, const char *name, const struct mapped *mapped)
{
	struct writelog_target target = { .mapped = *mapped };
	json_object *json;

	if (!target_parse(&target))
		return mapped_strange(name);
	json = json_object_new_object();
	json_add_text(json, "name", name);
	json_object_object_add(json, "in_use", json_object_new_boolean(true));
	json_add_device(json, "device", target.log);
	json_add_device(json, "origin", target.origin);
	json_add_number(json, "origin_sectors", target.mapped.sectors);
	json_add_mapped(json, &target.mapped);
	json_add_text(json, "health", target.health);
	json_add_text(json, "mode", target.mode);
	json_add_number(json, "generations_used", target.generations_used);
	json_add_number(json, "generations_total", target.generations_total);
	json_add_number(json, "bytes_used", target.bytes_used);
	json_add_number(json, "bytes_total", target.bytes_total);
	json_object_object_add(json, "values", json_of_values(target.values));
	json_object_array_add(arg, json);
	return true;
}

static bool gather_log(json_object *all, const char *path)
{
	struct log_counts counts;
	struct device dev;
	struct wl wl;
	bool good;

	if (!device_open(&dev, path, 0))
		return false;
	good = log_open(&wl, &dev) && log_count(&wl, &counts);
	if (good) {
		json_object *json = json_object_new_object();

		json_object_object_add(json, "in_use", json_object_new_boolean(false));
		json_add_text(json, "device", path);
		log_describe(&wl, &counts, json);
		json_object_array_add(all, json);
	}
	device_close(&dev);
	return good;
}

/* The name of a mapped device, its node, or a device or image that no target uses. */
static bool gather_one(json_object *all, const char *argument)
{
	const char *name = mapped_name(argument);
	struct mapped mapped;
	struct stat st;

	if (!strchr(name, '/') && mapped_read(name, WRITELOG_TARGET, &mapped))
		return gather_target(all, name, &mapped);
	if (!stat(argument, &st))
		return gather_log(all, argument);
	problem("%s is neither a device with a write log nor a file", argument);
	advice("`forebay writelog status` lists those in use.");
	return false;
}

static void print_target(json_object *log)
{
	bool healthy = !strcmp(json_text(log, "health"), "ok");
	char size[SIZE_TEXT], total[SIZE_TEXT];

	print_mapped_name(log);
	row("log");
	puts(json_text(log, "device"));
	row("origin");
	printf("%s, %s\n", json_text(log, "origin"),
	       size_text(size, json_number(log, "origin_sectors") << 9));
	row("state");
	printf("%s%s%s, mode %s\n", style(stdout, healthy ? GREEN : RED), json_text(log, "health"),
	       plain(stdout), json_text(log, "mode"));
	row("used");
	printf("%s of %s, %llu of %llu generations\n", size_text(size, json_number(log, "bytes_used")),
	       size_text(total, json_number(log, "bytes_total")), json_number(log, "generations_used"),
	       json_number(log, "generations_total"));
	print_values(json_object_object_get(log, "values"));
	if (!strcmp(json_text(log, "health"), "error"))
		puts("  The origin refuses writes. They stay in the log, safe, and are tried again; dmesg says more.");
	if (!strcmp(json_text(log, "health"), "failed"))
		puts("  The log has failed: writes are refused. dmesg says why.");
}

static void print_log(json_object *log)
{
	char size[SIZE_TEXT], total[SIZE_TEXT];

	printf("%s%s%s\n  not in use\n", style(stdout, BOLD), json_text(log, "device"), plain(stdout));
	row("log");
	printf("%s in %llu generations of %llu chunks, UUID %s\n",
	       size_text(total, json_number(log, "bytes_total")), json_number(log, "generations_total"),
	       json_number(log, "chunks_per_generation"), json_text(log, "uuid"));
	row("origin");
	if (json_flag(log, "bound"))
		printf("%s%s%s\n", size_text(size, json_number(log, "origin_sectors") << 9),
		       *json_text(log, "origin_id") ? ", " : "", json_text(log, "origin_id"));
	else
		puts("none yet");
	row("holds");
	printf("%llu write%s (%s), %llu discard%s\n", json_number(log, "writes"),
	       PLURAL(json_number(log, "writes")), size_text(size, json_number(log, "bytes_used")),
	       json_number(log, "discards"), PLURAL(json_number(log, "discards")));
	if (json_number(log, "damaged"))
		printf("  %sDamaged%s: `forebay writelog check %s` tells more.\n",
		       style(stdout, RED), plain(stdout), json_text(log, "device"));
	else if (json_number(log, "entries"))
		puts("  The origin lacks them: use the two together again before anything else writes to it.");
}

static void print(json_object *all)
{
	size_t n = json_object_array_length(all);

	for (size_t i = 0; i < n; i++) {
		json_object *log = json_object_array_get_idx(all, i);

		if (i)
			putchar('\n');
		if (json_flag(log, "in_use"))
			print_target(log);
		else
			print_log(log);
	}
}

static enum exit_status status(const struct verb *verb, int argc, char **argv)
{
	json_object *all = json_object_new_array();
	bool json = false, good = true;

	while (next_option(verb, argc, argv) != -1)
		json = true;
	for (int i = optind; i < argc; i++)
		good = gather_one(all, argv[i]) && good;
	if (optind == argc)
		good = mapped_each(WRITELOG_TARGET, gather_target, all);
	if (!json && good && !json_object_array_length(all))
		puts("No write log is in use.");
	if (json) {
		print_json(all);
	} else {
		print(all);
		json_object_put(all);
	}
	return good ? DONE : FAILED;
}

const struct verb verb_writelog_status = {
	.name = "writelog status",
	.arguments = "[--json] [NAME|DEVICE|IMAGE]...",
	.summary = "show what write logs hold and do",
	.help = "Shows the write logs that are in use, or those named by their mapped device. A log\n"
		"that no target uses is read from its device or image.\n"
		"\n"
		"  --json              a JSON array with an object for each log\n",
	.options = options,
	.run = status,
};
