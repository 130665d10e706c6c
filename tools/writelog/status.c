// SPDX-License-Identifier: GPL-2.0-only
/*
 * forebay writelog status: the state of write logs, of those in use from their target, of others from the
 * device. The state is gathered in JSON, and printed as JSON or as a table.
 */
#include <string.h>
#include <sys/stat.h>

#include "base/message.h"
#include "base/shell.h"
#include "base/verb.h"
#include "device/log.h"
#include "mapped/holders.h"
#include "mapped/report.h"
#include "mapped/target.h"
#include "sys/sysfs.h"
#include "status.h"

/* The origin's name is no option that a user types. It is shown as text, apart from the options. */
static void add_options(json_object *json, const struct target *target)
{
	json_object *all = json_of_values(target->options);
	const char *hex = json_text(all, "origin_id");
	char text[2 * WL_ORIGIN_ID_SIZE + 1];
	u8 id[WL_ORIGIN_ID_SIZE] = { };

	for (size_t i = 0; hex && i < sizeof(id) && sscanf(hex + 2 * i, "%2hhx", &id[i]) == 1; i++)
		;
	json_add_text(json, "origin_id", log_origin(text, id));
	json_object_object_del(all, "origin_id");
	json_object_object_add(json, "options", all);
}

/* Adds what only the superblock has, and not the target. */
static bool add_log(json_object *json)
{
	struct device dev;
	char uuid[37];
	struct wl wl;
	bool good;

	if (!device_open(&dev, json_text(json, "device"), DEVICE_SHARED))
		return false;
	good = log_open(&wl, &dev);
	if (good)
		json_add_text(json, "uuid", uuid_text(uuid, wl.super.uuid));
	json_add_flag(json, "volatile_log", disk_is_volatile(dev.rdev));
	device_close(&dev);
	return good;
}

/**
 * writelog_gather - gather the state of a write log in use
 * @all: array to which an object is added
 * @name: of the mapped device
 * @mapped: what device-mapper says of it
 *
 * Return: false, after a message, if the target or its log can't be read.
 */
bool writelog_gather(void *all, const char *name, const struct mapped *mapped)
{
	struct target target = { .mapped = *mapped };
	json_object *json;

	if (!target_parse(&writelog_kind, &target))
		return mapped_strange(name);
	json = json_object_new_object();
	json_add_text(json, "name", name);
	json_add_flag(json, "in_use", true);
	json_add_device(json, "device", target.log);
	json_add_device(json, "origin", target.below);
	json_add_number(json, "origin_sectors", target.mapped.sectors);
	json_add_mapped(json, &target.mapped);
	json_add_text(json, "health", target.health);
	json_add_text(json, "mode", target.mode);
	json_add_number(json, "generations_used", target.pieces.used);
	json_add_number(json, "generations_total", target.pieces.total);
	json_add_number(json, "bytes_used", target.bytes.used);
	json_add_number(json, "bytes_total", target.bytes.total);
	add_options(json, &target);
	json_object_object_add(json, "values", json_of_values(target.values));
	json_object_array_add(all, json);
	return add_log(json);
}

static bool gather_log(json_object *all, const char *path)
{
	struct log_counts counts;
	struct device dev;
	struct wl wl;
	bool good;

	if (!device_open(&dev, path, 0))
		return false;
	good = log_open(&wl, &dev) && log_count(path, &wl, &counts);
	if (good) {
		json_object *json = json_object_new_object();

		json_add_flag(json, "in_use", false);
		json_add_text(json, "device", path);
		log_describe(&wl, &counts, json);
		json_object_array_add(all, json);
	}
	device_close(&dev);
	return good;
}

/* @argument means a mapped device, or a device or image that no target uses. */
static bool gather_one(json_object *all, const char *argument)
{
	char name[NAME_MAX + 1];
	struct mapped mapped;
	struct stat st;

	if (mapped_meant(argument, &writelog_kind, name, &mapped))
		return writelog_gather(all, name, &mapped);
	if (!stat(argument, &st))
		return gather_log(all, argument);
	problem("%s is neither a device with a write log nor a file", argument);
	advice("`forebay writelog status` lists those in use.");
	return false;
}

/* The counters tell whether the origin or the log fails, unless both have errors. */
static void print_error(json_object *log)
{
	json_object *values = json_object_object_get(log, "values");
	bool origin = json_number(values, "origin_errors"), medium = json_number(values, "medium_errors");

	if (json_number(values, "refused"))
		printf("  The origin refuses %llu blocks; dmesg says which. The others are written back.\n",
		       json_number(values, "refused"));
	else if (origin && !medium)
		puts("  The origin refuses writes.");
	else if (medium && !origin)
		puts("  What is damaged in the log cannot be written back, nor what is newer.");
	else
		puts("  The origin refuses writes, or the log is damaged: dmesg says which.");
	printf("  %s in the log, safe from a power cut, and tried again; dmesg says more.\n",
	       medium ? "What is whole is kept" : "Writes are kept");
}

/* Whether writers can't get any other generation. One of more than two is kept for refused blocks. */
static bool is_exhausted(json_object *log)
{
	unsigned long long total = json_number(log, "generations_total");

	return json_number(json_object_object_get(log, "values"), "broken") >= total - (total > 2);
}

static void print_health(json_object *log)
{
	json_object *values = json_object_object_get(log, "values");
	const char *health = json_text(log, "health");

	if (is_exhausted(log))
		puts("  The log's memory can't hold what is written: writes are refused. What is in the log is written back.");
	else if (strcmp(health, "ok"))
		print_error(log);
	if (!strcmp(health, "failed") && !is_exhausted(log))
		puts("  That has lasted for error_timeout seconds: writes are refused once the log is full.");
	if (json_number(values, "medium_errors"))
		printf("  %sThe log has been found damaged%s (medium_errors). Which sectors, if that is known, dmesg says.\n"
		       "  Copy the device (dd); `remove --no-flush`, then `forebay writelog check %s` tells more.\n",
		       style(stdout, RED), plain(stdout), in_shell(json_text(log, "device")));
	if (json_number(values, "lost_reads"))
		printf("  %sReads have failed%s (lost_reads), since what they asked for is damaged in the log. dmesg\n"
		       "  has the sectors: write these again, or restore the files they belong to.\n",
		       style(stdout, RED), plain(stdout));
	if (json_flag(log, "volatile_log"))
		printf("  %sThe log is ordinary memory%s: what it holds goes with the power. For trying things out only.\n",
		       style(stdout, RED), plain(stdout));
}

static void print_target(json_object *log)
{
	bool healthy = !strcmp(json_text(log, "health"), "ok");
	char size[SIZE_TEXT], total[SIZE_TEXT];

	print_mapped_name(log);
	row("log");
	print_line("%s, UUID %s", json_text(log, "device"), json_text(log, "uuid") ?: "not known");
	row("origin");
	print_line("%s, %s%s%s", json_text(log, "origin"),
		   size_text(size, json_number(log, "origin_sectors") << 9),
		   *json_text(log, "origin_id") ? ", " : "", json_text(log, "origin_id"));
	row("state");
	printf("%s%s%s, mode %s\n", style(stdout, healthy ? GREEN : RED), json_text(log, "health"),
	       plain(stdout), json_text(log, "mode"));
	row("used");
	printf("%s of %s, %llu of %llu generations\n", size_text(size, json_number(log, "bytes_used")),
	       size_text(total, json_number(log, "bytes_total")), json_number(log, "generations_used"),
	       json_number(log, "generations_total"));
	print_values(json_object_object_get(log, "options"));
	print_values(json_object_object_get(log, "values"));
	print_health(log);
}

static void print_log(json_object *log)
{
	char size[SIZE_TEXT], total[SIZE_TEXT];

	fputs(style(stdout, BOLD), stdout);
	print_name(json_text(log, "device"));
	printf("%s\n  not in use\n", plain(stdout));
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
	if (json_number(log, "damaged")) {
		printf("  %sDamaged%s: ", style(stdout, RED), plain(stdout));
		printf("`forebay writelog check %s` tells more.\n", in_shell(json_text(log, "device")));
	} else if (json_number(log, "entries")) {
		puts("  The origin lacks them: use the two together again before anything else writes to it.");
	}
}

static void print(json_object *log)
{
	if (json_flag(log, "in_use"))
		print_target(log);
	else
		print_log(log);
}

static enum exit_status status(const struct verb *verb, int argc, char **argv)
{
	static const struct report report = { writelog_gather, gather_one, print };

	return report_targets(verb, argc, argv, &report);
}

const struct verb verb_writelog_status = {
	.name = "writelog status",
	.arguments = "[--json] [NAME|DEVICE|IMAGE]...",
	.summary = "show what write logs hold and do",
	.help = "Shows the write logs that are in use, or those named by their mapped device, their\n"
		"log or their origin. A log that no target uses is read from its device or image.\n"
		"\n"
		"  --json              a JSON array with an object for each log\n",
	.options = report_options,
	.kind = &writelog_kind,
	.run = status,
};
