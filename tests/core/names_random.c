// SPDX-License-Identifier: GPL-2.0-only
/*
 * A machine that logs random changes, commits, trims, loses power at random, recovers, loses power in the
 * recovery, and goes on; so that lives of the log meet leftovers of all the others.
 *
 * Each step picks an operation that its caller may do now, and explores a few crash states of it as
 * names_crash.c does. The next step begins at the operation's end, or at one of the crash states.
 */
#include "names_crash.h"
#include "test.h"

#include <stdio.h>
#include <stdlib.h>

#define SEEDS		2
#define STEPS		500
#define SAMPLES		12

typedef void (*op_fn)(struct nl *nl);

/* The step's operation, drawn before it runs, for it runs twice. */
static struct {
	u32 n, kinds[4], number;
	u64 end;
} step;

static bool recovering;		/* the log was opened, and not emptied yet */
static u64 ends[4];		/* of the newest records */

static void op_append(struct nl *nl)
{
	for (u32 i = 0; i < step.n; i++) {
		struct nl_change change = names_change(step.kinds[i], step.number + i);

		names_append(nl, &change);
	}
}

static void op_sync(struct nl *nl)
{
	op_append(nl);
	nl_commit(nl, nl->whole);
}

static void op_opaque(struct nl *nl)
{
	names_append_opaque(nl, step.number);
	op_append(nl);
	if (step.number % 2)
		nl_settle(nl, nl_next(nl));
}

static void op_beat(struct nl *nl)
{
	names_beat(nl, step.number, step.number + 10);
}

static void op_trim(struct nl *nl)
{
	nl_settle(nl, step.end);
	if (nl_trim(nl, step.end))
		abort();
}

static void op_decide(struct nl *nl)
{
	static struct nl_record record;
	struct nl_cursor cursor;
	u8 bits[256] = { };

	if (nl_bits_size(nl) > sizeof(bits))
		abort();
	nl_cursor_start(&cursor, nl);
	while (nl_cursor_next(&cursor, &record) > 0)
		if ((record.start * 2654435761u ^ step.number) & 64)
			nl_bit_set(nl, bits, record.start);
	if (cursor.damage.kind || nl_decide(nl, bits, cursor.place))
		abort();
}

static void op_empty(struct nl *nl)
{
	if (nl_empty(nl))
		abort();
}

static op_fn draw(struct nl *nl)
{
	step.n = 1 + sim_random(3);
	step.number = sim_random(1000);
	for (u32 i = 0; i < step.n; i++)
		step.kinds[i] = NL_CREATE + sim_random(NL_IFLAGS);
	if (recovering)
		return nl->decided || sim_random(2) ? op_empty : op_decide;
	step.end = ends[sim_random(4)];
	switch (sim_random(10)) {
	case 0:
		return step.end > nl->trim && step.end <= nl->whole ? op_trim : NULL;
	case 1:
		return op_beat;
	case 2:
		return op_opaque;
	case 3:
	case 4:
	case 5:
		return op_append;
	default:
		return op_sync;
	}
}

/* As a mount after a power cut. */
static void come_back(struct nl *nl)
{
	EXPECT(!nl_open(nl, sim_live(), NAMES_SIZE, names_open_flags()) && !nl->bad);
	recovering = true;
	memset(ends, 0, sizeof(ends));
	sim_settle();
}

/* Runs the operation once more, and cuts the power in it if it lasts. */
static void cut_and_return(op_fn op, struct nl *before, struct nl *nl, const void *start,
			   enum sim_domain domain)
{
	static u8 state[NAMES_SIZE];

	sim_start(start, NAMES_SIZE, domain);
	sim_keep_cut(state, sim_random(3));
	op(before);
	if (!sim_cut_kept()) {
		*nl = *before;
		return;
	}
	sim_start(state, NAMES_SIZE, domain);
	come_back(nl);
}

static void remember(const struct nl *nl, op_fn op)
{
	if (op == op_empty)
		recovering = false;
	if (ends[0] == nl->whole)
		return;
	memmove(ends + 1, ends, sizeof(ends) - sizeof(*ends));
	ends[0] = nl->whole;
}

static bool random_run(u64 seed, enum sim_domain domain)
{
	static u8 start[NAMES_SIZE];
	struct names_scenario scenario = { .name = "random" };
	struct nl nl, before;

	sim_seed(seed);
	recovering = false;
	memset(ends, 0, sizeof(ends));
	names_setup(&scenario, &nl, domain);
	for (u32 i = 0; i < STEPS; i++) {
		const char *wrong;

		scenario.op = draw(&nl);
		if (!scenario.op)
			continue;
		memcpy(start, sim_live(), NAMES_SIZE);
		before = nl;
		wrong = names_explore(&scenario, &nl, domain, SAMPLES, SIM_NONE, 0);
		if (!EXPECT(!wrong)) {
			printf("\tseed %llu, step %u: %s\n", seed, i, wrong);
			return false;
		}
		remember(&nl, scenario.op);
		if (!sim_random(4))
			cut_and_return(scenario.op, &before, &nl, start, domain);
	}
	return true;
}

void names_random_tests(void)
{
	for (u64 seed = 1; seed <= SEEDS; seed++)
		for (u32 domain = SIM_MEM_CTRL; domain <= SIM_CPU_CACHE; domain++)
			if (!random_run(seed, domain))
				return;
	printf("names random: seeds 1 to %d, %d steps each\n", SEEDS, STEPS);
}
