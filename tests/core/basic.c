// SPDX-License-Identifier: GPL-2.0-only
/*
 * What each function does when nothing goes wrong, and at its limits.
 */
#include "crash.h"
#include "test.h"

#include <stdio.h>
#include <stdlib.h>

static struct ps fresh_store(void)
{
	static const struct scenario scenario = { .name = "basic" };

	return crash_setup(&scenario, SIM_MEM_CTRL);
}

static void crc_is_the_standard_one(void)
{
	EXPECT((u32)~crc32c(~0u, "123456789", 9) == 0xe3069283);
}

static void format_limits(void)
{
	struct ps_format_options opt = { 0 };
	struct ps ps = fresh_store();

	EXPECT(ps_format(sim_live(), PS_MIN_SIZE - 1, &opt) == PS_E_TOO_SMALL);
	opt.nr_files = 100000;
	EXPECT(ps_format(sim_live(), TEST_SIZE, &opt) == PS_E_GEOMETRY);
	opt.nr_files = ~0u;
	EXPECT(ps_format(sim_live(), TEST_SIZE, &opt) == PS_E_GEOMETRY);
	EXPECT(ps_open(&ps, sim_live(), TEST_SIZE, 0) == PS_OK);
	EXPECT(ps_open(&ps, sim_live(), PS_MIN_SIZE - 1, 0) == PS_E_TOO_SMALL);
	opt.nr_files = 0;
	EXPECT(ps_format(sim_live(), TEST_SIZE, &opt) == PS_OK);
	EXPECT(ps_open(&ps, sim_live(), TEST_SIZE, 0) == PS_OK);
	EXPECT(ps.nr_files == TEST_SIZE / PS_PAGE_SIZE / 2);
}

static void geometry_of(u64 size, u32 nr_files, u32 least_pages, u64 align)
{
	struct ps_format_options opt = { .cache_uuid = { 1 } };
	u8 *base = aligned_alloc(2 << 20, (size + (2 << 20)) & ~((2ULL << 20) - 1));
	struct ps ps;

	if (!base)
		abort();
	EXPECT(ps_format(base, size, &opt) == PS_OK);
	EXPECT(ps_open(&ps, base, size, 0) == PS_OK);
	EXPECT(ps.nr_files == nr_files);
	EXPECT(ps.nr_pages >= least_pages);
	EXPECT((u64)(ps.data - base) % align == 0);
	EXPECT((u8 *)ps_page_addr(&ps, ps.nr_pages) <= base + size);
	EXPECT((u8 *)(ps.pages + ps.nr_pages) <= ps.data);
	EXPECT(!memchr_inv(ps.pages, 0, ps.nr_pages * sizeof(*ps.pages)));
	EXPECT(ps_open(&ps, base, size - PS_PAGE_SIZE - 1, 0) == PS_E_GEOMETRY);
	free(base);
}

/* What alignment and tables take is little. */
static void geometry_by_size(void)
{
	geometry_of(32 << 20, 1024, (32 << 8) - 60, PS_PAGE_SIZE);
	geometry_of(64 << 20, 1024, (64 << 8) - 512, 2 << 20);
	geometry_of((64 << 20) + 4097, 1024, (64 << 8) - 512, 2 << 20);
	geometry_of(512 << 20, 8192, (512 << 8) - 2048, 2 << 20);
}

static void a_grown_device_opens(void)
{
	struct ps small = fresh_store(), ps;
	u8 *base = aligned_alloc(PS_PAGE_SIZE, 2 * TEST_SIZE);

	if (!base)
		abort();
	memcpy(base, small.base, TEST_SIZE);
	EXPECT(ps_open(&ps, base, 2 * TEST_SIZE, 0) == PS_OK);
	EXPECT(ps.nr_pages == small.nr_pages);
	free(base);
}

static void every_error_has_a_sentence(void)
{
	for (int err = PS_OK; err <= PS_E_NAMES; err++)
		EXPECT(strcmp(ps_strerror(err), "unknown error"));
	EXPECT(!strcmp(ps_strerror(PS_E_NAMES + 1), "unknown error"));
}

static void binding(void)
{
	const u8 *uuid = (const u8 *)"0123456789abcdef", none[PS_UUID_SIZE] = { 0 };
	struct ps_handle root = test_handle(1), other = test_handle(2);
	struct ps ps = fresh_store();

	EXPECT(!ps_is_bound(&ps));
	EXPECT(!ps_bound_to(&ps, none, &(struct ps_handle){ 0 }));
	ps_bind(&ps, uuid, &root);
	EXPECT(ps_open(&ps, sim_live(), TEST_SIZE, 0) == PS_OK);
	EXPECT(ps_is_bound(&ps));
	EXPECT(ps_bound_to(&ps, uuid, &root));
	EXPECT(!ps_bound_to(&ps, uuid, &other));
	EXPECT(!ps_bound_to(&ps, none, &root));
	ps_bind(&ps, none, &root);
	EXPECT(ps_is_bound(&ps));
	ps_unbind(&ps);
	EXPECT(ps_open(&ps, sim_live(), TEST_SIZE, 0) == PS_OK);
	EXPECT(!ps_is_bound(&ps));
	EXPECT(!ps_bound_to(&ps, uuid, &root));
}

static void file_life(void)
{
	struct ps_handle handle = { .type = 0x81, .len = PS_HANDLE_MAX, .bytes = "full length" };
	struct ps_file_info info;
	struct ps ps = fresh_store();

	EXPECT(!ps_file_read(&ps, 0, &info) && info.state == PS_FILE_FREE);
	ps_file_create(&ps, 0, &handle, 1ULL << 51);
	EXPECT(!ps_file_read(&ps, 0, &info) && info.state == PS_FILE_LIVE);
	EXPECT(info.generation == 1 && info.size == 1ULL << 51 && !info.time);
	ps_file_set_time(&ps, 0, -5);
	EXPECT(!ps_file_read(&ps, 0, &info) && info.time == -5 && info.size == 1ULL << 51);
	EXPECT(!memcmp(&info.handle, &handle, sizeof(handle)));
	ps_file_set_size(&ps, 0, 0);
	ps_file_set_state(&ps, 0, PS_FILE_UNLINKED);
	EXPECT(!ps_file_read(&ps, 0, &info) && info.state == PS_FILE_UNLINKED && !info.size);
	ps_file_free(&ps, 0);
	EXPECT(!ps_file_read(&ps, 0, &info) && info.state == PS_FILE_FREE);
	EXPECT(info.generation == 1);
	handle.len = 0;
	ps_file_create(&ps, 0, &handle, 0);
	EXPECT(!ps_file_read(&ps, 0, &info) && info.generation == 2 && !info.handle.len && !info.time);
}

static void generation_skips_zero(void)
{
	struct ps_handle handle = test_handle(1);
	struct ps_file_info info;
	struct ps ps = fresh_store();

	ps.files[0].commit = cpu_to_le64(0xffffffffULL << PS_FILE_GEN_SHIFT);
	ps_file_create(&ps, 0, &handle, 0);
	EXPECT(!ps_file_read(&ps, 0, &info) && info.generation == 1);
}

static void page_life(void)
{
	struct ps_handle handle = test_handle(1);
	struct ps_page_info info;
	struct ps ps = fresh_store();
	u32 page = ps.nr_pages - 1, file = ps.nr_files - 1;
	struct ps_move move = { .page = page, .file = file, .index = PS_MAX_INDEX - 1 };

	ps_file_create(&ps, file, &handle, 0);
	EXPECT(!ps_page_read(&ps, page, &info) && info.state == PS_PAGE_FREE);
	ps_page_prepare(&ps, page, file, move.index);
	EXPECT(!ps_page_read(&ps, page, &info) && info.state == PS_PAGE_FREE);
	ps_pages_commit(&ps, &move, 1, PS_PAGE_CLEAN);
	EXPECT(!ps_page_read(&ps, page, &info) && info.state == PS_PAGE_CLEAN);
	EXPECT(info.file == file && info.index == PS_MAX_INDEX - 1);
	ps_page_set_state(&ps, page, PS_PAGE_OUT_OF_SYNC);
	EXPECT(!ps_page_read(&ps, page, &info) && info.state == PS_PAGE_OUT_OF_SYNC);
	ps_file_free(&ps, file);
	EXPECT(ps_page_read(&ps, page, &info) == -ESTALE);
	EXPECT(!test_check(&ps));
	ps_file_create(&ps, file, &handle, 0);
	EXPECT(ps_page_read(&ps, page, &info) == -ESTALE);
	ps_page_free(&ps, page);
	EXPECT(!ps_page_read(&ps, page, &info) && info.state == PS_PAGE_FREE);
}

static void page_bytes(void)
{
	struct ps ps = fresh_store();
	u8 *at = ps_page_addr(&ps, 7);

	EXPECT((u64)(at - ps.data) == 7 * PS_PAGE_SIZE && (u64)at % PS_PAGE_SIZE == 0);
	memset(at, 0xee, PS_PAGE_SIZE);
	ps_page_write(&ps, 7, 5, "abc", 3);
	ps_page_zero(&ps, 7, PS_PAGE_SIZE - 2, 2);
	EXPECT(!memcmp(at + 5, "abc", 3) && at[4] == 0xee && at[8] == 0xee);
	EXPECT(!memcmp(at + PS_PAGE_SIZE - 3, "\xee\0", 3));
}

void basic_tests(void)
{
	crc_is_the_standard_one();
	format_limits();
	geometry_by_size();
	a_grown_device_opens();
	every_error_has_a_sentence();
	binding();
	file_life();
	generation_skips_zero();
	page_life();
	page_bytes();
}
