// SPDX-License-Identifier: GPL-2.0-only
/*
 * Records leave a name log: in the background when storage has their changes, and all at once after
 * recovery. Each is one store of the trim word.
 *
 * Invariant: lines are used again only after the trim word that lets go of them is durable.
 */
#include "layout.h"

/* Durable on return. */
static void store_trim(struct nl *nl, u64 place)
{
	nl_store(nl, NL_WORD_TRIM, &nl->words->trim, place);
	if (!BREAK_FREE_FENCE)
		pm_fence();
	WRITE_ONCE(nl->trim, place);
}

/**
 * nl_trim - let go of all records before a place: storage has their changes
 * @nl: log
 * @end: nl_next() from before a lower sync that has returned; nl_settle() was called with it
 *
 * Records that no commit has reached may be among them. Durable on return.
 *
 * Context: Commit lock. Doesn't sleep.
 * Return: 0; -EAGAIN: a record before @end is not done yet; -EBUSY: nl_settle() was not called.
 */
int nl_trim(struct nl *nl, u64 end)
{
	if (end <= nl->trim)
		return 0;
	if (end > READ_ONCE(nl->limit))
		return -EBUSY;
	/* Pairs with nl_done(): a line is given away after its record was stored. */
	if (end > smp_load_acquire(&nl->whole))
		return -EAGAIN;
	store_trim(nl, end);
	return 0;
}

/* Replaces damaged words of a log that is empty up to @place. Durable on return. */
static void heal_words(struct nl *nl, u64 place)
{
	if (nl->bad & NL_BAD_COMMIT_WORD) {
		nl_store(nl, NL_WORD_COMMIT, &nl->words->commit, place);
		nl->commit = place;
	}
	if (nl->bad & NL_BAD_DECIDED_WORD)
		nl_store_raw(nl, &nl->words->decided, 0);
	pm_fence();
}

/**
 * nl_empty - end recovery: the log holds nothing, and takes records again
 * @nl: log, opened, not read-only; storage has all that the log had, or the loss is accepted
 *
 * One store moves the trim word by a whole ring, so beyond every place that was ever given. No record
 * of an earlier life, committed or not, and no decision counts from then on. Called after each
 * nl_open(), also if the log is empty: a place before the cut may have been given and left no trace.
 *
 * Durable on return. Other words that are damaged are replaced after that store.
 *
 * Context: Nothing else uses the log.
 * Return: 0; -EUCLEAN: the trim word is damaged, and the region has to be formatted again, with a first
 * place beyond all births that are known; -EOVERFLOW: no places are left, the same.
 */
int nl_empty(struct nl *nl)
{
	u64 place = nl->trim + nl->nr_lines;

	if (nl->bad & NL_BAD_TRIM_WORD)
		return -EUCLEAN;
	if (place + 4 * nl->nr_lines > NL_MAX_PLACE)
		return -EOVERFLOW;
	store_trim(nl, place);
	if (nl->bad)
		heal_words(nl, place);
	nl->bad = 0;
	nl->decided = 0;
	nl->next = place;
	nl->flushed = place;
	nl->reserved = 0;
	nl->oldest = NULL;
	nl->newest = NULL;
	nl->opaque = 0;
	nl->limit = NL_NO_LIMIT;
	WRITE_ONCE(nl->whole, place);
	return 0;
}
