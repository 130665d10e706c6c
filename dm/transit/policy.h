/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What a policy decides: when what is evicted, and what a writer does who finds no
 * free slot. It never touches data, states or the device: it says that a slot is
 * wanted, and workers do the rest, the same ones for every policy. So policies
 * differ in when, not in how.
 *
 * To add one: a file with a struct dtc_policy, its name in Kbuild, and a line in
 * params.c (dtc_policies) and at the end of this file.
 */
#ifndef FOREBAY_DM_TRANSIT_POLICY_H
#define FOREBAY_DM_TRANSIT_POLICY_H

#include "transit.h"

struct dtc_policy {
	const char *name;
	bool no_cache;			/* no slots at all */
	bool keeps_clean;		/* what has been evicted stays, clean, while nobody needs its slot */

	/* What it needs of its own, in t->policy_data. May be NULL, both or neither. */
	int (*init)(struct dtc *t);
	void (*destroy)(struct dtc *t);

	/*
	 * With the set's lock held; each may be NULL.
	 * stored: a version was written to the slot, which is valid now; also called
	 *	when the device refused it. May set slot->wanted.
	 * cleaned: the device has it, and it stays (keeps_clean).
	 * read: a reader found it.
	 * left: it is being evicted, or dropped: no longer a candidate.
	 */
	void (*stored)(struct dtc *t, struct dtc_slot *slot);
	void (*cleaned)(struct dtc *t, struct dtc_slot *slot);
	void (*read)(struct dtc *t, struct dtc_slot *slot);
	void (*left)(struct dtc *t, struct dtc_slot *slot);

	/*
	 * Without locks. May the writer who finds no slot go past the cache? If
	 * not (NULL: never), he waits in line, and make_room is called: by him, and by
	 * whoever fills a slot while somebody waits. It sees to it that a slot gets free.
	 */
	bool (*may_bypass)(const struct dtc *t);
	void (*make_room)(struct dtc *t);

	/* Its background work stops, or may go on. May be NULL. */
	void (*suspend)(struct dtc *t);
	void (*resume)(struct dtc *t);
};

extern const struct dtc_policy dtc_policy_transit, dtc_policy_pmbd, dtc_policy_pmbd70, dtc_policy_lru,
			       dtc_policy_coactive, dtc_policy_none;

#endif
