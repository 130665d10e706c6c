/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the status verbs gather in JSON, and print from there.
 */
#ifndef FOREBAY_TOOLS_REPORT_H
#define FOREBAY_TOOLS_REPORT_H

#include <json-c/json.h>
#include <stdbool.h>

struct mapped;

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

#endif
