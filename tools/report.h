/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the status verbs gather in JSON, and print from there.
 */
#ifndef FOREBAY_TOOLS_REPORT_H
#define FOREBAY_TOOLS_REPORT_H

#include <json-c/json.h>
#include <stdbool.h>

#include "mapped.h"

typedef void (*report_fn)(struct json_object *one);

struct report {
	mapped_each_fn gather;		/* what a target in use says, into the array */
	bool (*gather_one)(struct json_object *all, const char *argument);
	report_fn print;
};

extern const struct option report_options[];

void json_add_text(struct json_object *json, const char *key, const char *text);
void json_add_device(struct json_object *json, const char *key, const char *numbers);
void json_add_mapped(struct json_object *json, const struct mapped *mapped);
struct json_object *json_of_values(const char *line);
const char *json_text(struct json_object *json, const char *key);
unsigned long long json_number(struct json_object *json, const char *key);
bool json_flag(struct json_object *json, const char *key);
void row(const char *name);
void print_mapped_name(struct json_object *json);
void print_values(struct json_object *values);
enum exit_status report_targets(const struct verb *verb, int argc, char **argv, const struct report *report);

#endif
