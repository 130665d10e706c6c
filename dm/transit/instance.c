// SPDX-License-Identifier: GPL-2.0-only
/*
 * One target's memory and threads: made by the constructor, freed by the destructor or by registry.c.
 *
 * Uses the init and destroy functions of all lower files and of the policy.
 */
#include "policy.h"

int dtc_alloc(struct dtc *t)
{
	int err;

	spin_lock_init(&t->flush_lock);
	dtc_discards_init(t);
	dtc_ready_init(t);
	dtc_retry_init(t);
	err = dtc_slots_init(t);
	if (!err)
		err = dtc_sets_init(t);
	if (!err)
		err = dtc_evict_init(t);
	if (!err)
		err = dtc_workers_init(t);
	if (!err && t->policy->init)
		err = t->policy->init(t);
	if (err)
		t->ti->error = "Not enough memory";
	return err;
}

/* Frees a target after a failed constructor, or after dtc_retire() has released its device. */
void dtc_destroy(struct dtc *t)
{
	if (t->policy && t->policy->destroy && t->policy_data)
		t->policy->destroy(t);
	dtc_workers_destroy(t);
	dtc_evict_destroy(t);
	dtc_sets_destroy(t);
	dtc_slots_destroy(t);
	if (t->lower)
		dm_put_device(t->ti, t->lower);
	free_percpu(t->stats);
	kfree(t);
}
