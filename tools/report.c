// SPDX-License-Identifier: GPL-2.0-only
/* What the status verbs gather in JSON, and print from there. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mapped.h"
#include "message.h"
#include "report.h"
#include "sysfs.h"

enum { OPT_JSON = 1 };

const struct option report_options[] = {
	{ "json", no_argument, NULL, OPT_JSON },
	OPTION_HELP,
	{ }
};

void json_add_text(json_object *json, const char *key, const char *text)
{
	json_object_object_add(json, key, json_object_new_string(text));
}

/* "8:0" becomes "/dev/sda". */
void json_add_device(json_object *json, const char *key, const char *numbers)
{
	char path[PATH_MAX];

	disk_path(numbers, path);
	json_add_text(json, key, path);
}

/* What device-mapper knows of any target's device. */
void json_add_mapped(json_object *json, const struct mapped *mapped)
{
	json_object_object_add(json, "suspended", json_object_new_boolean(mapped->suspended));
	json_add_number(json, "open_count", mapped->open_count);
}

/* "key value key value", numbers as numbers; what is longer than these is a text, though of digits alone. */
struct json_object *json_of_values(const char *line)
{
	char copy[MAPPED_TEXT], *save = NULL, *key, *value, *end;
	json_object *json = json_object_new_object();

	snprintf(copy, sizeof(copy), "%s", line);
	for (key = strtok_r(copy, " ", &save); key; key = strtok_r(NULL, " ", &save)) {
		unsigned long long n;

		value = strtok_r(NULL, " ", &save);
		if (!value)
			break;
		n = strtoull(value, &end, 10);
		json_object_object_add(json, key, !*end && strlen(value) < 20 ? json_object_new_uint64(n) :
				       json_object_new_string(value));
	}
	return json;
}

const char *json_text(json_object *json, const char *key)
{
	return json_object_get_string(json_object_object_get(json, key));
}

unsigned long long json_number(json_object *json, const char *key)
{
	return json_object_get_uint64(json_object_object_get(json, key));
}

bool json_flag(json_object *json, const char *key)
{
	return json_object_get_boolean(json_object_object_get(json, key));
}

void row(const char *name)
{
	printf("  %-12s ", name);
}

/* As a heading. */
void print_mapped_name(json_object *json)
{
	printf("%s%s%s%s\n", style(stdout, BOLD), json_text(json, "name"), plain(stdout),
	       json_flag(json, "suspended") ? " (suspended)" : "");
}

void print_values(json_object *values)
{
	json_object_object_foreach(values, key, value)
		printf("  %-24s %s\n", key, json_object_get_string(value));
}

static void print_all(json_object *all, report_fn print)
{
	for (size_t i = 0; i < json_object_array_length(all); i++) {
		if (i)
			putchar('\n');
		print(json_object_array_get_idx(all, i));
	}
}

/**
 * report_targets - what `status` of a noun does, whose options are report_options
 * @verb: of that noun, with its kind
 * @argc: of the verb
 * @argv: of the verb
 * @report: gathers objects in a JSON array, and prints them
 */
enum exit_status report_targets(const struct verb *verb, int argc, char **argv, const struct report *report)
{
	json_object *all = json_object_new_array();
	bool json = false, good = true;

	while (next_option(verb, argc, argv) != -1)
		json = true;
	for (int i = optind; i < argc; i++)
		good = report->gather_one(all, argv[i]) && good;
	if (optind == argc)
		good = mapped_each(verb->kind, report->gather, all);
	if (json) {
		print_json(all);
		return good ? DONE : FAILED;
	}
	if (good && !json_object_array_length(all))
		printf("No %s is in use.\n", verb->kind->what);
	print_all(all, report->print);
	json_object_put(all);
	return good ? DONE : FAILED;
}
