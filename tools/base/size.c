// SPDX-License-Identifier: GPL-2.0-only
/*
 * Reads numbers of bytes, and ranges, from the command line.
 */
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "size.h"

/* The number at the head of @text; @end is set behind the number and its unit. */
static bool size_before(const char *text, char **end, uint64_t *size)
{
	static const char units[] = "kmgt";
	bool hex = text[0] == '0' && (text[1] | 0x20) == 'x';	/* a leading 0 alone doesn't mean octal */
	const char *unit;
	int shift;

	/* strtoull() takes blanks and a sign before the number. */
	if (!isdigit((unsigned char)*text))
		return false;
	errno = 0;
	*size = strtoull(text, end, hex ? 16 : 10);
	if (errno)
		return false;
	unit = **end ? strchr(units, **end | 0x20) : NULL;
	if (!unit)
		return true;
	shift = 10 * (unit - units + 1);
	++*end;
	if (*size > UINT64_MAX >> shift)
		return false;
	*size <<= shift;
	return true;
}

/**
 * size_parse - read a number of bytes from the command line
 * @text: the number, optionally followed by k, m, g or t
 * @size: filled in
 *
 * Return: false if @text is no such number.
 */
bool size_parse(const char *text, __u64 *size)
{
	uint64_t bytes;
	char *end;

	if (!size_before(text, &end, &bytes) || *end)
		return false;
	*size = bytes;
	return true;
}

/**
 * range_parse - read a range from the command line
 * @text: OFFSET or OFFSET:LENGTH; k, m, g or t may follow a number
 * @offset: filled in, in bytes
 * @length: filled in; 0: up to the end
 *
 * Return: false if @text is no range.
 */
bool range_parse(const char *text, uint64_t *offset, uint64_t *length)
{
	char *end;

	*length = 0;
	if (!size_before(text, &end, offset))
		return false;
	if (!*end)
		return true;
	return *end == ':' && size_before(end + 1, &end, length) && !*end && *length;
}
