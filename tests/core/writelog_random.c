// SPDX-License-Identifier: GPL-2.0-only
/*
 * A machine that logs random writes, reclaims, loses power at random, comes back
 * and goes on; so that lives of generations meet leftovers of all the others.
 *
 * Each step picks an operation that its caller may do now, and explores a few
 * crash states of it as writelog_crash.c does. The next step begins at the
 * operation's end, or at one of the crash states.
 */
#include "test.h"
#include "writelog_crash.h"

#include <stdio.h>
#include <stdlib.h>

#define SEEDS		2
#define STEPS		400
#define SAMPLES		24

typedef void (*op_fn)(struct log *log);

/* The step's operation, drawn before it runs, for it runs twice. */
static struct {
	u32 slot, gen, chunk, n;
	struct { enum wl_op op; u32 sector, nr_sectors; } parts[3];
} step;

static struct wl_gen_info gen_info(const struct log *log, u32 gen)
{
	struct wl_gen_info info;

	if (wl_gen_read(&log->wl, gen, &info))
		abort();
	return info;
}

/* A generation: free (false: there is none), or the oldest that is not. */
static bool draw_gen(const struct log *log, bool free)
{
	u64 oldest = WL_MAX_ID;
	bool found = false;

	for (u32 gen = 0; gen < LOG_GENS; gen++) {
		struct wl_gen_info info = gen_info(log, gen);

		if (free != (info.state == WL_GEN_FREE) || (!free && info.id > oldest))
			continue;
		oldest = info.id;
		step.gen = gen;
		found = true;
	}
	return found;
}

static void op_append(struct log *log)
{
	for (u32 i = 0; i < step.n; i++)
		log_entry(log, step.slot, step.parts[i].op, step.parts[i].sector,
			  step.parts[i].nr_sectors);
	wl_commit(&log->wl, &log->slots[step.slot]);
}

static void op_open_gen(struct log *log)
{
	log_open_gen(log, step.gen);
}

static void op_seal(struct log *log)
{
	wl_gen_seal(&log->wl, step.gen, log->slots[0].id, log->seq);
	log->slots[0].id = 0;
	log->slots[1].id = 0;
}

static void op_free(struct log *log)
{
	wl_gen_free(&log->wl, step.gen);
	if (log->slots[0].gen == step.gen)
		log->slots[0].id = 0;
	if (log->slots[1].gen == step.gen)
		log->slots[1].id = 0;
}

static void op_bind(struct log *log)
{
	static const u8 id[WL_ORIGIN_ID_SIZE] = { 1 };

	if (step.n % 2)
		wl_bind(&log->wl, step.n, id);
	else if (step.n % 4)
		wl_fingerprint_set(&log->wl, step.n);
	else
		wl_unbind(&log->wl);
}

/* Entries as far as the slot has room; false: it has none, or no chunk. */
static bool draw_append(struct log *log)
{
	struct wl_slot trial;

	step.slot = sim_random(2);
	trial = log->slots[step.slot];
	step.n = 0;
	for (u32 wanted = 1 + sim_random(3); step.n < wanted; step.n++) {
		u32 nr = 1 + sim_random(2);

		if (wl_slot_space(&log->wl, &trial, 512 * nr) != 512 * nr)
			break;
		step.parts[step.n].op = sim_random(3) ? WL_OP_WRITE : WL_OP_DISCARD;
		step.parts[step.n].sector = sim_random(8);
		step.parts[step.n].nr_sectors = nr;
		trial.head += 512 * nr;
		trial.fill++;
	}
	return step.n;
}

static op_fn draw(struct log *log)
{
	switch (sim_random(12)) {
	case 0:
		return draw_gen(log, true) ? op_open_gen : NULL;
	case 1:
		return draw_gen(log, false) ? op_free : NULL;
	case 2:
		step.gen = log->slots[0].gen;
		return log->slots[0].id && gen_info(log, step.gen).state == WL_GEN_OPEN ?
			op_seal : NULL;
	case 3:
		step.n = 1 + sim_random(100);
		return op_bind;
	default:
		return draw_append(log) ? op_append : NULL;
	}
}

/* As a user after a power cut: appends nothing to the generations that were found. */
static void come_back(struct log *log, enum sim_domain domain)
{
	*log = (struct log){ };
	EXPECT(!wl_open(&log->wl, sim_live(), LOG_SIZE,
			domain == SIM_MEM_CTRL ? WL_OPEN_FLUSH_CACHES : 0));
	log->id = wl_next_id(&log->wl) - 1;
	sim_settle();
}

/* Runs the operation once more, and cuts the power in it if it lasts. */
static void cut_and_return(op_fn op, struct log *before, struct log *log, const void *start,
			   enum sim_domain domain)
{
	static u8 state[LOG_SIZE];

	sim_start(start, LOG_SIZE, domain);
	sim_keep_cut(state, sim_random(3));
	op(before);
	if (!sim_cut_kept()) {
		*log = *before;
		return;
	}
	sim_start(state, LOG_SIZE, domain);
	come_back(log, domain);
}

static bool random_run(u64 seed, enum sim_domain domain)
{
	static u8 start[LOG_SIZE];
	struct log_scenario scenario = { .name = "random" };
	struct log log, before;

	sim_seed(seed);
	log_setup(&scenario, &log, domain);
	for (u32 i = 0; i < STEPS; i++) {
		const char *wrong;

		scenario.op = draw(&log);
		if (!scenario.op)
			continue;
		memcpy(start, sim_live(), LOG_SIZE);
		before = log;
		wrong = log_explore(&scenario, &log, domain, SAMPLES, SIM_NONE, 0);
		if (!EXPECT(!wrong)) {
			printf("\tseed %llu, step %u: %s\n", seed, i, wrong);
			return false;
		}
		if (!sim_random(4))
			cut_and_return(scenario.op, &before, &log, start, domain);
	}
	return true;
}

void log_random_tests(void)
{
	for (u64 seed = 1; seed <= SEEDS; seed++)
		for (u32 domain = SIM_MEM_CTRL; domain <= SIM_CPU_CACHE; domain++)
			if (!random_run(seed, domain))
				return;
	printf("log random: seeds 1 to %d, %d steps each\n", SEEDS, STEPS);
}
