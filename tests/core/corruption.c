// SPDX-License-Identifier: GPL-2.0-only
/*
 * Stores that were damaged, and devices that never held one. Whatever the
 * bytes are, core functions must neither crash nor read outside the device
 * (the sanitizers watch), and must report what the checksums cover.
 */
#include "crash.h"
#include "test.h"

#include <stdio.h>

#define GARBAGE_IMAGES	400

static u8 good[TEST_SIZE];	/* a store with everything in it */
static u8 *image;		/* what is damaged */
static struct ps ps;		/* of the good image */

/* Files 0 live, 1 unlinked, 2 free after a life; pages 0 to 7. */
static void setup_everything(struct ps *store)
{
	struct ps_handle root = test_handle(9);

	for (u32 file = 0; file < 3; file++) {
		struct ps_handle handle = test_handle(file);

		ps_file_create(store, file, &handle, 5000 * file);
	}
	for (u32 page = 0; page < 8; page++) {
		struct ps_move move = { .page = page, .file = page % 3, .index = page };

		ps_page_prepare(store, page, move.file, move.index);
		ps_pages_commit(store, &move, 1,
				page & 1 ? PS_PAGE_CLEAN : PS_PAGE_OUT_OF_SYNC);
	}
	ps_file_set_state(store, 1, PS_FILE_UNLINKED);
	ps_file_free(store, 2);
	ps_bind(store, (const u8 *)"lower-filesystem", &root);
}

static void start(void)
{
	static const struct scenario scenario = {
		.name = "corruption", .setup = setup_everything,
	};

	ps = crash_setup(&scenario, SIM_MEM_CTRL);
	image = sim_live();
	memcpy(good, image, TEST_SIZE);
}

static enum ps_error open_image(struct ps *store, u32 flags)
{
	return ps_open(store, image, TEST_SIZE, flags);
}

/* Reads everything that can be read; returns what ps_check() found. */
static u64 read_all(const struct ps *store)
{
	for (u32 file = 0; file < store->nr_files; file++) {
		struct ps_file_info info;

		ps_file_read(store, file, &info);
	}
	for (u32 page = 0; page < store->nr_pages; page++) {
		struct ps_page_info info;

		if (!ps_page_read(store, page, &info) && info.state != PS_PAGE_FREE)
			EXPECT(info.file < store->nr_files && info.index < PS_MAX_INDEX);
	}
	return test_check(store);
}

/* --- single bytes --- */

/* What a change of a byte at this offset must do. */
enum verdict { IS_HARMLESS, IS_REPORTED, IS_EITHER };

/* Version 1. */
static enum verdict super_verdict(u64 offset)
{
	return offset % PS_PAGE_SIZE < PS_SUPER_PLAIN_SIZE ? IS_REPORTED : IS_HARMLESS;
}

/* Checksums don't cover size, time, padding and state; they cover the rest while the record is in use. */
static enum verdict file_verdict(u64 offset, u8 change)
{
	u32 file = offset / sizeof(struct ps_file_onmedia);
	u32 field = offset % sizeof(struct ps_file_onmedia);
	u32 len = offsetof(struct ps_file_onmedia, handle) + PS_HANDLE_MAX;

	if (field == 0)
		return change & ~PS_FILE_STATE_MASK ? IS_REPORTED : IS_EITHER;
	if (field < PS_FILE_GEN_SHIFT / 8)
		return IS_REPORTED;
	if (file >= 2)	/* free */
		return IS_HARMLESS;
	if (field >= offsetof(struct ps_file_onmedia, size) &&
	    field < offsetof(struct ps_file_onmedia, crc))
		return IS_HARMLESS;
	return field < len ? IS_REPORTED : IS_HARMLESS;
}

static enum verdict page_verdict(u64 offset, u8 change)
{
	u32 page = offset / sizeof(struct ps_page_onmedia);
	u32 field = offset % sizeof(struct ps_page_onmedia);

	if (page >= 8)	/* free */
		return field < offsetof(struct ps_page_onmedia, check) ? IS_REPORTED : IS_HARMLESS;
	if (field == 0 && !(change & ~PS_PAGE_STATE_MASK))
		return IS_EITHER;
	return IS_REPORTED;
}

static void flip(u64 offset, u8 change, enum verdict verdict)
{
	struct ps store;
	enum ps_error err;

	image[offset] ^= change;
	err = open_image(&store, PS_OPEN_READ_ONLY);
	if (EXPECT(!err)) {
		u64 found = read_all(&store);

		if (verdict != IS_EITHER && !EXPECT(verdict == (found ? IS_REPORTED : IS_HARMLESS)))
			printf("\toffset %llu, change %02x\n", offset, change);
	}
	image[offset] ^= change;
}

static void every_byte(void)
{
	u64 pages = (u8 *)ps.pages - ps.base, files = (u8 *)ps.files - ps.base;

	for (u32 bit = 0; bit < 9; bit++) {
		u8 change = bit < 8 ? 1 << bit : 0xff;

		for (u64 i = 0; i < PS_NR_SUPERS * PS_PAGE_SIZE; i++)
			if (i % PS_PAGE_SIZE < 200)
				flip(i, change, super_verdict(i));
		for (u64 i = 0; i < 4 * sizeof(*ps.files); i++)
			flip(files + i, change, file_verdict(i, change));
		for (u64 i = 0; i < 10 * sizeof(*ps.pages); i++)
			flip(pages + i, change, page_verdict(i, change));
	}
}

/* --- whole devices --- */

static void expect_refused(enum ps_error why)
{
	struct ps store;

	EXPECT(open_image(&store, PS_OPEN_READ_ONLY) == why);
	EXPECT(open_image(&store, 0) == why);
}

static void blank_device(void)
{
	memset(image, 0, TEST_SIZE);
	expect_refused(PS_E_NOT_FORMATTED);
}

static void put_mark(u32 offset, const char *mark)
{
	memset(image, 0, TEST_SIZE);
	memcpy(image + offset, mark, strlen(mark));
}

/* Signatures where file systems, partition tables and LVM keep them. */
static void foreign_devices(void)
{
	put_mark(1024 + 56, "\x53\xef");	/* ext4 */
	expect_refused(PS_E_FOREIGN);
	put_mark(PS_PAGE_SIZE - 10, "SWAPSPACE2");
	expect_refused(PS_E_FOREIGN);
	put_mark(510, "\x55\xaa");		/* vfat, MBR */
	expect_refused(PS_E_FOREIGN);
	put_mark(512, "LABELONE");		/* LVM */
	expect_refused(PS_E_FOREIGN);
	put_mark(0, "XFSB");
	memset(image + 4, 0x11, 260);
	expect_refused(PS_E_FOREIGN);
	put_mark(1024 + 56, "\x53\xef");
	memcpy(image + PS_PAGE_SIZE, good + PS_PAGE_SIZE, PS_PAGE_SIZE);
	expect_refused(PS_E_FOREIGN);		/* though copy B is of a store, and whole */
}

static void damaged_copies(void)
{
	for (u32 copy = 0; copy < PS_NR_SUPERS; copy++) {
		struct ps store;

		memcpy(image, good, TEST_SIZE);
		image[copy * PS_PAGE_SIZE + 20] ^= 4;
		EXPECT(open_image(&store, PS_OPEN_READ_ONLY) == PS_OK && !store.repaired);
		EXPECT(image[copy * PS_PAGE_SIZE + 20] != good[copy * PS_PAGE_SIZE + 20]);
		EXPECT(test_check(&store) == 1);
		EXPECT(open_image(&store, 0) == PS_OK && store.repaired == 1u << copy);
		EXPECT(!memcmp(image, good, TEST_SIZE));
		memset(image + copy * PS_PAGE_SIZE, 0, PS_PAGE_SIZE);
		EXPECT(open_image(&store, 0) == PS_OK && store.repaired == 1u << copy);
	}
	image[20] ^= 1;
	image[PS_PAGE_SIZE + 20] ^= 1;
	expect_refused(PS_E_CORRUPT);
}

static u32 super_crc(const struct ps_super_onmedia *super)
{
	struct ps_super_onmedia s = *super;

	s.crc = 0;
	return ~crc32c(~0u, &s, PS_SUPER_PLAIN_SIZE);
}

/* Puts a superblock into both copies, with a good checksum. */
static void put_super(struct ps_super_onmedia s)
{
	s.crc = cpu_to_le32(super_crc(&s));
	for (u32 copy = 0; copy < PS_NR_SUPERS; copy++)
		memcpy(image + copy * PS_PAGE_SIZE, &s, sizeof(s));
}

static void newer_version(void)
{
	struct ps_super_onmedia s = ps.super;

	s.version = cpu_to_le32(PS_VERSION + 1);
	put_super(s);
	expect_refused(PS_E_VERSION);
}

/* Whatever the numbers are, the store is refused, or every table lies inside the device. */
static void try_geometry(struct ps_super_onmedia s)
{
	struct ps store;
	enum ps_error err;

	put_super(s);
	err = open_image(&store, PS_OPEN_READ_ONLY);
	EXPECT(err == PS_E_GEOMETRY || err == PS_OK);
	if (!err)
		read_all(&store);
}

static void bad_geometry(void)
{
	static const u64 evil[] = { 0, 1, 8, 4095, 4096, 8192, 12288, TEST_SIZE - 4096, TEST_SIZE,
		TEST_SIZE + 1, 1ULL << 22, 1ULL << 31, 1ULL << 32, 1ULL << 52, 1ULL << 60,
		1ULL << 63, ~0ULL, ~0ULL - 4095, ~0ULL / 16, ~0ULL / 64 + 1, ~0ULL / 4096 + 1 };
	const u32 first = offsetof(struct ps_super_onmedia, device_size) / 8;
	const u32 n = sizeof(evil) / sizeof(*evil);

	for (u32 a = 0; a < 6 * n; a++) {
		for (u32 b = 0; b < 6 * n; b++) {
			struct ps_super_onmedia s = ps.super;
			__le64 *words = (__le64 *)&s;

			words[first + a / n] = cpu_to_le64(evil[a % n]);
			words[first + b / n] = cpu_to_le64(evil[b % n]);
			try_geometry(s);
		}
	}
	memcpy(image, good, TEST_SIZE);
	put_super(ps.super);
	EXPECT(ps_open(&(struct ps){ 0 }, image, TEST_SIZE - PS_PAGE_SIZE, 0) == PS_E_TOO_SMALL);
}

static void bad_root_handle(void)
{
	struct ps_super_onmedia s = ps.super;

	s.root_len = cpu_to_le32(PS_HANDLE_MAX + 1);
	put_super(s);
	expect_refused(PS_E_CORRUPT);
}

/* --- records that are whole but cannot all be true --- */

static u64 found_with(void (*damage)(void))
{
	struct ps store;

	memcpy(image, good, TEST_SIZE);
	damage();
	EXPECT(open_image(&store, PS_OPEN_READ_ONLY) == PS_OK);
	return read_all(&store);
}

static void nothing(void)
{
}

static void same_handle_twice(void)
{
	struct ps_handle handle = test_handle(0);

	ps_file_create(&ps, 5, &handle, 0);
}

static void same_place_twice(void)
{
	struct ps_move move = { .page = 100, .file = 0, .index = 3 };

	ps_page_prepare(&ps, move.page, move.file, move.index);
	ps_pages_commit(&ps, &move, 1, PS_PAGE_CLEAN);
}

/* A page record copied to where it does not belong. */
static void record_elsewhere(void)
{
	ps.pages[200] = ps.pages[0];
}

static void generation_zero(void)
{
	memset(&ps.files[6], 0, sizeof(ps.files[6]));
	ps.files[6].commit = cpu_to_le64(PS_FILE_LIVE);
}

static void copies_disagree(void)
{
	struct ps_super_onmedia *b = (void *)(image + PS_PAGE_SIZE);

	b->cache_uuid[0] ^= 1;
	b->crc = cpu_to_le32(super_crc(b));
}

static void older_copy(void)
{
	struct ps_super_onmedia *b = (void *)(image + PS_PAGE_SIZE);

	b->seq = cpu_to_le64(le64_to_cpu(b->seq) - 1);
	b->crc = cpu_to_le32(super_crc(b));
}

/* Damage of a file's record damages its pages 0, 3 and 6, too. */
static void damaged_file(void)
{
	ps.files[0].handle[0] ^= 1;
}

static void contradictions(void)
{
	EXPECT(found_with(nothing) == 0);
	EXPECT(found_with(older_copy) == 0);
	EXPECT(found_with(same_handle_twice) == 2);
	EXPECT(found_with(same_place_twice) == 2);
	EXPECT(found_with(record_elsewhere) == 1);
	EXPECT(found_with(generation_zero) == 1);
	EXPECT(found_with(copies_disagree) == 1);
	EXPECT(found_with(damaged_file) == 1 + 3);
}

/* Every page of a full table names the same place: all sort keys are equal. */
static void full_of_twins(void)
{
	struct ps store;

	memcpy(image, good, TEST_SIZE);
	EXPECT(open_image(&store, PS_OPEN_READ_ONLY) == PS_OK);
	for (u32 page = 0; page < store.nr_pages; page++) {
		ps_page_prepare(&store, page, 0, 1);
		ps_page_commit(&store, page, 0, 1, PS_PAGE_CLEAN);
	}
	EXPECT(read_all(&store) == store.nr_pages);
}

/* --- garbage --- */

/* Random tables under a good superblock; with sparse ones, the checks reach further. */
static void garbage_tables(u64 seed)
{
	u8 *from = (u8 *)ps.files;
	struct ps store;

	memcpy(image, good, TEST_SIZE);
	sim_seed(seed);
	for (u32 i = 0; i < 1u << sim_random(16); i++)
		from[sim_random(ps.data - from)] = sim_random(256);
	EXPECT(open_image(&store, 0) == PS_OK);
	read_all(&store);
}

static void garbage_supers(u64 seed)
{
	struct ps store;

	memcpy(image, good, TEST_SIZE);
	sim_seed(seed);
	for (u32 i = 0; i < 1u << sim_random(8); i++)
		image[sim_random(2) * PS_PAGE_SIZE + sim_random(160)] = sim_random(256);
	if (!open_image(&store, 0))
		EXPECT(!read_all(&store) && store.nr_pages == ps.nr_pages);
}

void corruption_tests(void)
{
	start();
	every_byte();
	blank_device();
	foreign_devices();
	damaged_copies();
	memcpy(image, good, TEST_SIZE);
	newer_version();
	bad_geometry();
	bad_root_handle();
	contradictions();
	full_of_twins();
	for (u64 seed = 1; seed <= GARBAGE_IMAGES; seed++) {
		garbage_tables(seed);
		garbage_supers(seed);
	}
	printf("corruption: every byte of the records, %d random images\n", 2 * GARBAGE_IMAGES);
}
