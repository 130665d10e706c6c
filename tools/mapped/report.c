// SPDX-License-Identifier: GPL-2.0-only
/*
 * What the status verbs of both nouns gather in JSON, and print.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/message.h"
#include "sys/sysfs.h"
#include "mapped.h"
#include "report.h"

enum { OPT_JSON = 1 };

const struct option report_options[] = {
	{ "json", no_argument, NULL, OPT_JSON },
	OPTION_HELP,
	{ }
};

/**
 * json_add_device - add the path of a block device to a JSON object
 * @json: the object
 * @key: its name there
 * @numbers: "8:0" for /dev/sda, for example
 */
void json_add_device(json_object *json, const char *key, const char *numbers)
{
	char path[PATH_MAX];

	disk_path(numbers, path);
	json_add_text(json, key, path);
}

/**
 * json_add_mapped - add what device-mapper knows of a mapped device
 * @json: the object to add it to
 * @mapped: the device
 */
void json_add_mapped(json_object *json, const struct mapped *mapped)
{
	json_add_flag(json, "suspended", mapped->suspended);
	json_add_number(json, "open_count", mapped->open_count);
}

/**
 * json_of_values - the options or counters at the end of a line, as a JSON object
 * @line: "key value key value"
 *
 * A value of digits becomes a number, unless it has too many of them for one.
 *
 * Return: the object.
 */
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

/**
 * print_mapped_name - print the name of a mapped device as a heading
 * @json: the object that was gathered
 */
void print_mapped_name(json_object *json)
{
	fputs(style(stdout, BOLD), stdout);
	print_name(json_text(json, "name"));
	printf("%s%s\n", plain(stdout), json_flag(json, "suspended") ? " (suspended)" : "");
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
 * report_targets - run the verb `status` of a noun
 * @verb: of that noun, with its kind; its options are report_options
 * @argc: of the verb
 * @argv: of the verb
 * @report: how to gather objects in a JSON array, and to print them
 *
 * An empty array means that there is nothing, so it isn't printed where nothing could be read.
 *
 * Return: DONE, or FAILED after a message.
 */
enum exit_status report_targets(const struct verb *verb, int argc, char **argv, const struct report *report)
{
	json_object *all = json_object_new_array();
	bool json = false, good = true, any;

	while (next_option(verb, argc, argv) != -1)
		json = true;
	for (int i = optind; i < argc; i++)
		good = report->gather_one(all, argv[i]) && good;
	if (optind == argc)
		good = mapped_each(verb->kind, report->gather, all);
	any = json_object_array_length(all);
	if (json && (good || any)) {
		print_json(all);
		return good ? DONE : FAILED;
	}
	if (good && !any)
		printf("No %s is in use.\n", verb->kind->what);
	print_all(all, report->print);
	json_object_put(all);
	return good ? DONE : FAILED;
}
