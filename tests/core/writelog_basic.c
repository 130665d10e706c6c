// SPDX-License-Identifier: GPL-2.0-only
/*
 * What each function of the write log does when nothing goes wrong, and at its
 * limits.
 */
#include "store/store.h"
#include "test.h"
#include "writelog_crash.h"

#include <stdio.h>
#include <stdlib.h>

static struct log fresh_log(void)
{
	static const struct log_scenario scenario = { .name = "basic" };
	struct log log;

	log_setup(&scenario, &log, SIM_MEM_CTRL);
	return log;
}

static void *image_of(u64 size)
{
	void *image = aligned_alloc(WL_PAGE_SIZE, (size + WL_PAGE_SIZE) & ~(WL_PAGE_SIZE - 1ULL));

	if (!image)
		abort();
	return image;
}

static void format_limits(void)
{
	struct wl_format_options opt = { };
	struct log log = fresh_log();
	struct wl wl;

	EXPECT(wl_format(sim_live(), WL_MIN_SIZE - 1, &opt) == WL_E_TOO_SMALL);
	for (u32 i = 0; i < 8; i++) {
		static const struct wl_format_options bad[] = {
			{ .nr_gens = WL_MAX_GENERATIONS + 1 }, { .nr_gens = ~0u },
			{ .chunk_size = 2048 }, { .chunk_size = 4097 }, { .chunk_size = LOG_SIZE },
			{ .align = 128 }, { .align = 8192 }, { .align = 768 },
		};

		EXPECT(wl_format(sim_live(), LOG_SIZE, &bad[i]) == WL_E_GEOMETRY);
	}
	EXPECT(wl_open(&wl, sim_live(), LOG_SIZE, 0) == WL_OK);
	EXPECT(!memcmp(&wl.super, &log.wl.super, sizeof(wl.super)));
	EXPECT(wl_open(&wl, sim_live(), WL_MIN_SIZE - 1, 0) == WL_E_TOO_SMALL);
}

static void geometry_of(u64 size, u32 nr_gens, u32 chunk_size, u64 align, u32 waste)
{
	struct wl_format_options opt = { .uuid = { 1 } };
	u8 *base = image_of(size);
	u64 used;
	struct wl wl;

	EXPECT(wl_format(base, size, &opt) == WL_OK);
	EXPECT(wl_open(&wl, base, size, 0) == WL_OK);
	EXPECT(wl.nr_gens == nr_gens && wl.chunk_size == chunk_size && wl.align == WL_PAGE_SIZE);
	EXPECT((u64)(wl.data - base) % align == 0 && !wl.data_crc);
	used = (u64)wl.nr_gens * wl.nr_chunks * wl.chunk_size;
	EXPECT(wl.data + used <= base + size);
	EXPECT(size - used <= waste);
	EXPECT(wl_open(&wl, base, size - 1, 0) == (size > WL_MIN_SIZE ? WL_E_GEOMETRY : WL_E_TOO_SMALL));
	free(base);
}

static void geometry_by_size(void)
{
	geometry_of(1 << 20, 4, 64 << 10, WL_PAGE_SIZE, 256 << 10);
	geometry_of(4 << 20, 4, 64 << 10, WL_PAGE_SIZE, 256 << 10);
	geometry_of(16 << 20, 16, 64 << 10, WL_PAGE_SIZE, 1 << 20);
	geometry_of(64 << 20, 16, 124 << 10, 2 << 20, 3 << 20);
	geometry_of((64 << 20) + 4097, 16, 124 << 10, 2 << 20, 3 << 20);
	geometry_of(512 << 20, 16, 1020 << 10, 2 << 20, 4 << 20);
}

/* A write log is not taken for a cache, nor a cache for a write log. */
static void each_refuses_the_other(void)
{
	static u8 image[PS_MIN_SIZE];
	struct ps_format_options cache = { .cache_uuid = { 1 } };
	struct wl_format_options log = { .uuid = { 1 } };
	struct ps ps;
	struct wl wl;

	EXPECT(wl_open(&wl, image, sizeof(image), 0) == WL_E_NOT_FORMATTED);
	EXPECT(!wl_format(image, sizeof(image), &log));
	EXPECT(ps_open(&ps, image, sizeof(image), 0) == PS_E_WRITELOG);
	memset(image, 0, WL_PAGE_SIZE);
	EXPECT(ps_open(&ps, image, sizeof(image), 0) == PS_E_WRITELOG);
	EXPECT(!ps_format(image, sizeof(image), &cache));
	EXPECT(wl_open(&wl, image, sizeof(image), 0) == WL_E_PAGESTORE);
	memset(image + WL_PAGE_SIZE, 0, WL_PAGE_SIZE);
	EXPECT(wl_open(&wl, image, sizeof(image), 0) == WL_E_PAGESTORE);
	memset(image + WL_PAGE_SIZE, 0x11, 300);
	EXPECT(wl_open(&wl, image, sizeof(image), 0) == WL_E_FOREIGN);
}

static void every_error_has_a_sentence(void)
{
	for (int err = WL_OK; err <= WL_E_GEOMETRY; err++)
		EXPECT(strcmp(wl_strerror(err), "unknown error"));
	EXPECT(!strcmp(wl_strerror(WL_E_GEOMETRY + 1), "unknown error"));
}

static void binding(void)
{
	u8 id[WL_ORIGIN_ID_SIZE] = "disk", other[WL_ORIGIN_ID_SIZE] = "disc", none[WL_ORIGIN_ID_SIZE] = "";
	struct log log = fresh_log();

	EXPECT(!wl_is_bound(&log.wl));
	wl_bind(&log.wl, 100, id);
	EXPECT(!wl_open(&log.wl, sim_live(), LOG_SIZE, 0));
	EXPECT(wl_is_bound(&log.wl) && log.wl.super.origin_sectors == cpu_to_le64(100));
	EXPECT(wl_bound_to(&log.wl, id) && wl_bound_to(&log.wl, none) && !wl_bound_to(&log.wl, other));
	wl_bind(&log.wl, 200, none);
	EXPECT(wl_bound_to(&log.wl, other));
	wl_unbind(&log.wl);
	EXPECT(!wl_open(&log.wl, sim_live(), LOG_SIZE, 0) && !wl_is_bound(&log.wl));
}

static void fingerprints(void)
{
	u8 id[WL_ORIGIN_ID_SIZE] = "disk", block[WL_PAGE_SIZE] = { 1 };
	struct log log = fresh_log();
	__le32 sums[2];

	EXPECT(wl_fingerprint(&log.wl) == WL_FINGERPRINT_NONE);
	EXPECT(!wl_fingerprint_blocks(7) && wl_fingerprint_blocks(17) == 2);
	EXPECT(wl_fingerprint_blocks(1ULL << 40) == WL_FINGERPRINT_BLOCKS);
	sums[0] = wl_fingerprint_block(&log.wl, block);
	block[4095] = 1;
	sums[1] = wl_fingerprint_block(&log.wl, block);
	EXPECT(sums[0] != sums[1]);
	EXPECT(!wl_fingerprint_of(&log.wl, sums, 0));
	EXPECT(wl_fingerprint_of(&log.wl, sums, 1) != wl_fingerprint_of(&log.wl, sums, 2));
	wl_bind(&log.wl, 100, id);
	wl_fingerprint_set(&log.wl, WL_FINGERPRINT_CHANGING);
	EXPECT(!wl_open(&log.wl, sim_live(), LOG_SIZE, 0));
	EXPECT(wl_fingerprint(&log.wl) == WL_FINGERPRINT_CHANGING);
	/* An older Forebay looks at this flag. */
	EXPECT(le32_to_cpu(log.wl.super.flags) & WL_SUPER_FINGERPRINT);
	wl_bind(&log.wl, 200, id);
	EXPECT(!wl_open(&log.wl, sim_live(), LOG_SIZE, 0) && !wl_fingerprint(&log.wl) && !log.wl.super.flags);
}

static void generation_life(void)
{
	struct log log = fresh_log();
	struct wl_gen_info info;

	EXPECT(wl_next_id(&log.wl) == 1);
	EXPECT(!wl_gen_read(&log.wl, 3, &info) && info.state == WL_GEN_FREE && !info.id);
	EXPECT(!wl_gen_open(&log.wl, 3, 7));
	EXPECT(!wl_gen_read(&log.wl, 3, &info) && info.state == WL_GEN_OPEN && info.id == 7);
	wl_gen_seal(&log.wl, 3, 7, 5);
	EXPECT(!wl_gen_read(&log.wl, 3, &info) && info.state == WL_GEN_SEALED && info.entries == 5);
	wl_gen_free(&log.wl, 3);
	EXPECT(!wl_gen_read(&log.wl, 3, &info) && info.state == WL_GEN_FREE && info.id == 7);
	EXPECT(!info.entries && wl_next_id(&log.wl) == 8);
	EXPECT(wl_gen_open(&log.wl, 3, WL_MAX_ID + 1) == -EOVERFLOW);
	EXPECT(!wl_gen_open(&log.wl, 3, WL_MAX_ID) && wl_next_id(&log.wl) == WL_MAX_ID + 1);
	wl_gen_free(&log.wl, 2);
	EXPECT(!wl_gen_read(&log.wl, 2, &info) && info.state == WL_GEN_FREE && !info.id);
}

/* Chunks remember an identifier that the table has lost. */
static void next_id_from_chunks(void)
{
	struct log log = fresh_log();

	log.id = 41;
	log_open_gen(&log, 1);
	log_write(&log, 1, 0, 1);
	log.wl.gens[1].word ^= 1ULL << 63;
	EXPECT(wl_next_id(&log.wl) == 43);
	wl_gen_free(&log.wl, 1);
	EXPECT(!log_check(&log.wl));
}

/* A chunk of 64 KiB with pages of 4 KiB, as data that a disk takes directly. */
static void room_and_alignment(void)
{
	struct wl_format_options opt = { .nr_gens = 4, .chunk_size = 65536 };
	u8 *base = image_of(LOG_SIZE), data[8192] = { 1 };
	struct wl_slot slot = { };
	struct wl_entry entry;
	struct wl wl;

	EXPECT(!wl_format(base, LOG_SIZE, &opt) && !wl_open(&wl, base, LOG_SIZE, 0));
	EXPECT(wl_slot_full(&wl, &slot) && !wl_slot_space(&wl, &slot, 512));
	EXPECT(!wl_gen_open(&wl, 0, 1));
	wl_slot_take(&slot, 0, 1, 1);
	EXPECT(!wl_slot_full(&wl, &slot) && wl_slot_space(&wl, &slot, 512) == 512);
	EXPECT(wl_slot_space(&wl, &slot, 1 << 20) == 61440);
	EXPECT(wl_slot_space(&wl, &slot, 65536 - 128) == 65536 - 128);
	EXPECT(wl_slot_space(&wl, &slot, 65536 - 64) == 61440);
	wl_begin(&wl, &slot, WL_OP_WRITE, 0, 1, 0);
	wl_write(&wl, &slot, data, 512);
	wl_end(&wl, &slot, &entry);
	EXPECT(wl_entry_data(&wl, &entry) == wl.data + 65536);
	wl_begin(&wl, &slot, WL_OP_WRITE, 1, 3, 1);
	wl_write(&wl, &slot, data, 1536);
	wl_end(&wl, &slot, &entry);
	EXPECT(wl_entry_data(&wl, &entry) == wl.data + 65536 + 512);
	wl_begin(&wl, &slot, WL_OP_WRITE, 8, 16, 2);
	wl_write(&wl, &slot, data, 8192);
	wl_end(&wl, &slot, &entry);
	EXPECT(wl_entry_data(&wl, &entry) == wl.data + 65536 + 4096 && entry.index == 2);
	EXPECT(wl_slot_space(&wl, &slot, 1 << 20) == 65536 - 16384);
	wl_commit(&wl, &slot);
	EXPECT(wl_chunk_read(&wl, 0, 1, 1) == 3 && wl_chunk_read(&wl, 0, 1, 0) == 0);
	EXPECT(!wl_entry_read(&wl, 0, 1, 1, 2, &entry) && entry.sector == 8);
	EXPECT(!memcmp(wl_entry_data(&wl, &entry), data, 8192) && wl_entry_len(&entry) == 8192);
	free(base);
}

/* Data are split at whole sectors, even if their place in the log begins between two. */
static void room_in_sectors(void)
{
	struct log log = fresh_log();

	log_open_gen(&log, 0);
	EXPECT(wl_slot_space(&log.wl, &log.slots[0], 1 << 20) == 3584);
	log_entry(&log, 0, WL_OP_DISCARD, 0, 1);
	log_entry(&log, 0, WL_OP_WRITE, 0, 5);
	EXPECT(wl_slot_space(&log.wl, &log.slots[0], 1024) == 1024);
	EXPECT(wl_slot_space(&log.wl, &log.slots[0], 1536) == 1024);
}

/* Writes of any size, split to fit the space that is left: no entry harms another. */
static void entries_of_every_size(u32 align)
{
	static u8 data[24 << 10];
	struct wl_format_options opt = {
		.nr_gens = 2, .nr_chunks = 7, .chunk_size = 65536, .align = align, .data_crc = true,
	};
	struct wl_slot slot = { };
	struct wl_entry entry;
	u8 *base = image_of(LOG_SIZE);
	u32 chunk = 0, seq = 0;
	struct wl wl;

	EXPECT(!wl_format(base, LOG_SIZE, &opt) && !wl_open(&wl, base, LOG_SIZE, 0));
	EXPECT(!wl_gen_open(&wl, 0, 1));
	sim_seed(align);
	for (;;) {
		u32 want = 512 * (1 + sim_random(sizeof(data) / 512));
		u32 room = wl_slot_space(&wl, &slot, want);

		if (!room && chunk == 7)
			break;
		if (!room) {
			wl_slot_take(&slot, 0, 1, chunk++);
			continue;
		}
		EXPECT(room <= want && room % 512 == 0);
		memset(data, (int)seq, room);
		wl_begin(&wl, &slot, WL_OP_WRITE, 0, room / 512, seq++);
		wl_write(&wl, &slot, data, room);
		wl_end(&wl, &slot, &entry);
		EXPECT(entry.data % (room % align ? WL_DATA_ALIGN : align) == 0);
		wl_commit(&wl, &slot);
	}
	wl_gen_seal(&wl, 0, slot.id, seq);
	EXPECT(!log_check(&wl));
	free(base);
}

/*
 * Fills a chunk with entries without data. It is full when its headers reach its beginning, or when its
 * word can count no more.
 */
static void a_chunk_full_of_headers(u32 chunk_size, u32 entries)
{
	const u64 size = 24 << 20;
	struct wl_format_options opt = { .nr_gens = 2, .nr_chunks = 1, .chunk_size = chunk_size };
	struct wl_slot slot = { };
	struct wl_cursor cursor;
	struct wl_stream stream;
	struct wl_entry entry;
	u8 *base = image_of(size);
	struct wl wl;
	u8 before[WL_LINE];
	u32 n = 0;

	EXPECT(!wl_format(base, size, &opt) && !wl_open(&wl, base, size, 0));
	EXPECT(!wl_gen_open(&wl, 1, 1));
	wl_slot_take(&slot, 1, 1, 0);
	memcpy(before, wl.data + chunk_size - WL_LINE, WL_LINE);
	while (!wl_slot_full(&wl, &slot)) {
		wl_begin(&wl, &slot, WL_OP_ZEROES, n, 1, n);
		wl_end(&wl, &slot, &entry);
		n++;
	}
	wl_commit(&wl, &slot);
	EXPECT(n == entries && !wl_slot_space(&wl, &slot, 512));
	EXPECT(!memcmp(before, wl.data + chunk_size - WL_LINE, WL_LINE));
	wl_cursor_start(&cursor, &wl, &stream, 0);
	while (wl_cursor_next(&cursor, &entry) == 1)
		n--;
	EXPECT(!n && entry.sector == entries - 1);
	free(base);
}

static void chunks_full_of_headers(void)
{
	a_chunk_full_of_headers(8 << 20, WL_MAX_FILL);
	a_chunk_full_of_headers(2 << 20, (2 << 20) / WL_LINE - 1);
	a_chunk_full_of_headers(4096, 4096 / WL_LINE - 1);
}

/* Replay goes by the generation's identifier, then by sequence number; never by place. */
static void replay_in_order(void)
{
	static const struct { u32 gen, slot; u64 sector; } writes[] = {
		{ 2, 1, 10 }, { 2, 0, 11 }, { 2, 0, 12 }, { 2, 1, 13 }, { 2, 0, 14 },
		{ 0, 0, 15 }, { 0, 1, 16 }, { 0, 0, 17 }, { 3, 1, 18 }, { 1, 1, 19 },
	};
	struct log log = fresh_log();
	struct log_view view;
	u32 gen = LOG_GENS;

	for (u32 i = 0; i < 10; i++) {
		if (writes[i].gen != gen)
			log_open_gen(&log, writes[i].gen);
		gen = writes[i].gen;
		log_write(&log, writes[i].slot, writes[i].sector, 1);
	}
	log_view_read(&view, &log.wl);
	EXPECT(view.n == 10 && !view.damage);
	for (u32 i = 0; i < 10; i++)
		EXPECT(view.entries[i].sector == 10 + i);
	EXPECT(view.entries[0].order == wl_order(1, 0) && view.entries[9].order == wl_order(4, 0));
	EXPECT(wl_order_id(log.last.order) == 4 && !log_check(&log.wl));
}

/* As many writers as there are chunks, each entry by any of them. */
static void replay_merges_many_chunks(void)
{
	struct wl_format_options opt = { .nr_gens = 2, .nr_chunks = 60, .chunk_size = 4096 };
	struct wl_slot slots[60] = { };
	struct wl_stream streams[60];
	struct wl_cursor cursor;
	struct wl_entry entry;
	u8 *base = image_of(LOG_SIZE);
	u32 n = 0;
	struct wl wl;

	EXPECT(!wl_format(base, LOG_SIZE, &opt) && !wl_open(&wl, base, LOG_SIZE, 0));
	EXPECT(!wl_gen_open(&wl, 1, 1));
	sim_seed(1);
	for (u32 i = 0; i < 60; i++)
		wl_slot_take(&slots[i], 1, 1, i);
	for (u32 i = 0; i < 1000; i++) {
		struct wl_slot *slot = &slots[sim_random(60)];

		wl_begin(&wl, slot, WL_OP_DISCARD, i, 1, i);
		wl_end(&wl, slot, &entry);
		wl_commit(&wl, slot);
	}
	wl_cursor_start(&cursor, &wl, streams, 0);
	while (wl_cursor_next(&cursor, &entry) == 1 && entry.sector == n)
		n++;
	EXPECT(n == 1000);
	free(base);
}

static void data_checksums(void)
{
	struct log log = fresh_log();

	log_format(1, true);
	EXPECT(!wl_open(&log.wl, sim_live(), LOG_SIZE, 0) && log.wl.data_crc);
	log_open_gen(&log, 0);
	log_entry(&log, 0, WL_OP_DISCARD, 0, 1);
	EXPECT(wl_entry_verify(&log.wl, &log.last));
	log_write(&log, 0, 5, 3);
	EXPECT(wl_entry_verify(&log.wl, &log.last) && !log_check(&log.wl));
	((u8 *)wl_entry_data(&log.wl, &log.last))[1535] ^= 1;
	EXPECT(!wl_entry_verify(&log.wl, &log.last) && log_check(&log.wl) == 1);
}

/* The source of a direct write, which its program changes while it is copied. */
static u8 unstable[4 * 512];

static void change_source(void)
{
	for (u32 i = 0; i < sizeof(unstable); i++)
		unstable[i]++;
}

/* An entry is whole whatever becomes of its source: its checksum is that of the bytes in the log. */
static void checksum_of_a_changing_source(void)
{
	struct log log = fresh_log();
	struct wl_slot *slot = &log.slots[0];

	log_format(1, true);
	EXPECT(!wl_open(&log.wl, sim_live(), LOG_SIZE, 0));
	log_open_gen(&log, 0);
	sim_after_copies(change_source);
	wl_begin(&log.wl, slot, WL_OP_WRITE, 5, 4, 0);
	wl_write(&log.wl, slot, unstable, 100);
	wl_write(&log.wl, slot, unstable + 100, sizeof(unstable) - 100);
	wl_end(&log.wl, slot, &log.last);
	sim_after_copies(NULL);
	wl_commit(&log.wl, slot);
	EXPECT(unstable[0] && wl_entry_verify(&log.wl, &log.last) && !log_check(&log.wl));
}

void log_basic_tests(void)
{
	format_limits();
	geometry_by_size();
	each_refuses_the_other();
	every_error_has_a_sentence();
	binding();
	fingerprints();
	generation_life();
	next_id_from_chunks();
	room_and_alignment();
	room_in_sectors();
	for (u32 align = WL_DATA_ALIGN; align <= WL_PAGE_SIZE; align *= 2)
		entries_of_every_size(align);
	chunks_full_of_headers();
	replay_in_order();
	replay_merges_many_chunks();
	data_checksums();
	checksum_of_a_changing_source();
}
