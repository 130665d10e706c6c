/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The kinds of target that the command knows, and the options that each one takes. mapped/kind.c has the
 * tables.
 */
#ifndef FOREBAY_TOOLS_KIND_H
#define FOREBAY_TOOLS_KIND_H

#include <stdbool.h>

/* An option of a target, which the user types as KEY=VALUE. */
struct target_option {
	const char *key;
	bool later;			/* may be set while the device is in use, too */
	const char *values;		/* possible values and their meaning, printed behind the key */
};

struct mapped_kind {
	const char *target;		/* its name in device-mapper, which allows 15 characters */
	const char *noun;		/* first word of its verbs */
	const char *what;		/* in messages */
	const struct target_option *options;	/* the last has no key */
	unsigned int devices;		/* how many its table line names */
	unsigned int amounts;		/* how many "used/total" its status line has */
	const char *final_message;	/* has it write down all that it holds, before removal */
	const char *below;		/* the device that it writes down to, in messages */
	const char *rest;		/* what becomes of data left in it, in messages */
};

extern const struct mapped_kind writelog_kind, transit_kind;

#endif
