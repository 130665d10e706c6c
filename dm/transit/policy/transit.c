// SPDX-License-Identifier: GPL-2.0-only
/*
 * I/O transit caching (Caiti, section 4.3). Each block is evicted as soon as it is in a slot (eager
 * eviction). A writer that finds no slot writes to the device (conditional bypass). Each of the two can
 * be switched off.
 */
#include "../policy.h"

static void transit_stored(struct dtc *t, struct dtc_slot *slot)
{
	lockdep_assert_held(&dtc_set_of(t, slot->block)->lock);
	/* A failed block waits for its retry. */
	if (READ_ONCE(t->params.eager_eviction) && !slot->retries)
		slot->wanted = true;
}

static bool transit_may_bypass(const struct dtc *t)
{
	return READ_ONCE(t->params.bypass);
}

static void transit_make_space(struct dtc *t)
{
	if (!READ_ONCE(t->params.eager_eviction))
		dtc_want_some(t);
}

const struct dtc_policy dtc_policy_transit = {
	.name = "transit",
	.stored = transit_stored,
	.may_bypass = transit_may_bypass,
	.make_space = transit_make_space,
};
