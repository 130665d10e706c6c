// SPDX-License-Identifier: GPL-2.0-only
/*
 * Reading a name log after a crash: the committed records, then the tail.
 *
 * Committed records have no gap: what can't be read among them is damage, and ends the log. The tail ends
 * without damage where no record can be read, unless a heartbeat has called that place durable, or
 * decisions cover it. The cursor does not continue after damage: a lost record may have moved what the
 * next one changes. check.c looks further.
 */
#include "layout.h"

static int damaged(struct nl_cursor *cursor, enum nl_damage_kind kind, const char *why)
{
	cursor->damage = (struct nl_damage){ .kind = kind, .place = cursor->place, .why = why };
	cursor->ended = true;
	return -EUCLEAN;
}

/**
 * nl_cursor_start - begin to read a log
 * @cursor: set
 * @nl: log; nothing changes it until the cursor has reached the end
 *
 * Context: Any.
 */
void nl_cursor_start(struct nl_cursor *cursor, const struct nl *nl)
{
	struct nl_beat beat;

	nl_beat_read(nl, &beat);
	*cursor = (struct nl_cursor){ .nl = nl, .place = nl->trim, .durable = beat.durable };
}

/* The first damage that nl_open() has noted. */
static int damaged_words(struct nl_cursor *cursor)
{
	u32 bad = cursor->nl->bad;

	if (bad & NL_BAD_TRIM_WORD)
		return damaged(cursor, NL_BAD_TRIM_WORD, "is damaged");
	if (bad & NL_BAD_COMMIT_WORD)
		return damaged(cursor, NL_BAD_COMMIT_WORD, "is damaged");
	if (bad & NL_BAD_COMMIT)
		return damaged(cursor, NL_BAD_COMMIT, "is older than a heartbeat says");
	if (bad & NL_BAD_DECIDED_WORD)
		return damaged(cursor, NL_BAD_DECIDED_WORD, "is damaged");
	return damaged(cursor, NL_BAD_DECISIONS, "are damaged");
}

/* The tail has no record at the cursor's place. */
static int tail_ends(struct nl_cursor *cursor)
{
	cursor->ended = true;
	if (cursor->place < cursor->nl->decided)
		return damaged(cursor, NL_BAD_TAIL, "has a decision and can't be read");
	if (cursor->place < cursor->durable)
		return damaged(cursor, NL_BAD_TAIL, "was durable and can't be read");
	return 0;
}

/**
 * nl_cursor_next - the next record of a log
 * @cursor: from nl_cursor_start(); @cursor->committed says whether a commit has reached the record
 * @record: overwritten; valid if 1 is returned
 *
 * After -EUCLEAN, cursor->damage describes the damage; the next call returns 0.
 *
 * Context: Any.
 * Return: 1: a record; 0: there are no more; -EUCLEAN: damage.
 */
int nl_cursor_next(struct nl_cursor *cursor, struct nl_record *record)
{
	const struct nl *nl = cursor->nl;
	int err;

	if (cursor->ended)
		return 0;
	if (nl->bad)
		return damaged_words(cursor);
	cursor->committed = cursor->place < nl->commit;
	if (!cursor->committed && nl->decided && cursor->place >= nl->decided)
		return tail_ends(cursor);
	err = nl_read(nl, cursor->place, record);
	if (cursor->committed && (err || record->end > nl->commit))
		return damaged(cursor, NL_BAD_RECORD, "is committed and can't be read");
	if (err || record->end > nl->trim + nl->nr_lines)
		return tail_ends(cursor);
	cursor->place = record->end;
	return 1;
}
