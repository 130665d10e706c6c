// SPDX-License-Identifier: GPL-2.0-only
/*
 * Visiting the states that a power cut may leave of the simulated memory (pm_sim.c).
 *
 * All states are visited if there are at most MAX_EXHAUSTIVE; otherwise every
 * prefix and every suffix in store order, every word missing alone or present
 * alone, pairs, and random ones. To visit a state, the durable image is turned into it and back;
 * what core functions store there (repair) is undone.
 */
#include "pm_sim.h"
#include "pm_state.h"

#include <stdlib.h>

#define MAX_EXHAUSTIVE	(1u << 14)
#define ALL_PAIRS_UP_TO	40	/* words; beyond, as many random pairs as samples */

/* From now on, tries a power cut before each fence; NULL: no longer. */
void sim_visit_at_fences(sim_visit_fn visit, u32 samples)
{
	sim.visit = visit;
	sim.samples = samples;
	sim.failed = false;
}

u64 sim_states(void)
{
	return sim.states;
}

u64 sim_sampled(void)
{
	return sim.sampled;
}

static u64 value_at(const struct pending *p, u32 choice, u64 durable)
{
	return choice ? p->values[choice - 1] : durable;
}

/*
 * Visits the state in which word i holds value choice[i], 0 being the durable
 * one.
 */
static bool visit(const u32 *choice, const u64 *durable)
{
	bool good;

	for (u32 i = 0; i < sim.nr_pending; i++) {
		const struct pending *p = &sim.pending[i];

		*word_at(sim.durable, p->word) = value_at(p, choice[i], durable[i]);
	}
	sim.states++;
	sim.visiting = true;
	good = sim.visit(sim.durable);
	sim.visiting = false;
	while (sim.nr_undo) {
		sim.nr_undo--;
		*word_at(sim.durable, sim.undo[sim.nr_undo].word) = sim.undo[sim.nr_undo].value;
	}
	return good;
}

static bool visit_all(u32 *choice, const u64 *durable)
{
	for (;;) {
		u32 i;

		if (!visit(choice, durable))
			return false;
		for (i = 0; i < sim.nr_pending && choice[i] == sim.pending[i].nr_values; i++)
			choice[i] = 0;
		if (i == sim.nr_pending)
			return true;
		choice[i]++;
	}
}

static void choose_all(u32 *choice, bool landed)
{
	for (u32 i = 0; i < sim.nr_pending; i++)
		choice[i] = landed ? sim.pending[i].nr_values : 0;
}

static void choose_one(u32 *choice, u32 i, bool landed)
{
	choice[i] = landed ? sim.pending[i].nr_values : 0;
}

/* Everything landed but one or two words; nothing landed but one or two. */
static bool visit_pair(u32 *choice, const u64 *durable, u32 i, u32 j)
{
	for (int landed = 0; landed < 2; landed++) {
		choose_all(choice, !landed);
		choose_one(choice, i, landed);
		choose_one(choice, j, landed);
		if (!visit(choice, durable))
			return false;
	}
	return true;
}

static bool visit_pairs(u32 *choice, const u64 *durable)
{
	u32 n = sim.nr_pending;

	for (u32 i = 0; i < n; i++)
		if (!visit_pair(choice, durable, i, i))
			return false;
	if (n > ALL_PAIRS_UP_TO) {
		for (u32 k = 0; k < sim.samples; k++)
			if (!visit_pair(choice, durable, sim_random(n), sim_random(n)))
				return false;
		return true;
	}
	for (u32 i = 0; i < n; i++)
		for (u32 j = i + 1; j < n; j++)
			if (!visit_pair(choice, durable, i, j))
				return false;
	return true;
}

/* The first so many words landed; then, the last so many: a fence was missing. */
static bool visit_in_order(u32 *choice, const u64 *durable)
{
	for (int landed = 0; landed < 2; landed++) {
		choose_all(choice, landed);
		for (u32 i = 0; i < sim.nr_pending; i++) {
			if (!visit(choice, durable))
				return false;
			choose_one(choice, i, !landed);
		}
	}
	return visit(choice, durable);
}

static bool visit_random(u32 *choice, const u64 *durable)
{
	for (u32 k = 0; k < sim.samples; k++) {
		for (u32 i = 0; i < sim.nr_pending; i++)
			choice[i] = sim_random(sim.pending[i].nr_values + 1);
		if (!visit(choice, durable))
			return false;
	}
	return true;
}

static bool few_enough(void)
{
	u64 states = 1;

	for (u32 i = 0; i < sim.nr_pending && states <= MAX_EXHAUSTIVE; i++)
		states *= sim.pending[i].nr_values + 1;
	return states <= MAX_EXHAUSTIVE && (sim.samples >= states || sim.samples >= SIM_THOROUGH);
}

/* Tries a power cut now, unless a state was wrong already. */
void sim_cut(void)
{
	u32 n = sim.nr_pending;
	u32 *choice;
	u64 *durable;

	if (!sim.visit || sim.failed)
		return;
	choice = calloc(n + 1, sizeof(*choice));
	durable = calloc(n + 1, sizeof(*durable));
	if (!choice || !durable)
		abort();
	for (u32 i = 0; i < n; i++)
		durable[i] = *word_at(sim.durable, sim.pending[i].word);
	if (few_enough()) {
		sim.failed = !visit_all(choice, durable);
	} else {
		sim.sampled++;
		sim.failed = !visit_in_order(choice, durable) ||
			     (sim.samples >= SIM_THOROUGH && !visit_pairs(choice, durable)) ||
			     !visit_random(choice, durable);
	}
	for (u32 i = 0; i < n; i++)
		*word_at(sim.durable, sim.pending[i].word) = durable[i];
	free(choice);
	free(durable);
}
