/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What a check of `forebay doctor` reads and reports.
 *
 * doctor/ looks for mistakes in how a machine is set up, and changes nothing. doctor.c has the list of
 * checks, and each other file the checks of one subject. machine.c gathers what several checks read. It uses
 * base/, sys/, mapped/, device/ and writelog/.
 */
#ifndef FOREBAY_TOOLS_DOCTOR_H
#define FOREBAY_TOOLS_DOCTOR_H

#include <json-c/json.h>
#include <stdbool.h>

#include "base/compiler.h"
#include "machine.h"

enum severity {
	NOTE,		/* no mistake, but may be what the administrator looks for */
	WARNING,	/* works, but not as well or as safely as it could */
	ERROR,		/* does not work, or loses data */
};

struct doctor {
	struct machine machine;
	const char *check;		/* name of the check that runs */
	struct json_object *findings, *unseen;	/* arrays */
	unsigned int nr_errors, nr_warnings, nr_notes;
};

typedef void (*check_fn)(struct doctor *doctor);

void found(struct doctor *doctor, enum severity severity, const char *object, const char *format, ...)
	__printf(4, 5);
void mend(struct doctor *doctor, const char *format, ...)
	__printf(2, 3);
void unseen(struct doctor *doctor, const char *object, const char *format, ...)
	__printf(3, 4);

/* modules.c */
void check_module(struct doctor *doctor);
void check_next_kernel(struct doctor *doctor);
void check_module_loaded(struct doctor *doctor);
void check_module_version(struct doctor *doctor);
void check_signature(struct doctor *doctor);

/* memory.c */
void check_memory_mode(struct doctor *doctor);
void check_alignment(struct doctor *doctor);
void check_persistence(struct doctor *doctor);
void check_bad_blocks(struct doctor *doctor);
void check_volatile(struct doctor *doctor);

/* use.c */
void check_memory_use(struct doctor *doctor);

/* distance.c */
void check_distance(struct doctor *doctor);

/* caches.c */
void check_writeback(struct doctor *doctor);
void check_lost_pages(struct doctor *doctor);
void check_cache_size(struct doctor *doctor);
void check_name_log(struct doctor *doctor);
void check_unmounted(struct doctor *doctor);

/* lower.c */
void check_barriers(struct doctor *doctor);
void check_lower_options(struct doctor *doctor);
void check_lower_type(struct doctor *doctor);
void check_casefold(struct doctor *doctor);

/* fstab.c */
void check_fstab_cache(struct doctor *doctor);
void check_fstab_order(struct doctor *doctor);
void check_fstab_nofail(struct doctor *doctor);
void check_fstab_unit(struct doctor *doctor);

/* units.c */
void check_units(struct doctor *doctor);
void check_settings(struct doctor *doctor);

/* targets.c */
void check_targets(struct doctor *doctor);

/* origins.c */
void check_origin_visible(struct doctor *doctor);
void check_origin_fstab(struct doctor *doctor);
void check_origin_lvm(struct doctor *doctor);

#endif
