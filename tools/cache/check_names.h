/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The part of `forebay check` that reads a cache's name log.
 */
#ifndef FOREBAY_TOOLS_CHECK_NAMES_H
#define FOREBAY_TOOLS_CHECK_NAMES_H

#include "../core/store/store.h"

/* Kinds of findings: a header copy, and everything else. */
#define NAMES_HEADER	"name log: header"
#define NAMES_KIND	"name log"

/* A finding, as ps_report_fn has it, and what the damaged record says; "" if it isn't a record. */
typedef void (*names_finding_fn)(void *arg, const char *what, u64 number, const char *why,
				 const char *detail);

u64 check_names(const struct ps *ps, names_finding_fn report, void *arg);

#endif
