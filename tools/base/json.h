/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Shorthands for JSON objects. A verb gathers what it shows in objects, and prints these as JSON or as a
 * table.
 */
#ifndef FOREBAY_TOOLS_JSON_H
#define FOREBAY_TOOLS_JSON_H

#include <json-c/json.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

void json_add_text(struct json_object *json, const char *key, const char *text);
void json_add_number(struct json_object *json, const char *key, uint64_t number);
void json_add_flag(struct json_object *json, const char *key, bool flag);
const char *json_text(struct json_object *json, const char *key);
unsigned long long json_number(struct json_object *json, const char *key);
bool json_flag(struct json_object *json, const char *key);
void print_utf8(FILE *to, const char *text);
void print_json(struct json_object *json);
void print_json_line(struct json_object *json);
void row(const char *name);
void print_values(struct json_object *values);

#endif
