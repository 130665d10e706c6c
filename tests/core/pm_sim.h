/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Persistent memory that loses power: see pm_sim.c, and pm_visit.c for the states that a cut may leave.
 */
#ifndef FOREBAY_TESTS_CORE_PM_SIM_H
#define FOREBAY_TESTS_CORE_PM_SIM_H

#include "pm_kinds.h"

void sim_start(const void *image, size_t size, enum sim_domain domain);
void sim_thread(u32 thread);
void sim_sabotage(enum sim_sabotage what, u32 nth);
bool sim_sabotage_reached(void);
bool sim_sabotaged(void);
void sim_visit_at_fences(sim_visit_fn visit, u32 samples);
void sim_cut(void);
void sim_keep_cut(void *image, u32 nth);
bool sim_cut_kept(void);
void sim_settle(void);
void sim_lose_line(void *addr);
void sim_before_reads(void (*store)(const void *from));
void sim_after_copies(void (*store)(void));
void *sim_live(void);
void *sim_durable(void);
u64 sim_states(void);
u64 sim_sampled(void);

u32 sim_random(u32 below);
void sim_seed(u64 seed);

#endif
