/* SPDX-License-Identifier: GPL-2.0-only */
/* Running one operation on a write log with a power cut at every point. See writelog_crash.c. */
#ifndef FOREBAY_TESTS_CORE_WRITELOG_CRASH_H
#define FOREBAY_TESTS_CORE_WRITELOG_CRASH_H

#include "cuts.h"
#include "writelog_view.h"

/* A log and what its user keeps in memory. */
struct log {
	struct wl wl;
	struct wl_slot slots[2];
	u32 seq;		/* in the newest generation */
	u64 id;			/* of the newest generation */
	struct wl_entry last;	/* the last one made */
};

struct log_scenario {
	const char *name;
	bool raw;			/* setup and operation start without a log */
	void (*setup)(struct log *log);	/* NULL: an empty log */
	void (*op)(struct log *log);
	u32 spared;			/* steps that can be left out without harm */
	bool piecewise;			/* entries come back chunk by chunk */
};

void log_setup(const struct log_scenario *scenario, struct log *log, enum sim_domain domain);
const char *log_explore(const struct log_scenario *scenario, struct log *log,
			enum sim_domain domain, u32 samples, enum sim_sabotage sabotage, u32 nth);

/* What setups and operations are made of. */
void log_format(u32 id, bool data_crc);
u64 log_check(const struct wl *wl);
void log_open_gen(struct log *log, u32 gen);
void log_entry(struct log *log, u32 slot, enum wl_op op, u64 sector, u32 nr_sectors);
void log_write(struct log *log, u32 slot, u64 sector, u32 nr_sectors);

#endif
