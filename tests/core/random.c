// SPDX-License-Identifier: GPL-2.0-only
/*
 * A machine that does random things to one store, loses power at random, comes
 * back and goes on; so that operations meet leftovers of all the others.
 *
 * Each step picks an operation that its caller may do now, and explores a few
 * crash states of it as crash.c does. The next step begins at the operation's
 * end, or at one of the crash states.
 */
#include "crash.h"
#include "test.h"

#include <stdio.h>
#include <stdlib.h>

#define SEEDS		2
#define STEPS		500
#define SAMPLES		24
#define PAGES		24	/* so few that they are reused all the time */
#define HANDLES		10
#define INDEXES		6

typedef void (*op_fn)(struct ps *ps);

/* The step's operation, drawn before it runs, for it runs twice. */
static struct {
	u32 file, id, n, seed;
	u64 size;
	u32 pages[4];
	struct ps_move moves[4];
	enum ps_page_state page_state;
	enum ps_file_state file_state;
} step;

static void op_create(struct ps *ps)
{
	struct ps_handle handle = test_handle(step.id);

	ps_file_create(ps, step.file, &handle, step.size);
}

static void op_file_free(struct ps *ps)
{
	ps_file_free(ps, step.file);
}

static void op_file_state(struct ps *ps)
{
	ps_file_set_state(ps, step.file, step.file_state);
}

static void op_size(struct ps *ps)
{
	ps_file_set_size(ps, step.file, step.size);
	ps_fence(ps);
}

static void op_time(struct ps *ps)
{
	ps_file_set_time(ps, step.file, (s64)step.size - (1 << 29));
	ps_fence(ps);
}

static void op_move(struct ps *ps)
{
	u8 data[PS_PAGE_SIZE];

	for (u32 i = 0; i < step.n; i++) {
		const struct ps_move *m = &step.moves[i];

		test_fill(data, step.seed + i);
		ps_page_write(ps, m->page, 0, data, 40);
		ps_page_prepare(ps, m->page, m->file, m->index);
	}
	ps_pages_commit(ps, step.moves, step.n, step.page_state);
}

static void op_free(struct ps *ps)
{
	ps_pages_free(ps, step.pages, step.n);
}

static void op_rewrite(struct ps *ps)
{
	u8 data[PS_PAGE_SIZE];
	u32 from = step.seed % 4000;

	ps_page_set_state(ps, step.pages[0], PS_PAGE_OUT_OF_SYNC);
	ps_fence(ps);
	ack();
	test_fill(data, step.seed);
	ps_page_write(ps, step.pages[0], from, data + from, 1 + step.seed % 90);
	ps_fence(ps);
}

static void op_page_state(struct ps *ps)
{
	ps_page_set_state(ps, step.pages[0], step.page_state);
	ps_fence(ps);
}

static void op_bind(struct ps *ps)
{
	struct ps_handle root = test_handle(step.id);
	u8 uuid[PS_UUID_SIZE];

	memset(uuid, (int)step.seed, sizeof(uuid));
	if (step.seed % 3)
		ps_bind(ps, uuid, &root);
	else
		ps_unbind(ps);
}

/* A file record, free or not; false: there is none. */
static bool draw_file(const struct ps *ps, bool free)
{
	u32 from = sim_random(ps->nr_files);

	for (u32 i = 0; i < ps->nr_files; i++) {
		struct ps_file_info info;

		step.file = (from + i) % ps->nr_files;
		if (!ps_file_read(ps, step.file, &info) && free == (info.state == PS_FILE_FREE))
			return true;
	}
	return false;
}

/* Up to @n pages that are in use, or that can be; as many as there are. */
static bool draw_pages(const struct ps *ps, u32 n, bool used)
{
	u32 from = sim_random(PAGES);

	step.n = 0;
	for (u32 i = 0; i < PAGES && step.n < n; i++) {
		u32 page = (from + i) % PAGES;
		struct ps_page_info info;
		int err = ps_page_read(ps, page, &info);

		if ((!err && info.state != PS_PAGE_FREE) == used)
			step.pages[step.n++] = page;
	}
	return step.n;
}

/* Returns true if a page on the device, or an earlier move of the step, has this place. */
static bool taken(const struct ps *ps, u32 file, u64 index, u32 nr_moves)
{
	for (u32 i = 0; i < nr_moves; i++)
		if (step.moves[i].index == index)
			return true;
	for (u32 page = 0; page < PAGES; page++) {
		struct ps_page_info info;

		if (!ps_page_read(ps, page, &info) && info.state != PS_PAGE_FREE &&
		    info.file == file && info.index == index)
			return true;
	}
	return false;
}

static bool draw_moves(const struct ps *ps)
{
	u32 n = 0;

	if (!draw_file(ps, false) || !draw_pages(ps, 1 + sim_random(4), false))
		return false;
	for (u32 i = 0; i < step.n; i++) {
		u64 index = sim_random(2) ? sim_random(INDEXES) : PS_MAX_INDEX - 1 - i;

		if (taken(ps, step.file, index, n))
			continue;
		step.moves[n++] = (struct ps_move){ .page = step.pages[i], .file = step.file,
						    .index = index };
	}
	step.n = n;
	return n;
}

static bool draw_create(const struct ps *ps)
{
	struct ps_handle handle;
	struct view view;

	step.id = sim_random(HANDLES);
	handle = test_handle(step.id);
	view_read(&view, ps);
	return !view_find_file(&view, &handle) && draw_file(ps, true);
}

/* Returns the operation that was drawn; NULL: it can't be done now. */
static op_fn draw(const struct ps *ps)
{
	step.seed = sim_random(1u << 30);
	step.size = sim_random(1u << 30);
	step.page_state = sim_random(2) ? PS_PAGE_OUT_OF_SYNC : PS_PAGE_CLEAN;
	step.file_state = sim_random(2) ? PS_FILE_LIVE : PS_FILE_UNLINKED;
	switch (sim_random(15)) {
	case 0: case 1:
		return draw_create(ps) ? op_create : NULL;
	case 2:
		return draw_file(ps, false) ? op_file_free : NULL;
	case 3:
		return draw_file(ps, false) ? op_file_state : NULL;
	case 4:
		return draw_file(ps, false) ? op_size : NULL;
	case 5: case 6: case 7: case 8:
		return draw_moves(ps) ? op_move : NULL;
	case 9: case 10:
		return draw_pages(ps, 1 + sim_random(4), true) ? op_free : NULL;
	case 11:
		return draw_pages(ps, 1, true) ? op_rewrite : NULL;
	case 12:
		return draw_pages(ps, 1, true) ? op_page_state : NULL;
	case 13:
		return draw_file(ps, false) ? op_time : NULL;
	default:
		step.id = sim_random(HANDLES);
		return op_bind;
	}
}

/* Runs the operation once more, cuts the power in it if it lasts, and comes back. */
static void cut_and_return(op_fn op, struct ps *before, struct ps *ps, const void *start,
			   enum sim_domain domain)
{
	static u8 state[TEST_SIZE];

	sim_start(start, TEST_SIZE, domain);
	sim_keep_cut(state, sim_random(3));
	op(before);
	if (!sim_cut_kept()) {
		*ps = *before;
		return;
	}
	sim_start(state, TEST_SIZE, domain);
	EXPECT(!ps_open(ps, sim_live(), TEST_SIZE, crash_open_flags(domain)));
	sim_settle();
}

static bool random_run(u64 seed, enum sim_domain domain)
{
	static u8 start[TEST_SIZE];
	struct scenario scenario = { .name = "random" };
	struct ps ps, before;

	sim_seed(seed);
	ps = crash_setup(&scenario, domain);
	for (u32 i = 0; i < STEPS; i++) {
		const char *wrong;

		scenario.op = draw(&ps);
		if (!scenario.op)
			continue;
		memcpy(start, sim_live(), TEST_SIZE);
		before = ps;
		wrong = crash_explore(&scenario, &ps, domain, SAMPLES, SIM_NONE, 0);
		if (!EXPECT(!wrong)) {
			printf("\tseed %llu, step %u: %s\n", seed, i, wrong);
			return false;
		}
		if (!sim_random(3))
			cut_and_return(scenario.op, &before, &ps, start, domain);
	}
	return true;
}

void random_tests(void)
{
	for (u64 seed = 1; seed <= SEEDS; seed++)
		for (u32 domain = SIM_MEM_CTRL; domain <= SIM_CPU_CACHE; domain++)
			if (!random_run(seed, domain))
				return;
	printf("random: seeds 1 to %d, %d steps each\n", SEEDS, STEPS);
}
