// SPDX-License-Identifier: GPL-2.0-only
/*
 * Text by the columns that it takes on a terminal. A character may have several bytes, and take no column or
 * two.
 */
#include <string.h>
#include <wchar.h>

#include "columns.h"

/* Length of the character at the head of @text, and its width. A byte that is none takes one column. */
static size_t character(const char *text, int *width)
{
	mbstate_t state = { };
	wchar_t wide;
	size_t length = mbrtowc(&wide, text, strlen(text), &state);

	if (length == (size_t)-1 || length == (size_t)-2) {
		*width = 1;
		return 1;
	}
	*width = wcwidth(wide) < 0 ? 1 : wcwidth(wide);
	return length;
}

/**
 * columns_before - how much of a text fits some columns
 * @text: without control characters
 * @most: columns
 * @bytes: set to the length of what fits, in whole characters
 *
 * Return: the columns that this takes.
 */
int columns_before(const char *text, int most, size_t *bytes)
{
	int width, sum = 0;
	size_t length;

	for (*bytes = 0; text[*bytes]; *bytes += length) {
		length = character(text + *bytes, &width);
		if (sum + width > most)
			break;
		sum += width;
	}
	return sum;
}
