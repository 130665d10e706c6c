// SPDX-License-Identifier: GPL-2.0-only
/*
 * Every public operation of the page store, cut at every point; and the proof
 * that these tests notice mistakes. Each fence, flush and copy past the caches
 * of an operation is left out in turn, and then a state must be wrong.
 *
 * Operations are what callers do: they acknowledge (ack()) where a caller of
 * core/ may, and rely on nothing else being durable. setups.c has the stores
 * that they begin with.
 */
#include "crash.h"
#include "sabotage.h"
#include "setups.h"
#include "test.h"

#include <stdlib.h>

#define ARRAY_SIZE(a)	(sizeof(a) / sizeof(*(a)))

/* --- superblock --- */

static void op_format(struct ps *ps)
{
	(void)ps;
	test_format(256);
}

static void op_format_names(struct ps *ps)
{
	(void)ps;
	test_format_names(256, SETUP_NAMES_SIZE);
}

/* One more file record than setup_names() makes: each part lies where it lay. */
static void op_format_names_again(struct ps *ps)
{
	(void)ps;
	test_format_names(TEST_FILES + 1, SETUP_NAMES_SIZE);
}

static void op_open(struct ps *ps)
{
	ps_open(ps, sim_live(), TEST_SIZE, ps->flush_caches ? PS_OPEN_FLUSH_CACHES : 0);
}

static void op_bind(struct ps *ps)
{
	struct ps_handle root = test_handle(7);

	ps_bind(ps, (const u8 *)"0123456789abcdef", &root);
}

static void op_bind_unbind(struct ps *ps)
{
	op_bind(ps);
	ack();
	ps_unbind(ps);
}

/* --- files --- */

static void op_create(struct ps *ps)
{
	struct ps_handle handle = test_handle(25);

	ps_file_create(ps, 0, &handle, 4242);
}

static void op_unlink(struct ps *ps)
{
	ps_file_set_state(ps, 0, PS_FILE_UNLINKED);
	ack();
	ps_file_set_state(ps, 0, PS_FILE_LIVE);
}

static void op_set_size(struct ps *ps)
{
	ps_file_set_size(ps, 0, 123456789);
	ps_fence(ps);
	ack();
	ps_file_set_size(ps, 0, 1);
	ps_fence(ps);
}

/* Before and after 1970. */
static void op_set_time(struct ps *ps)
{
	ps_file_set_time(ps, 0, 1700000000123456789);
	ps_fence(ps);
	ack();
	ps_file_set_time(ps, 0, -5);
	ps_fence(ps);
	ack();
	ps_file_set_time(ps, 0, 0);
	ps_fence(ps);
}

/* With one fence, as an fsync does. */
static void op_set_time_and_size(struct ps *ps)
{
	for (u32 round = 1; round < 3; round++) {
		ps_file_set_time(ps, 0, 1700000000123456789 + round);
		ps_file_set_size(ps, 0, 14 * PS_PAGE_SIZE + round);
		ps_fence(ps);
		ack();
	}
}

static void op_file_free(struct ps *ps)
{
	ps_file_free(ps, 0);
}

/* --- files whose record's line the medium loses: from then on a cut leaves the damage, or its mending --- */

static void lose_file(struct ps *ps, u32 file)
{
	sim_lose_line(&ps->files[file]);
	ack();
}

static void op_create_lost(struct ps *ps)
{
	lose_file(ps, 0);
	op_create(ps);
}

/* Another thread has stored that the pages of the last life are free, and has not fenced. */
static void op_create_lost_early(struct ps *ps)
{
	lose_file(ps, 0);
	sim_thread(1);
	for (u32 page = 0; page < 4; page++)
		ps_page_free(ps, page);
	sim_thread(0);
	op_create(ps);
}

static void op_file_free_lost(struct ps *ps)
{
	lose_file(ps, 0);
	ps_file_free(ps, 0);
}

/* A sync finds the loss. The caller knows all of the record. */
static void op_set_size_lost(struct ps *ps)
{
	struct ps_file_info info;

	if (ps_file_read(ps, 0, &info))
		abort();
	lose_file(ps, 0);
	info.size = 123456789;
	if (ps_file_set_size(ps, 0, info.size))
		ps_file_rewrite(ps, 0, &info);
}

/* The record is needed again at once. */
static void op_file_succeeds_lost_file(struct ps *ps)
{
	op_file_free_lost(ps);
	ack();
	create(ps, 0, 3);
}

static void op_purge_lost_file(struct ps *ps)
{
	lose_file(ps, 1);
	ps_file_purge(ps, 1);
}

/* --- pages --- */

static void op_move_1(struct ps *ps)
{
	move_in(ps, 8, 1, 0, 1, PS_PAGE_SIZE);
}

static void op_move_2(struct ps *ps)
{
	move_in(ps, 8, 1, 0, 2, PS_PAGE_SIZE);
}

static void op_move_3(struct ps *ps)
{
	move_in(ps, 8, 1, 0, 3, PS_PAGE_SIZE);
}

static void op_move_4(struct ps *ps)
{
	move_in(ps, 8, 1, 0, 4, PS_PAGE_SIZE);
}

/* Few words, so that all states are visited; records in two cache lines. */
static void op_move_few_words(struct ps *ps)
{
	move_in(ps, 10, 1, 1000, 4, 16);
}

static void op_set_clean(struct ps *ps)
{
	ps_page_set_state(ps, 1, PS_PAGE_CLEAN);
	ps_fence(ps);
	ack();
	ps_page_set_state(ps, 1, PS_PAGE_OUT_OF_SYNC);
	ps_fence(ps);
}

static void op_pages_free(struct ps *ps)
{
	static const u32 pages[] = { 0, 2, 3 };

	ps_pages_free(ps, pages, ARRAY_SIZE(pages));
}

static void op_reuse(struct ps *ps)
{
	static const u32 pages[] = { 2 };

	ps_pages_free(ps, pages, 1);
	write_page(ps, 2, 0, PS_PAGE_SIZE, 5);
	ps_page_prepare(ps, 2, 1, 0);
	ps_pages_commit(ps, &(struct ps_move){ .page = 2, .file = 1 }, 1, PS_PAGE_OUT_OF_SYNC);
}

/* The same record and index as in its earlier life: only the generation differs. */
static void op_reuse_stale(struct ps *ps)
{
	ps_page_prepare(ps, 2, 0, 12);
	write_page(ps, 2, 0, 64, 5);
	ps_pages_commit(ps, &(struct ps_move){ .page = 2, .file = 0, .index = 12 }, 1,
			PS_PAGE_OUT_OF_SYNC);
}

static void op_reuse_stale_elsewhere(struct ps *ps)
{
	write_page(ps, 2, 0, 64, 5);
	ps_page_prepare(ps, 2, 1, 12);
	ps_pages_commit(ps, &(struct ps_move){ .page = 2, .file = 1, .index = 12 }, 1,
			PS_PAGE_CLEAN);
}

/* A whole life: the file dies, its record and its page serve another. */
static void op_file_succeeds_file(struct ps *ps)
{
	ps_file_free(ps, 0);
	ack();
	create(ps, 0, 3);
	ack();
	op_reuse_stale(ps);
}

static void op_rewrite(struct ps *ps)
{
	write_page(ps, 1, 13, 70, 6);
	ps_fence(ps);
	ack();
	write_page(ps, 1, 0, 50, 7);
	ps_fence(ps);
	ack();
	write_page(ps, 1, 0, PS_PAGE_SIZE, 8);
	ps_fence(ps);
}

static void op_rewrite_zero(struct ps *ps)
{
	ps_page_zero(ps, 1, 100, 60);
	ps_fence(ps);
}

/* As a program does through a MAP_SYNC mapping. */
static void op_rewrite_mapped(struct ps *ps)
{
	__le64 *words = ps_page_addr(ps, 1);

	for (u32 round = 0; round < 2; round++) {
		for (u32 i = 0; i < 10; i++)
			pm_store64(&words[i], cpu_to_le64((u64)round << 32 | i));
		ps_page_flush(ps, 1, 0, 80);
		ps_fence(ps);
		ack();
	}
}

static void op_rewrite_clean(struct ps *ps)
{
	ps_page_set_state(ps, 0, PS_PAGE_OUT_OF_SYNC);
	ps_fence(ps);
	ack();
	write_page(ps, 0, 8, 40, 6);
	ps_fence(ps);
}

static void op_append_page(struct ps *ps)
{
	move_in(ps, 8, 0, 14, 1, 32);
	ack();
	ps_file_set_size(ps, 0, 14 * PS_PAGE_SIZE + 32);
	ps_fence(ps);
}

static void op_append_in_page(struct ps *ps)
{
	write_page(ps, 3, 64, 40, 6);
	ps_fence(ps);
	ack();
	ps_file_set_size(ps, 0, 13 * PS_PAGE_SIZE + 104);
	ps_fence(ps);
}

static void op_purge_file(struct ps *ps)
{
	ps_file_purge(ps, 1);
}

static void op_purge_pages(struct ps *ps)
{
	static const u32 pages[] = { 1, 2 };

	ps_pages_free(ps, pages, 2);
}

/*
 * Some steps may be missing without harm in one scenario because only another
 * one needs them; .spared says how many, over both domains.
 *   - Format where no store was: breaking the superblock copies hides nothing.
 *   - Format with a name log: until nl_format() has fenced its header, no superblock is valid. So that
 *     fence alone would do for the tables and all of the log, and breaking the log's header hides nothing.
 *   - Reuse of a stale page in its old place: the old check word names the old
 *     generation and so makes the new commit word stale until it is replaced.
 *   - Creation in a lost record while pages are freed: they need not be free yet.
 *   - A lost file record set aside: its generation comes from the pages, so they need not be free first.
 */
static const struct scenario scenarios[] = {
	{ .name = "format a blank device", .raw = true, .op = op_format, .spared = 4 },
	{ .name = "format a foreign device", .raw = true, .setup = setup_foreign, .op = op_format,
	  .spared = 6 },
	{ .name = "format over a store", .raw = true, .setup = setup_old_store, .op = op_format },
	{ .name = "format with a name log, a blank device", .raw = true, .op = op_format_names,
	  .spared = 4 + 6 },
	{ .name = "format with a name log over a store", .raw = true, .setup = setup_old_store,
	  .op = op_format_names, .spared = 8 },
	{ .name = "format with a name log over another", .raw = true, .setup = setup_names,
	  .op = op_format_names_again, .spared = 8 },
	{ .name = "format over a store with a name log", .raw = true, .setup = setup_names,
	  .op = op_format },
	{ .name = "open, copy A bad, with a name log", .setup = setup_names_bad_a, .op = op_open },
	{ .name = "open, copy B bad, with a name log", .setup = setup_names_bad_b, .op = op_open },
	{ .name = "bind, unbind, with a name log", .setup = setup_names, .op = op_bind_unbind },
	{ .name = "open, copy A bad", .setup = setup_bad_a, .op = op_open },
	{ .name = "open, copy B bad", .setup = setup_bad_b, .op = op_open },
	{ .name = "bind, unbind", .op = op_bind_unbind },
	{ .name = "bind elsewhere", .setup = setup_bound, .op = op_bind },
	{ .name = "create a file", .op = op_create },
	{ .name = "create a file in a used record", .setup = setup_stale, .op = op_create },
	{ .name = "unlink a file, link it again", .setup = setup_pages, .op = op_unlink },
	{ .name = "set size", .setup = setup_pages, .op = op_set_size },
	{ .name = "set time", .setup = setup_pages, .op = op_set_time },
	{ .name = "set time and size", .setup = setup_pages, .op = op_set_time_and_size },
	{ .name = "create a file in a record with a time", .setup = setup_stale_with_time, .op = op_create },
	{ .name = "free a file", .setup = setup_pages, .op = op_file_free },
	{ .name = "move 1 page in", .setup = setup_pages, .op = op_move_1 },
	{ .name = "move 2 pages in", .setup = setup_pages, .op = op_move_2 },
	{ .name = "move 3 pages in", .setup = setup_pages, .op = op_move_3 },
	{ .name = "move 4 pages in", .setup = setup_pages, .op = op_move_4 },
	{ .name = "move 4 pages of few words in", .setup = setup_pages, .op = op_move_few_words },
	{ .name = "set clean, set out-of-sync", .setup = setup_pages, .op = op_set_clean },
	{ .name = "free pages", .setup = setup_pages, .op = op_pages_free },
	{ .name = "free a page, reuse it", .setup = setup_pages, .op = op_reuse },
	{ .name = "reuse a stale page, same place",
	  .setup = setup_stale_reborn, .op = op_reuse_stale,
	  .spared = 1 },
	{ .name = "reuse a stale page elsewhere",
	  .setup = setup_stale_reborn, .op = op_reuse_stale_elsewhere },
	{ .name = "a file succeeds a file", .setup = setup_pages, .op = op_file_succeeds_file,
	  .spared = 1 },
	{ .name = "rewrite a page", .setup = setup_pages, .op = op_rewrite },
	{ .name = "zero a range of a page", .setup = setup_pages, .op = op_rewrite_zero },
	{ .name = "rewrite through a mapping", .setup = setup_pages, .op = op_rewrite_mapped },
	{ .name = "rewrite a clean page", .setup = setup_clean_page, .op = op_rewrite_clean },
	{ .name = "append a page", .setup = setup_pages, .op = op_append_page },
	{ .name = "set a damaged file record aside", .damaged = 1,
	  .setup = setup_damaged_file, .op = op_purge_file },
	{ .name = "set damaged page records aside", .damaged = 1,
	  .setup = setup_damaged_pages, .op = op_purge_pages },
	{ .name = "create a file in a lost record", .damaged = 2,
	  .setup = setup_stale, .op = op_create_lost },
	{ .name = "create a file in a lost record, its pages being freed", .damaged = 2,
	  .spared = 1,
	  .setup = setup_stale, .op = op_create_lost_early },
	{ .name = "free a file, its record lost", .damaged = 2,
	  .setup = setup_pages, .op = op_file_free_lost },
	{ .name = "set size in a lost record", .damaged = 2,
	  .setup = setup_pages, .op = op_set_size_lost },
	{ .name = "a file succeeds a file, its record lost", .damaged = 2,
	  .setup = setup_pages, .op = op_file_succeeds_lost_file },
	{ .name = "set a lost file record aside", .damaged = 2, .spared = 3,
	  .setup = setup_damaged_file, .op = op_purge_lost_file },
	{ .name = "append within a page", .setup = setup_pages, .op = op_append_in_page },
};

static const char *explore(const void *scenario, enum sim_domain domain, u32 samples,
			   enum sim_sabotage what, u32 nth)
{
	struct ps ps = crash_setup(scenario, domain);

	return crash_explore(scenario, &ps, domain, samples, what, nth);
}

static void all_scenarios(void (*test)(const struct operation *operation))
{
	for (u32 i = 0; i < ARRAY_SIZE(scenarios); i++)
		test(&(struct operation){
			.group = "crash", .name = scenarios[i].name, .spared = scenarios[i].spared,
			.scenario = &scenarios[i], .explore = explore,
		});
}

void crash_tests(void)
{
	all_scenarios(cut_everywhere);
}

void sabotage_tests(void)
{
	all_scenarios(sabotage_all_steps);
}
