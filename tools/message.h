/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * How the command talks: problems and advice on standard error, sizes in units
 * that people read, colour only where a terminal wants it.
 */
#ifndef FOREBAY_TOOLS_MESSAGE_H
#define FOREBAY_TOOLS_MESSAGE_H

#include <json-c/json.h>
#include <stdint.h>
#include <stdio.h>

#include "compiler.h"

#define RED	"31;1"
#define GREEN	"32"
#define YELLOW	"33"
#define BOLD	"1"

/* "1 page", "3 pages": printf("%u page%s", n, PLURAL(n)) */
#define PLURAL(n)	((n) == 1 ? "" : "s")

#define SIZE_TEXT	24

void message_set_verb(const char *name);
void problem(const char *format, ...) __printf(1, 2);
void advice(const char *format, ...) __printf(1, 2);
const char *lower_advice(int err);

const char *style(FILE *to, const char *sgr);
const char *plain(FILE *to);
const char *size_text(char text[SIZE_TEXT], uint64_t bytes);
void json_add_number(json_object *json, const char *key, uint64_t number);
void print_json(json_object *json);
void print_conclusion(const char *path, unsigned long long found);
void print_superblock_finding(const char *path, const char *key, const char *text);

#endif
