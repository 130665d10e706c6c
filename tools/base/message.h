/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * How the command talks: problems and advice on standard error, sizes in readable units, colour only on a
 * terminal.
 */
#ifndef FOREBAY_TOOLS_MESSAGE_H
#define FOREBAY_TOOLS_MESSAGE_H

#include <stdarg.h>
#include <stdbool.h>
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

bool reserve_standard_streams(void);
void message_set_verb(const char *name);
size_t control_length(const char *text);
char *make_harmless(char *text);
char *text_about(const char *name, const char *format, va_list args);
void print_name(const char *name);
void print_line(const char *format, ...) __printf(1, 2);
void print_of(const char *name, const char *format, ...) __printf(2, 3);
void problem(const char *format, ...) __printf(1, 2);
bool output_written(void);
void advice(const char *format, ...) __printf(1, 2);
const char *lower_advice(int err);

bool is_screen(FILE *to);
const char *style(FILE *to, const char *sgr);
const char *plain(FILE *to);
const char *size_text(char text[SIZE_TEXT], uint64_t bytes);

#endif
