// SPDX-License-Identifier: GPL-2.0-only
/*
 * forebay writelog latency, transit latency: how long the steps of a target take.
 *
 * A target answers with one line for each step: its name, and what base/latency.c reads.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/latency.h"
#include "base/message.h"
#include "mapped.h"

enum { OPT_JSON = 1 };

static const struct option options[] = {
	{ "json", no_argument, NULL, OPT_JSON },
	OPTION_HELP,
	{ }
};

static void take_line(const char *line, json_object *all)
{
	json_object *one;
	char step[32];

	if (sscanf(line, "%31s", step) != 1)
		return;
	one = json_object_new_object();
	json_add_text(one, "step", step);
	latency_add(one, line + strcspn(line, " "));
	json_object_array_add(all, one);
}

static void print(json_object *all)
{
	printf("%-16s %12s %12s %12s %12s %12s\n", "step", "times", "mean us", "50 % <us", "99 % <us", "max <us");
	for (size_t i = 0; i < json_object_array_length(all); i++) {
		json_object *one = json_object_array_get_idx(all, i);
		unsigned long long count = json_number(one, "count");

		if (count)
			printf("%-16s %12llu %12.1f %12.1f %12.1f %12.1f\n", json_text(one, "step"), count,
			       json_number(one, "ns") / 1e3 / count, latency_percentile(one, 50) / 1e3,
			       latency_percentile(one, 99) / 1e3, latency_percentile(one, 100) / 1e3);
		else
			printf("%-16s %12d\n", json_text(one, "step"), 0);
	}
}

static enum exit_status say_failed(const char *name, int err)
{
	problem("%s: cannot measure latency: %s", name, strerror(err));
	advice("Are the command and the module of the same version? dmesg may say more.");
	return FAILED;
}

static enum exit_status show_measured(const char *name, bool json)
{
	json_object *all = json_object_new_array();
	char *answer, *save = NULL;
	int err = mapped_message(name, "latency show", &answer);

	if (err) {
		json_object_put(all);
		return say_failed(name, err);
	}
	for (char *line = strtok_r(answer, "\n", &save); line; line = strtok_r(NULL, "\n", &save))
		take_line(line, all);
	free(answer);
	if (json) {
		print_json(all);
		return DONE;
	}
	print(all);
	json_object_put(all);
	return DONE;
}

static enum exit_status measure(const char *name, bool on)
{
	int err = mapped_message(name, on ? "latency on" : "latency off", NULL);

	return err ? say_failed(name, err) : DONE;
}

static enum exit_status latency(const struct verb *verb, int argc, char **argv)
{
	struct mapped mapped;
	bool json = false;
	const char *name;

	while (next_option(verb, argc, argv) != -1)
		json = true;
	if (argc == optind || argc - optind > 2)
		return usage_problem(verb, "expected the name of one mapped device");
	if (argc - optind == 2 && strcmp(argv[optind + 1], "on") && strcmp(argv[optind + 1], "off"))
		return usage_problem(verb, "%s: expected on or off, or nothing to show what was measured",
				     argv[optind + 1]);
	name = mapped_name(argv[optind]);
	if (!mapped_find(name, verb->kind, &mapped))
		return FAILED;
	if (argc - optind == 2)
		return measure(name, !strcmp(argv[optind + 1], "on"));
	return show_measured(name, json);
}

#define HELP \
	"Shows how long each step took while it was measured: how often, the mean, and below\n" \
	"what time half of all, 99 of 100, and all were. At first nothing is measured, since\n" \
	"that takes two clock readings a step.\n" \
	"\n" \
	"  on, off             measure from now on, or no longer\n" \
	"  --json              a JSON array with an object for each step\n"

const struct verb verb_writelog_latency = {
	.name = "writelog latency",
	.arguments = "[--json] NAME [on|off]",
	.summary = "measure how long the steps of a write log take",
	.help = HELP,
	.options = options,
	.kind = &writelog_kind,
	.run = latency,
};

const struct verb verb_transit_latency = {
	.name = "transit latency",
	.arguments = "[--json] NAME [on|off]",
	.summary = "measure how long the steps of a transit cache take",
	.help = HELP,
	.options = options,
	.kind = &transit_kind,
	.run = latency,
};
