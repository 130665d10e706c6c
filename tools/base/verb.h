/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What every verb of the forebay command shares: how it is described, how its options are read, and what
 * its exit status means.
 *
 * base/ is the ground floor of the command. It includes nothing of the other folders; all of them use it.
 */
#ifndef FOREBAY_TOOLS_VERB_H
#define FOREBAY_TOOLS_VERB_H

#include <getopt.h>
#include <stdbool.h>

#include "compiler.h"

/* The same for every verb, and as in fsck(8); doctor alone has two of its own. */
enum exit_status {
	DONE = 0,
	REPAIRED = 1,	/* check --repair: all damage was repaired */
	WARNED = 1,	/* doctor: warnings, or something that could not be examined */
	FAULTY = 2,	/* doctor: errors, and maybe warnings */
	LEFT = 4,	/* check: inconsistencies; drain, drop, flush, remove: something is left */
	FAILED = 8,	/* refused, or failed */
	USAGE = 16,
};

struct mapped_kind;

/* Which options of a target a verb takes. */
enum keys { KEYS_NONE, KEYS_ALL, KEYS_LATER };

struct verb {
	const char *name;		/* "format", or "writelog format": the noun comes first */
	const char *arguments;		/* in the synopsis, after the name */
	const char *summary;		/* one line, for the list of verbs */
	const char *help;		/* what it does, then its options */
	const struct option *options;	/* the last is OPTION_HELP */
	const struct mapped_kind *kind;	/* of the mapped device; NULL: none, or fixed by the verb */
	enum keys keys;			/* the options of @kind that the verb takes and --help lists */
	bool runs;			/* another program, whose arguments those of the verb are */
	bool destroys;			/* loses data: never proposed for a mistyped word */
	enum exit_status (*run)(const struct verb *verb, int argc, char **argv);
};

/* Every verb's last option. */
#define OPTION_HELP	{ "help", no_argument, NULL, 'h' }

extern const struct verb verb_format, verb_status, verb_probe, verb_check, verb_drain;
extern const struct verb verb_pin, verb_unpin, verb_attach, verb_detach, verb_drop;
extern const struct verb verb_advise, verb_doctor, verb_metrics, verb_top, verb_log_preload;
extern const struct verb verb_writelog_format, verb_writelog_create, verb_writelog_status,
			 verb_writelog_check, verb_writelog_flush, verb_writelog_resume,
			 verb_writelog_set, verb_writelog_latency, verb_writelog_remove;
extern const struct verb verb_emu_create, verb_emu_list, verb_emu_remove, verb_emu_cut;
extern const struct verb verb_transit_create, verb_transit_status, verb_transit_flush,
			 verb_transit_set, verb_transit_latency, verb_transit_remove;

int next_option(const struct verb *verb, int argc, char **argv);
bool parse_decimal(const char *text, double max, double *number);
void verb_help(const struct verb *verb);
enum exit_status usage_problem(const struct verb *verb, const char *format, ...)
	__printf(2, 3);

#endif
