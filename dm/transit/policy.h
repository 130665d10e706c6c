/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A policy decides when blocks are evicted, and whether a writer without a free slot waits or bypasses
 * the cache.
 *
 * A policy never touches data, slot states or the device. It requests evictions (want.c), and the same
 * workers carry them out for every policy. So policies differ in when blocks are evicted, not in how.
 *
 * To add one: a file in policy/ with a struct dtc_policy, its object in Kbuild, a line in dtc_policies
 * (params.c), and a declaration at the end of this file.
 */
#ifndef FOREBAY_DM_TRANSIT_POLICY_H
#define FOREBAY_DM_TRANSIT_POLICY_H

#include "transit.h"

struct dtc_policy {
	const char *name;
	bool no_cache;			/* the target has no slots */
	bool keeps_clean;		/* evicted blocks stay as clean copies */

	/* Private data in t->policy_data. Both may be NULL, or neither. */
	int (*init)(struct dtc *t);
	void (*destroy)(struct dtc *t);

	/*
	 * Context: Under the set's lock, interrupts off. Each may be NULL.
	 * stored: a version was written to the slot, which is valid now. Also called when an eviction
	 * or a bypass failed. May set slot->wanted.
	 * cleaned: the device has the version, and the slot stays (keeps_clean).
	 * read: a reader found the slot.
	 * removed: the slot is being evicted or invalidated: no longer a candidate.
	 */
	void (*stored)(struct dtc *t, struct dtc_slot *slot);
	void (*cleaned)(struct dtc *t, struct dtc_slot *slot);
	void (*read)(struct dtc *t, struct dtc_slot *slot);
	void (*removed)(struct dtc *t, struct dtc_slot *slot);

	/*
	 * Context: No locks held.
	 * may_bypass: whether a writer that finds no slot may bypass the cache. NULL: never.
	 * make_space: requests the eviction of at least one slot. Called by a writer that waits for a
	 * slot, and by a writer that fills a slot while others wait.
	 */
	bool (*may_bypass)(const struct dtc *t);
	void (*make_space)(struct dtc *t);

	/* Stop the policy's background work, or permit it again. May be NULL. */
	void (*suspend)(struct dtc *t);
	void (*resume)(struct dtc *t);
};

extern const struct dtc_policy dtc_policy_transit, dtc_policy_pmbd, dtc_policy_pmbd70, dtc_policy_lru,
			       dtc_policy_coactive, dtc_policy_none;

#endif
