/* SPDX-License-Identifier: GPL-2.0-only */
/* What tests of the name log append, and what a log says when it is read. See names_log.c. */
#ifndef FOREBAY_TESTS_CORE_NAMES_LOG_H
#define FOREBAY_TESTS_CORE_NAMES_LOG_H

#include "names/names.h"

/* Of every log that is tested; small, so that millions can be read. */
#define NAMES_SIZE	NL_MIN_SIZE
#define NAMES_RECORDS	800	/* of a log, at most */

/* A record that was appended or found. */
struct names_seen {
	u64 place, hash;
};

struct names_view {
	enum nl_error err;	/* other than NL_OK: the rest is empty */
	u32 damage;		/* kinds, of the check */
	u8 uuid[NL_UUID_SIZE];
	u64 decided;
	struct nl_beat beat;
	u32 nr_committed, nr;	/* the tail follows the committed ones */
	struct names_seen records[NAMES_RECORDS];
	u8 stored[NAMES_RECORDS];	/* decisions */
};

void names_view_read(struct names_view *view, const struct nl *nl);
void names_view_open(struct names_view *view, void *image);
/* NULL, or why @now cannot come from a power cut between @before and @after. */
const char *names_view_between(const struct names_view *before, const struct names_view *after,
			       const struct names_view *now);
/* Records that were appended since names_forget(): a tail holds nothing else. */
void names_forget(void);
/* Makes a heartbeat that names_view_between() knows. */
void names_beat(struct nl *nl, s64 time, s64 until);
bool names_known(const struct names_seen *seen);

struct nl_text names_text(const char *text);
struct nl_identity names_id(u64 birth, u32 number);
struct nl_change names_change(enum nl_kind kind, u32 number);
u64 names_append(struct nl *nl, struct nl_change *change);
u64 names_append_opaque(struct nl *nl, u32 number);
u64 names_write(struct nl *nl, struct nl_place *place, struct nl_change *change);
void names_format(void *base, u32 id);
u32 names_damage(const struct nl *nl);

#endif
