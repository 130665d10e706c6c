/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the status verbs of both nouns gather in JSON, and print.
 */
#ifndef FOREBAY_TOOLS_REPORT_H
#define FOREBAY_TOOLS_REPORT_H

#include "base/json.h"
#include "mapped.h"

typedef void (*report_fn)(struct json_object *one);

struct report {
	mapped_each_fn gather;		/* adds what a target says to the array @arg */
	bool (*gather_one)(struct json_object *all, const char *argument);
	report_fn print;
};

extern const struct option report_options[];

void json_add_device(struct json_object *json, const char *key, const char *numbers);
void json_add_mapped(struct json_object *json, const struct mapped *mapped);
struct json_object *json_of_values(const char *line);
void print_mapped_name(struct json_object *json);
enum exit_status report_targets(const struct verb *verb, int argc, char **argv, const struct report *report);

#endif
