// SPDX-License-Identifier: GPL-2.0-only
/*
 * I/O transit caching (Caiti, section 4.3): a block is on its way to the device as
 * soon as it is in a slot (eager eviction), and who finds no slot writes to the
 * device himself (conditional bypass). Each can be switched off.
 */
#include "policy.h"

static void transit_stored(struct dtc *t, struct dtc_slot *slot)
{
	/* What the device has refused waits for its next try. */
	if (READ_ONCE(t->params.eager_eviction) && !slot->tries)
		slot->wanted = true;
}

static bool transit_may_bypass(const struct dtc *t)
{
	return READ_ONCE(t->params.bypass);
}

static void transit_make_room(struct dtc *t)
{
	if (!READ_ONCE(t->params.eager_eviction))
		dtc_want_some(t);
}

const struct dtc_policy dtc_policy_transit = {
	.name = "transit",
	.stored = transit_stored,
	.may_bypass = transit_may_bypass,
	.make_room = transit_make_room,
};
