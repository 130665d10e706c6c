/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The name log of an image: make_names.c fills it, read_names.c prints it. Commits whose core has no name
 * log are built without both.
 */
#ifndef FOREBAY_TESTS_FORMATS_IMAGE_NAMES_H
#define FOREBAY_TESTS_FORMATS_IMAGE_NAMES_H

#include <stdbool.h>

#if __has_include("names/names.h")
#define HAS_NAMES	1
#include "names/names.h"
#else
#define HAS_NAMES	0
#endif

/* make_names.c: the region of a name log as formatted; @decided: a replay was cut off after its decisions. */
void make_names(void *region, unsigned long long size, bool decided, bool flush);

/* read_names.c: prints a line for the log, and one for each record; @base is where the image begins. */
void read_names(const void *base, void *region, unsigned long long size, bool write);

#endif
