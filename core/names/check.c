// SPDX-License-Identifier: GPL-2.0-only
/*
 * Reads a whole name log and reports inconsistencies. Writes nothing.
 *
 * A power cut never leaves anything that is reported here. A tail without end, lines of earlier laps,
 * decisions that are cut short and one heartbeat that is not valid are all normal.
 *
 * The cursor of read.c ends at the first damage. This file goes on to the next record behind it, so that
 * each gap among the committed records is reported.
 */
#include "layout.h"

struct check {
	const struct nl *nl;
	struct nl_record *scratch;
	nl_report_fn report;
	void *arg;
	u64 found;
};

static void complain(struct check *check, enum nl_damage_kind kind, u64 place, const char *why)
{
	struct nl_damage damage = { .kind = kind, .place = place, .why = why };

	check->found++;
	check->report(check->arg, &damage);
}

static void check_headers(struct check *check)
{
	const struct nl_header_onmedia *best = &check->nl->header;
	u32 copy;

	for (copy = 0; copy < NL_NR_HEADERS; copy++) {
		struct nl_header_onmedia h;

		if (!nl_header_read(check->nl->base, copy, &h))
			complain(check, NL_BAD_HEADER, copy, "is damaged; the other copy is used");
		else if (h.seq == best->seq && memcmp(&h, best, sizeof(h)))
			complain(check, NL_BAD_HEADER, copy,
				 "differs from the other copy, though both are whole");
	}
}

/* All that nl_open() has noted; the cursor reports the first. */
static void check_words(struct check *check)
{
	const struct nl *nl = check->nl;

	if (nl->bad & NL_BAD_TRIM_WORD)
		complain(check, NL_BAD_TRIM_WORD, nl->trim, "is damaged");
	if (nl->bad & NL_BAD_COMMIT_WORD)
		complain(check, NL_BAD_COMMIT_WORD, nl->commit, "is damaged");
	if (nl->bad & NL_BAD_COMMIT)
		complain(check, NL_BAD_COMMIT, nl->commit, "is older than a heartbeat says");
	if (nl->bad & NL_BAD_DECIDED_WORD)
		complain(check, NL_BAD_DECIDED_WORD, nl->trim, "is damaged");
	if (nl->bad & NL_BAD_DECISIONS)
		complain(check, NL_BAD_DECISIONS, nl->trim, "are damaged");
}

/* Returns the next place from @place on that has a committed record; the commit word: there is none. */
static u64 skip_gap(struct check *check, u64 place)
{
	while (place < check->nl->commit && nl_read(check->nl, place, check->scratch)) {
		place++;
		cond_resched();
	}
	return min_t(u64, place, check->nl->commit);
}

/* The committed records, over gaps. */
static void check_committed(struct check *check)
{
	const struct nl *nl = check->nl;
	struct nl_record *record = check->scratch;
	u64 place = nl->trim;

	while (place < nl->commit) {
		if (nl_read(nl, place, record) || record->end > nl->commit) {
			complain(check, NL_BAD_RECORD, place, "is committed and can't be read");
			place = skip_gap(check, place + 1);
			continue;
		}
		place = record->end;
		cond_resched();
	}
}

static void check_tail(struct check *check)
{
	struct nl_cursor cursor;

	nl_cursor_start(&cursor, check->nl);
	cursor.place = max_t(u64, check->nl->trim, check->nl->commit);
	while (nl_cursor_next(&cursor, check->scratch) > 0)
		cond_resched();
	if (cursor.damage.kind)
		complain(check, cursor.damage.kind, cursor.damage.place, cursor.damage.why);
}

/**
 * nl_check - verify everything in a log that can be verified
 * @nl: log; it doesn't change meanwhile
 * @scratch: overwritten
 * @report: called for every inconsistency
 * @arg: passed to @report
 *
 * Context: May sleep; reads all records.
 * Return: number of inconsistencies.
 */
u64 nl_check(const struct nl *nl, struct nl_record *scratch, nl_report_fn report, void *arg)
{
	struct check check = { .nl = nl, .scratch = scratch, .report = report, .arg = arg };

	check_headers(&check);
	check_words(&check);
	if (!(nl->bad & (NL_BAD_TRIM_WORD | NL_BAD_COMMIT_WORD)))
		check_committed(&check);
	if (!nl->bad)
		check_tail(&check);
	return check.found;
}
