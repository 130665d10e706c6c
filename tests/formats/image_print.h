/* SPDX-License-Identifier: GPL-2.0-only */
/* The fields of a JSON line, as read_image.c and read_names.c print them. Each follows another field. */
#ifndef FOREBAY_TESTS_FORMATS_IMAGE_PRINT_H
#define FOREBAY_TESTS_FORMATS_IMAGE_PRINT_H

#include <stdio.h>

static inline void number(const char *key, unsigned long long value)
{
	printf(", \"%s\": %llu", key, value);
}

static inline void hex(const char *key, const unsigned char *bytes, unsigned int len)
{
	printf(", \"%s\": \"", key);
	for (unsigned int i = 0; i < len; i++)
		printf("%02x", bytes[i]);
	printf("\"");
}

#endif
