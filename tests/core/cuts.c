// SPDX-License-Identifier: GPL-2.0-only
/*
 * Runs an operation twice from the same image. The first run notes what a reader finds at each
 * acknowledgment. In the second the power is cut before each fence and at each acknowledgment, and every
 * state that this can leave (pm_sim.c) is judged. crash.c, writelog_crash.c and names_crash.c say what may be
 * in it.
 */
#include "cuts.h"

#include <stdlib.h>
#include <string.h>

static struct {
	const struct cuts *cuts;
	bool noting;			/* first run */
	bool acknowledged;		/* a cut right after an acknowledgment */
	u32 nr_noted;
	u32 at;				/* the last acknowledgment in the second run */
	const char *wrong;
} run;

static bool visit(void *image)
{
	run.wrong = run.cuts->judge(image, run.at, run.acknowledged);
	return !run.wrong;
}

static void note(void)
{
	if (run.nr_noted > CUTS_MAX_ACKS)
		abort();
	run.cuts->note(run.nr_noted++);
}

void ack(void)
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

static void *copy(const void *from, size_t size)
{
	void *to = malloc(size);

	if (!to)
		abort();
	return memcpy(to, from, size);
}

/*
 * Runs the operation on the machine as it is, with a power cut everywhere. Returns NULL, or what is wrong
 * with the first wrong state.
 */
const char *cuts_explore(const struct cuts *cuts, enum sim_domain domain, u32 samples,
			 enum sim_sabotage sabotage, u32 nth)
{
	void *start = copy(sim_live(), cuts->size), *subject = copy(cuts->subject, cuts->subject_size);

	run.cuts = cuts;
	run.noting = true;
	run.nr_noted = 0;
	note();
	cuts->op(cuts->subject);
	note();

	sim_start(start, cuts->size, domain);
	sim_sabotage(sabotage, nth);
	sim_visit_at_fences(visit, samples);
	run.noting = false;
	run.at = 0;
	run.wrong = NULL;
	memcpy(cuts->subject, subject, cuts->subject_size);
	cuts->op(cuts->subject);
	ack();
	sim_visit_at_fences(NULL, 0);
	free(subject);
	free(start);
	return run.wrong;
}
