// SPDX-License-Identifier: GPL-2.0-only
/*
 * forebay transit status: the state of transit caches, gathered in JSON, and printed as JSON or as a
 * table.
 */
#include <stdio.h>
#include <string.h>

#include "base/message.h"
#include "mapped/holders.h"
#include "mapped/report.h"
#include "mapped/target.h"
#include "status.h"

/**
 * transit_gather - gather the state of a transit cache
 * @all: array to which an object is added
 * @name: of the mapped device
 * @mapped: what device-mapper says of it
 *
 * Return: false, after a message, if this command doesn't understand the target.
 */
bool transit_gather(void *all, const char *name, const struct mapped *mapped)
{
	struct target target = { .mapped = *mapped };
	json_object *json;

	if (!target_parse(&transit_kind, &target))
		return mapped_strange(name);
	json = json_object_new_object();
	json_add_text(json, "name", name);
	json_add_device(json, "device", target.below);
	json_add_number(json, "sectors", target.mapped.sectors);
	json_add_mapped(json, &target.mapped);
	json_add_text(json, "health", target.health);
	json_add_text(json, "policy", target.mode);
	json_add_number(json, "slots_used", target.pieces.used);
	json_add_number(json, "slots_total", target.pieces.total);
	json_object_object_add(json, "options", json_of_values(target.options));
	json_object_object_add(json, "values", json_of_values(target.values));
	json_object_array_add(all, json);
	return true;
}

static bool gather_one(json_object *all, const char *argument)
{
	char name[NAME_MAX + 1];
	struct mapped mapped;

	if (mapped_meant(argument, &transit_kind, name, &mapped))
		return transit_gather(all, name, &mapped);
	return mapped_find(mapped_name(argument), &transit_kind, &mapped);
}

static void print(json_object *cache)
{
	bool healthy = !strcmp(json_text(cache, "health"), "ok");
	char size[SIZE_TEXT];

	print_mapped_name(cache);
	row("device");
	print_line("%s, %s", json_text(cache, "device"), size_text(size, json_number(cache, "sectors") << 9));
	row("state");
	printf("%s%s%s, policy %s\n", style(stdout, healthy ? GREEN : RED), json_text(cache, "health"),
	       plain(stdout), json_text(cache, "policy"));
	row("used");
	printf("%llu of %llu slots\n", json_number(cache, "slots_used"), json_number(cache, "slots_total"));
	print_values(json_object_object_get(cache, "options"));
	print_values(json_object_object_get(cache, "values"));
	if (!healthy)
		puts("  The device refuses writes. They stay in the cache and are tried again; flushes fail. dmesg says more.");
}

static enum exit_status status(const struct verb *verb, int argc, char **argv)
{
	static const struct report report = { transit_gather, gather_one, print };

	return report_targets(verb, argc, argv, &report);
}

const struct verb verb_transit_status = {
	.name = "transit status",
	.arguments = "[--json] [NAME|DEVICE]...",
	.summary = "show what transit caches hold and do",
	.help = "Shows the transit caches that are in use, or those named, or those over the devices\n"
		"named.\n"
		"\n"
		"  --json              a JSON array with an object for each\n",
	.options = report_options,
	.kind = &transit_kind,
	.run = status,
};
