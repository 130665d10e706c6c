/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The options of a mount, sorted by what handles them.
 */
#ifndef FOREBAY_TOOLS_MOUNT_OPTIONS_H
#define FOREBAY_TOOLS_MOUNT_OPTIONS_H

#include <stdbool.h>

struct options {
	unsigned long flags;	/* MS_*, as mount(2) has them */
	bool explicit_atime;	/* one of noatime, relatime, strictatime, nodiratime */
	char *own;		/* for forebay; NULL: none */
	char *all;		/* as given */
};

/* Takes one option for forebay; @value is NULL if there is no "=". */
typedef bool (*option_fn)(void *arg, const char *name, const char *value);

bool options_parse(struct options *options, const char *text);
bool options_each(const struct options *options, option_fn fn, void *arg);
void options_free(struct options *options);

#endif
