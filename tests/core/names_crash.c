// SPDX-License-Identifier: GPL-2.0-only
/*
 * Runs an operation on a name log twice from the same image. The first run notes what a reader finds at
 * each acknowledgment. In the second the power is cut before each fence and at each acknowledgment, and
 * every state that this can leave (pm_sim.c) must
 *   - open, or fail to open as it did before or does after;
 *   - hold just the committed records and the decisions of the last acknowledgment or of the next; right
 *     after an acknowledgment, those that were acknowledged; and no record behind them that was never
 *     appended;
 *   - have nothing for nl_check() to find but what was damaged before;
 *   - when it is emptied and used again, hold the new record and nothing else.
 */
#include "names_crash.h"

#include <stdlib.h>

#define MAX_ACKS	16

static struct {
	const struct names_scenario *scenario;
	enum sim_domain domain;
	bool noting;			/* first run */
	bool acknowledged;		/* a cut right after an acknowledgment */
	struct names_view seen[MAX_ACKS + 1];
	u32 nr_seen;
	u32 at;				/* the last acknowledgment in the second run */
	const char *wrong;
} run;

/* A format that a cut interrupts leaves the old log, none, or the new one; never a mixture. */
static const char *judge_format(const struct names_view *before, const struct names_view *after,
				const struct names_view *now)
{
	if (now->err)
		return now->err == NL_E_CORRUPT || now->err == before->err ?
			NULL : "opening fails in an unexpected way";
	if (!before->err && !memcmp(now->uuid, before->uuid, NL_UUID_SIZE))
		return names_view_between(before, before, now);
	return names_view_between(after, after, now);
}

/* The next life of the log, after recovery: what an earlier life left never counts. */
static const char *judge_next_life(struct nl *nl, void *image)
{
	struct nl_change change = names_change(NL_LINK, 1);
	int lines = nl_change_lines(&change);
	static struct nl_record record;
	struct nl_cursor cursor;
	struct nl_place place;

	if (nl_empty(nl))
		return "it can't be emptied";
	if (nl_reserve(nl, &place, lines))
		return "it has no space when it is empty";
	nl_take(nl, &place, lines, false);
	nl_write(nl, &place, &change);
	nl_done(nl, &place);
	if (nl_commit(nl, place.end) || nl_open(nl, image, NAMES_SIZE, NL_OPEN_READ_ONLY))
		return "it doesn't take the next life's record";
	nl_cursor_start(&cursor, nl);
	if (nl_cursor_next(&cursor, &record) != 1 || record.start != place.start || !cursor.committed ||
	    nl_cursor_next(&cursor, &record) || cursor.damage.kind)
		return "the next life finds other records than its own";
	return NULL;
}

static const char *judge(void *image)
{
	const struct names_view *before = &run.seen[run.at];
	const struct names_view *after = run.acknowledged ? before : before + 1;
	static struct names_view now;
	const char *wrong;
	struct nl nl;
	enum nl_error err = nl_open(&nl, image, NAMES_SIZE, NL_OPEN_READ_ONLY);

	if (!err && run.acknowledged && names_damage(&nl) & ~before->damage)
		return "the check finds damage after an acknowledgment";
	if (nl_open(&nl, image, NAMES_SIZE, names_open_flags()) != err)
		return "opening read-only gives another result";
	if (err)
		now = (struct names_view){ .err = err };
	else
		names_view_read(&now, &nl);
	if (run.scenario->raw && !run.acknowledged)
		wrong = judge_format(before, after, &now);
	else if (!now.err)
		wrong = names_view_between(before, after, &now);
	else
		wrong = now.err == before->err ? NULL : nl_strerror(now.err);
	return wrong || now.err || nl.bad & NL_BAD_TRIM_WORD ? wrong : judge_next_life(&nl, image);
}

static bool visit(void *image)
{
	run.wrong = judge(image);
	return !run.wrong;
}

static void note(void)
{
	if (run.nr_seen > MAX_ACKS)
		abort();
	names_view_open(&run.seen[run.nr_seen++], sim_live());
}

void names_ack(void)
{
	if (run.noting) {
		note();
		return;
	}
	run.at++;
	run.acknowledged = true;
	sim_cut();
	run.acknowledged = false;
}

u32 names_open_flags(void)
{
	return run.domain == SIM_MEM_CTRL ? NL_OPEN_FLUSH_CACHES : 0;
}

/* Brings the simulated machine to where the scenario's operation begins. */
void names_setup(const struct names_scenario *scenario, struct nl *nl, enum sim_domain domain)
{
	static const u8 blank[NAMES_SIZE];

	memset(nl, 0, sizeof(*nl));
	run.domain = domain;
	names_forget();
	sim_start(blank, NAMES_SIZE, domain);
	if (!scenario->raw) {
		names_format(sim_live(), 1);
		if (nl_open(nl, sim_live(), NAMES_SIZE, names_open_flags()) || nl_empty(nl))
			abort();
	}
	if (scenario->setup)
		scenario->setup(nl);
	sim_settle();
}

/*
 * Runs the operation on the machine as it is, with a power cut everywhere. Returns NULL, or what is wrong
 * with the first wrong state.
 */
const char *names_explore(const struct names_scenario *scenario, struct nl *nl, enum sim_domain domain,
			  u32 samples, enum sim_sabotage sabotage, u32 nth)
{
	static u8 start[NAMES_SIZE];
	struct nl again = *nl;

	memcpy(start, sim_live(), NAMES_SIZE);
	run.scenario = scenario;
	run.domain = domain;
	run.noting = true;
	run.nr_seen = 0;
	note();
	scenario->op(nl);
	note();

	sim_start(start, NAMES_SIZE, domain);
	sim_sabotage(sabotage, nth);
	sim_visit_at_fences(visit, samples);
	run.noting = false;
	run.at = 0;
	run.wrong = NULL;
	scenario->op(&again);
	*nl = again;
	names_ack();
	sim_visit_at_fences(NULL, 0);
	return run.wrong;
}
