// SPDX-License-Identifier: GPL-2.0-only
/*
 * Lines of records that the medium loses while the store is in use. A file record has a line of its own, and
 * is written anew by a caller that knows all of it. Four page records share a line: nothing is stored there,
 * and the caller is told.
 */
#include "crash.h"
#include "setups.h"
#include "test.h"

#include <stdio.h>

#define LINE_PAGES	4	/* page records in a line */

static u8 good[TEST_SIZE];
static struct ps ps;		/* open on the simulator's image */

/*
 * File 0 in its second life, with pages 4 and 5; pages 0 to 3 are of its first. File 1 has page 6, clean, and
 * page 8. File 2 is free after a life.
 */
static void setup_lives(struct ps *store)
{
	setup_stale_reborn(store);
	move_in(store, 4, 0, 20, 2, PS_PAGE_SIZE);
	move_in(store, 6, 1, 30, 1, PS_PAGE_SIZE);
	ps_page_set_state(store, 6, PS_PAGE_CLEAN);
	move_in(store, 8, 1, 31, 1, PS_PAGE_SIZE);
	create(store, 2, 5);
	ps_file_set_size(store, 0, 22 * PS_PAGE_SIZE);
	ps_file_set_time(store, 0, 1700000000123456789);
	ps_file_free(store, 2);
}

static void start(void)
{
	static const struct scenario scenario = { .name = "damage", .setup = setup_lives };

	ps = crash_setup(&scenario, SIM_MEM_CTRL);
	memcpy(good, sim_live(), TEST_SIZE);
}

static void again(void)
{
	sim_start(good, TEST_SIZE, SIM_MEM_CTRL);
}

static bool page_is(u32 page, int err, enum ps_page_state state)
{
	struct ps_page_info info;

	return ps_page_read(&ps, page, &info) == err && (err || info.state == state);
}

/* Nothing was stored since @before was copied. */
static bool untouched(const u8 *before)
{
	return !memcmp(before, sim_live(), TEST_SIZE);
}

/* The generation is above that of all pages of earlier lives: none of them comes back. */
static void create_over_a_lost_record(void)
{
	struct ps_file_info info;

	ps_file_free(&ps, 0);
	sim_lose_line(&ps.files[0]);
	create(&ps, 0, 7);
	EXPECT(!ps_file_read(&ps, 0, &info) && info.state == PS_FILE_LIVE && info.generation == 3);
	for (u32 page = 0; page < 6; page++)
		EXPECT(page_is(page, -ESTALE, 0));
	EXPECT(!test_check(&ps));
	again();
	sim_lose_line(&ps.files[7]);	/* never used */
	create(&ps, 7, 7);
	EXPECT(!ps_file_read(&ps, 7, &info) && info.state == PS_FILE_LIVE && info.generation == 3);
	EXPECT(!test_check(&ps));
	again();
}

static void free_a_lost_record(void)
{
	struct ps_file_info info;

	sim_lose_line(&ps.files[0]);
	EXPECT(page_is(4, -EUCLEAN, 0) && test_check(&ps) == 1 + 6);
	ps_file_free(&ps, 0);
	EXPECT(!ps_file_read(&ps, 0, &info) && info.state == PS_FILE_FREE && info.generation == 2);
	EXPECT(page_is(0, -ESTALE, 0) && page_is(5, -ESTALE, 0) && !test_check(&ps));
	create(&ps, 0, 7);
	EXPECT(page_is(0, -ESTALE, 0) && page_is(5, -ESTALE, 0) && !test_check(&ps));
	again();
}

/* Page records in a lost line can't come back, and don't keep a file record from being purged. */
static void purge_a_lost_record(void)
{
	sim_lose_line(&ps.files[0]);
	sim_lose_line(&ps.pages[4]);
	ps_file_purge(&ps, 0);
	EXPECT(page_is(0, 0, PS_PAGE_FREE) && page_is(4, -EUCLEAN, 0) && page_is(8, 0, PS_PAGE_OUT_OF_SYNC));
	EXPECT(test_check(&ps) == LINE_PAGES);
	again();
}

/* Core doesn't know the handle, so that it can't write the line: no half of a record is made. */
static void change_a_lost_record(void)
{
	static u8 before[TEST_SIZE];

	sim_lose_line(&ps.files[0]);
	memcpy(before, sim_live(), TEST_SIZE);
	EXPECT(ps_file_set_state(&ps, 0, PS_FILE_UNLINKED) == -EIO);
	EXPECT(ps_file_set_size(&ps, 0, 5) == -EIO && ps_file_set_time(&ps, 0, 5) == -EIO);
	EXPECT(untouched(before));
	again();
}

/* Written anew, the record has its pages again, and none of its earlier life. */
static void rewrite_a_lost_record(void)
{
	struct ps_file_info info, found;

	EXPECT(!ps_file_read(&ps, 0, &info));
	sim_lose_line(&ps.files[0]);
	ps_file_rewrite(&ps, 0, &info);
	EXPECT(!memcmp(sim_live(), good, TEST_SIZE));
	info.size = 5;
	ps_file_rewrite(&ps, 0, &info);		/* it can be read */
	EXPECT(!memcmp(sim_live(), good, TEST_SIZE));
	info.state = PS_FILE_UNLINKED;
	info.time = -5;
	sim_lose_line(&ps.files[0]);
	ps_file_rewrite(&ps, 0, &info);
	EXPECT(!ps_file_read(&ps, 0, &found) && !memcmp(&found, &info, sizeof(info)));
	EXPECT(page_is(0, -ESTALE, 0) && page_is(4, 0, PS_PAGE_OUT_OF_SYNC) && !test_check(&ps));
	again();
}

/* Neither the record's own line nor that of the file may be lost. */
static void prepare_in_a_lost_line(void)
{
	static u8 before[TEST_SIZE];

	sim_lose_line(&ps.pages[12]);
	memcpy(before, sim_live(), TEST_SIZE);
	EXPECT(ps_page_prepare(&ps, 13, 1, 50) == -EIO && untouched(before));
	EXPECT(test_check(&ps) == LINE_PAGES);
	again();
	sim_lose_line(&ps.files[1]);
	memcpy(before, sim_live(), TEST_SIZE);
	EXPECT(ps_page_prepare(&ps, 13, 1, 50) == -EUCLEAN && untouched(before));
	again();
}

/* What the line held isn't known: the other three records, one of them out-of-sync, stay damaged. */
static void states_in_a_lost_line(void)
{
	static u8 before[TEST_SIZE];

	sim_lose_line(&ps.pages[6]);
	memcpy(before, sim_live(), TEST_SIZE);
	EXPECT(ps_page_set_state(&ps, 6, PS_PAGE_OUT_OF_SYNC) == -EIO);
	EXPECT(ps_page_set_state(&ps, 4, PS_PAGE_CLEAN) == -EIO && untouched(before));
	ps_page_free(&ps, 4);
	ps_fence(&ps);
	for (u32 page = 4; page < 8; page++)
		EXPECT(page_is(page, -EUCLEAN, 0));
	EXPECT(test_check(&ps) == LINE_PAGES);
	again();
}

void damage_tests(void)
{
	start();
	create_over_a_lost_record();
	free_a_lost_record();
	purge_a_lost_record();
	change_a_lost_record();
	rewrite_a_lost_record();
	prepare_in_a_lost_line();
	states_in_a_lost_line();
	printf("damage: lost lines of records\n");
}
