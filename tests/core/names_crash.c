// SPDX-License-Identifier: GPL-2.0-only
/*
 * What a power cut (cuts.c) may leave of a name log. Every state must
 *   - open, or fail to open as it did before or does after;
 *   - hold just the committed records and the decisions of the last acknowledgment or of the next; right
 *     after an acknowledgment, those that were acknowledged; and no record behind them that was never
 *     appended;
 *   - have nothing for nl_check() to find but what was damaged before;
 *   - when it is emptied and used again, hold the new record and nothing else.
 */
#include "names_crash.h"

#include <stdlib.h>

static struct {
	const struct names_scenario *scenario;
	enum sim_domain domain;
	struct names_view seen[CUTS_MAX_ACKS + 1];
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

static const char *judge(void *image, u32 at, bool acknowledged)
{
	const struct names_view *before = &run.seen[at];
	const struct names_view *after = acknowledged ? before : before + 1;
	static struct names_view now;
	const char *wrong;
	struct nl nl;
	enum nl_error err = nl_open(&nl, image, NAMES_SIZE, NL_OPEN_READ_ONLY);

	if (!err && acknowledged && names_damage(&nl) & ~before->damage)
		return "the check finds damage after an acknowledgment";
	if (nl_open(&nl, image, NAMES_SIZE, names_open_flags()) != err)
		return "opening read-only gives another result";
	if (err)
		now = (struct names_view){ .err = err };
	else
		names_view_read(&now, &nl);
	if (run.scenario->raw && !acknowledged)
		wrong = judge_format(before, after, &now);
	else if (!now.err)
		wrong = names_view_between(before, after, &now);
	else
		wrong = now.err == before->err ? NULL : nl_strerror(now.err);
	return wrong || now.err || nl.bad & NL_BAD_TRIM_WORD ? wrong : judge_next_life(&nl, image);
}

static void note(u32 nr)
{
	names_view_open(&run.seen[nr], sim_live());
}

static void run_op(void *subject)
{
	run.scenario->op(subject);
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

/* Cuts the power at every point of the operation. Returns what is wrong, or NULL. */
const char *names_explore(const struct names_scenario *scenario, struct nl *nl, enum sim_domain domain,
			  u32 samples, enum sim_sabotage sabotage, u32 nth)
{
	const struct cuts cuts = {
		.size = NAMES_SIZE, .subject = nl, .subject_size = sizeof(*nl),
		.op = run_op, .note = note, .judge = judge,
	};

	run.scenario = scenario;
	run.domain = domain;
	return cuts_explore(&cuts, domain, samples, sabotage, nth);
}
