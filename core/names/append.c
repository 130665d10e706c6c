// SPDX-License-Identifier: GPL-2.0-only
/*
 * Appending to a name log: what becomes of a record between the moment before its change is made below
 * and the moment when it is whole.
 *
 * Invariants:
 *   - lines that are reserved, taken, or between the trim word and the next place never exceed the ring.
 *     So a place that was taken has its lines for itself;
 *   - @whole never passes a record that is taken and not done, and @limit never passes an opaque record
 *     that isn't settled. Neither goes back.
 *
 * The caller's place lock is around all functions but nl_write(). A record that is being written keeps
 * all later ones from being committed: a hole would end the log.
 */
#include "layout.h"

/**
 * nl_reserve - reserve space for a record, before its change is made below
 * @nl: log, emptied since it was opened
 * @place: set; for nl_take() or nl_cancel()
 * @lines: the most that the record may take, see nl_change_lines()
 *
 * The caller holds the locks of the directories that the change is made under. Until its nl_take(), other
 * records may take places whose changes were made below before or after this one.
 *
 * Context: Place lock. Doesn't sleep.
 * Return: 0; -ENOSPC: the log is full; -E2BIG: the log takes no such record. After an error the change
 * goes unrecorded, and the next sync goes below.
 */
int nl_reserve(struct nl *nl, struct nl_place *place, u32 lines)
{
	u64 end = READ_ONCE(nl->trim) + nl->nr_lines;

	*place = (struct nl_place){ };
	if (!lines || lines > NL_MAX_LINES)
		return -E2BIG;
	if (end > NL_MAX_PLACE || nl->next + nl->reserved + lines > end)
		return -ENOSPC;
	nl->reserved += lines;
	place->reserved = lines;
	place->began = nl->next;
	return 0;
}

/**
 * nl_cancel - give the space of a record back: its change was not made
 * @nl: log
 * @place: from nl_reserve(), not taken; or zeroed
 *
 * Context: Place lock. Doesn't sleep.
 */
void nl_cancel(struct nl *nl, struct nl_place *place)
{
	nl->reserved -= place->reserved;
	place->reserved = 0;
}

/**
 * nl_take - take a record's place: its change has been made below
 * @nl: log
 * @place: from nl_reserve()
 * @lines: of the record, at most what was reserved
 * @opaque: storage must have the change before any commit passes the record, see nl_settle()
 *
 * Nothing sleeps before nl_done(). The caller still holds the locks that the change was made under. So of
 * two changes of one directory or one inode, the first has the smaller place.
 *
 * Context: Place lock. Doesn't sleep.
 */
void nl_take(struct nl *nl, struct nl_place *place, u32 lines, bool opaque)
{
	place->start = nl->next;
	place->end = nl->next + lines;
	nl_cancel(nl, place);
	nl->next = place->end;
	place->next = NULL;
	place->prev = nl->newest;
	if (nl->newest)
		nl->newest->next = place;
	else
		nl->oldest = place;
	nl->newest = place;
	if (!opaque)
		return;
	nl->opaque = place->start;
	if (nl->limit == NL_NO_LIMIT)
		WRITE_ONCE(nl->limit, place->start);
}

/**
 * nl_write - write a record to its place
 * @nl: log
 * @place: from nl_take()
 * @change: takes as many lines as were taken; object.birth of a creation is @place->start
 *
 * Durable on return where CPU caches are in the persistence domain; otherwise nl_commit() sees to that.
 *
 * Context: Any; concurrent with everything but nl_empty().
 */
void nl_write(const struct nl *nl, const struct nl_place *place, const struct nl_change *change)
{
	nl_record_write(nl, place->start, place->began, place->end - place->start, change);
	if (!nl->flush_caches && !BREAK_DATA_FENCE)
		pm_fence();	/* nl_commit()'s fence covers that task's stores and flushes only */
}

/**
 * nl_done - a record is whole: commits may pass it
 * @nl: log
 * @place: after nl_write(); the log doesn't use it any more
 *
 * Context: Place lock. Doesn't sleep.
 */
void nl_done(struct nl *nl, struct nl_place *place)
{
	if (place->prev)
		place->prev->next = place->next;
	else
		nl->oldest = place->next;
	if (place->next)
		place->next->prev = place->prev;
	else
		nl->newest = place->prev;
	/* Pairs with the acquire in commit.c and trim.c: the records' stores come before it. */
	smp_store_release(&nl->whole, nl->oldest ? nl->oldest->start : nl->next);
}

/**
 * nl_next - the place that the next record will have
 * @nl: log
 *
 * A lower sync that begins after this call makes all records before that place durable below.
 *
 * Context: Place lock.
 * Return: the place; for nl_settle() and nl_trim() after that sync.
 */
u64 nl_next(const struct nl *nl)
{
	return nl->next;
}

/**
 * nl_settle - a lower sync has returned: opaque records before a place no longer hold commits up
 * @nl: log
 * @end: nl_next() from before that sync began
 *
 * If there are opaque records behind @end, commits reach @end and no further. One number is
 * remembered, not each opaque record.
 *
 * Context: Place lock. Doesn't sleep.
 */
void nl_settle(struct nl *nl, u64 end)
{
	if (nl->limit == NL_NO_LIMIT || end <= nl->limit)
		return;
	if (nl->opaque < end) {
		nl->opaque = 0;
		end = NL_NO_LIMIT;
	}
	WRITE_ONCE(nl->limit, end);
}
