/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The options of a target, as the user types them (key=value) and as a table line has them.
 */
#ifndef FOREBAY_TOOLS_OPTIONS_H
#define FOREBAY_TOOLS_OPTIONS_H

#include "mapped.h"

/* The options of a table line. */
struct pairs {
	char text[MAPPED_TEXT / 2];	/* " key value" ... */
	unsigned int words;
};

const struct target_option *option_take(const struct verb *verb, const char *pair);
bool pairs_add(struct pairs *pairs, const char *key, const char *value);
bool pairs_take(const struct verb *verb, struct pairs *pairs, const char *pair);

#endif
