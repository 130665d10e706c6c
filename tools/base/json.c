// SPDX-License-Identifier: GPL-2.0-only
/*
 * Shorthands for JSON objects, and for the rows of a table that is printed from one.
 */
#include <stdio.h>

#include "compiler.h"
#include "json.h"

/**
 * json_add_text - add a string to a JSON object
 * @json: the object
 * @key: its name there
 * @text: value
 */
void json_add_text(json_object *json, const char *key, const char *text)
{
	json_object_object_add(json, key, json_object_new_string(text));
}

/**
 * json_add_number - add a number to a JSON object
 * @json: the object
 * @key: its name there
 * @number: value
 */
void json_add_number(json_object *json, const char *key, uint64_t number)
{
	json_object_object_add(json, key, json_object_new_uint64(number));
}

/* Length of the UTF-8 sequence at @text; 0: its bytes are none. */
static int sequence(const unsigned char *text)
{
	static const struct {
		unsigned char first, last;	/* of the first byte */
		unsigned char from, to;		/* of the second one */
		int length;
	} kinds[] = {
		{ 0xc2, 0xdf, 0x80, 0xbf, 2 },
		{ 0xe0, 0xe0, 0xa0, 0xbf, 3 }, { 0xe1, 0xec, 0x80, 0xbf, 3 },
		{ 0xed, 0xed, 0x80, 0x9f, 3 }, { 0xee, 0xef, 0x80, 0xbf, 3 },
		{ 0xf0, 0xf0, 0x90, 0xbf, 4 }, { 0xf1, 0xf3, 0x80, 0xbf, 4 },
		{ 0xf4, 0xf4, 0x80, 0x8f, 4 },
	};
	size_t i = 0;

	if (*text < 0x80)
		return 1;
	while (i < ARRAY_SIZE(kinds) && (*text < kinds[i].first || *text > kinds[i].last))
		i++;
	if (i == ARRAY_SIZE(kinds) || text[1] < kinds[i].from || text[1] > kinds[i].to)
		return 0;
	for (int n = 2; n < kinds[i].length; n++)
		if ((text[n] & 0xc0) != 0x80)
			return 0;
	return kinds[i].length;
}

/**
 * print_utf8 - print text that must be UTF-8, though a path in it may be any bytes
 * @to: where
 * @text: a byte that is not UTF-8 is printed as U+FFFD
 */
void print_utf8(FILE *to, const char *text)
{
	int length;

	for (; *text; text += length ?: 1) {
		length = sequence((const unsigned char *)text);
		if (length)
			fwrite(text, 1, length, to);
		else
			fputs("\xef\xbf\xbd", to);
	}
}

static void print_with(json_object *json, int flags)
{
	print_utf8(stdout, json_object_to_json_string_ext(json, flags | JSON_C_TO_STRING_NOSLASHESCAPE));
	putchar('\n');
	json_object_put(json);
}

/**
 * print_json - print a JSON value to standard output, and release it
 * @json: value
 */
void print_json(json_object *json)
{
	print_with(json, JSON_C_TO_STRING_PRETTY | JSON_C_TO_STRING_SPACED);
}

/**
 * print_json_line - print a JSON value to standard output in one line, and release it
 * @json: value
 */
void print_json_line(json_object *json)
{
	print_with(json, JSON_C_TO_STRING_PLAIN);
}

/**
 * json_add_flag - add a boolean to a JSON object
 * @json: the object
 * @key: its name there
 * @flag: value
 */
void json_add_flag(json_object *json, const char *key, bool flag)
{
	json_object_object_add(json, key, json_object_new_boolean(flag));
}

/**
 * json_text - the string with a key
 * @json: the object, which keeps the string
 * @key: its name there
 *
 * Return: NULL if there is none.
 */
const char *json_text(json_object *json, const char *key)
{
	return json_object_get_string(json_object_object_get(json, key));
}

/**
 * json_number - the number with a key
 * @json: the object
 * @key: its name there
 *
 * Return: 0 if there is none.
 */
unsigned long long json_number(json_object *json, const char *key)
{
	return json_object_get_uint64(json_object_object_get(json, key));
}

/**
 * json_flag - the boolean with a key
 * @json: the object
 * @key: its name there
 *
 * Return: false if there is none.
 */
bool json_flag(json_object *json, const char *key)
{
	return json_object_get_boolean(json_object_object_get(json, key));
}

/**
 * row - begin a row of a table
 * @name: in the first column
 */
void row(const char *name)
{
	printf("  %-12s ", name);
}

/**
 * print_values - print every key and value of an object, one a row
 * @values: the object
 */
void print_values(json_object *values)
{
	json_object_object_foreach(values, key, value)
		printf("  %-24s %s\n", key, json_object_get_string(value));
}
