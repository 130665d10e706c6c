// SPDX-License-Identifier: GPL-2.0-only
/*
 * Version 2 of the page store: where the region of the name log lies, what the superblock promises to older
 * and newer versions, and damage of the added fields.
 */
#include "crash.h"
#include "names/names.h"
#include "setups.h"
#include "test.h"

#include <stdio.h>
#include <stdlib.h>

#define GARBAGE_SUPERS	400

static u8 good[TEST_SIZE];	/* a store with a name log */
static u8 *image;		/* what is damaged */
static struct ps ps;		/* of the good image */

static void start(void)
{
	static const struct scenario scenario = { .name = "region", .setup = setup_names };

	ps = crash_setup(&scenario, SIM_MEM_CTRL);
	image = sim_live();
	memcpy(good, image, TEST_SIZE);
}

static enum ps_error open_image(struct ps *store, u32 flags)
{
	return ps_open(store, image, TEST_SIZE, flags);
}

static enum nl_error open_names(const struct ps *store, struct nl *nl)
{
	return nl_open(nl, store->names, store->names_size, NL_OPEN_READ_ONLY);
}

/* --- layout --- */

/* Version 1 as it always was: nothing behind its fields. */
static void without_a_log_it_is_version_1(void)
{
	struct ps store;

	test_format(TEST_FILES);
	EXPECT(!open_image(&store, 0) && !store.names && !store.names_size);
	EXPECT(le32_to_cpu(store.super.version) == PS_VERSION_PLAIN);
	for (u32 copy = 0; copy < PS_NR_SUPERS; copy++)
		EXPECT(!memchr_inv(image + copy * PS_PAGE_SIZE + PS_SUPER_PLAIN_SIZE, 0,
				   PS_PAGE_SIZE - PS_SUPER_PLAIN_SIZE));
	EXPECT((u64)(store.data - (u8 *)store.pages) <= store.nr_pages * sizeof(*store.pages) + PS_PAGE_SIZE);
}

static void region_of(u64 size, u64 names_size)
{
	struct ps_format_options opt = {
		.cache_uuid = { 1 }, .names_size = names_size, .make_names = test_make_names,
		.names_arg = opt.cache_uuid,
	};
	u8 *base = aligned_alloc(2 << 20, (size + (2 << 20)) & ~((2ULL << 20) - 1));
	struct ps store;
	struct nl nl;

	if (!base)
		abort();
	memset(base, 0xee, size);
	EXPECT(ps_format(base, size, &opt) == PS_OK);
	if (EXPECT(ps_open(&store, base, size, 0) == PS_OK)) {
		u8 *names = store.names;

		EXPECT(store.names_size == names_size && (u64)(names - base) % PS_PAGE_SIZE == 0);
		EXPECT(names >= (u8 *)(store.pages + store.nr_pages));
		EXPECT(names + names_size <= store.data);
		EXPECT(store.data + (u64)store.nr_pages * PS_PAGE_SIZE <= base + size);
		EXPECT(((u64)store.nr_pages << PS_PAGE_SHIFT) + names_size > size - size / 32 - (2 << 20));
		EXPECT(!open_names(&store, &nl) && le64_to_cpu(nl.header.size) == names_size);
		EXPECT(!test_check(&store));
	}
	free(base);
}

static void region_by_size(void)
{
	region_of(TEST_SIZE, NL_MIN_SIZE);
	region_of(TEST_SIZE, TEST_SIZE / 2);
	region_of((32 << 20) + 4097, 1 << 20);
	region_of(64 << 20, 2 << 20);
	region_of(64 << 20, (2 << 20) + PS_PAGE_SIZE);
	region_of(128 << 20, 64 << 20);
}

static void region_limits(void)
{
	static const u64 sizes[] = { 1, NL_MIN_SIZE + 1, TEST_SIZE, TEST_SIZE - PS_PAGE_SIZE,
		TEST_SIZE + PS_PAGE_SIZE, 1ULL << 52, ~0ULL - PS_PAGE_SIZE + 1 };

	for (u32 i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
		struct ps_format_options opt = {
			.names_size = sizes[i], .make_names = test_make_names, .names_arg = opt.cache_uuid,
		};

		memcpy(image, good, TEST_SIZE);
		EXPECT(ps_format(image, TEST_SIZE, &opt) == PS_E_GEOMETRY);
		EXPECT(!memcmp(image, good, TEST_SIZE));
	}
}

/* A page is a region, but no name log. */
static void a_log_that_cannot_be_made(void)
{
	struct ps_format_options opt = {
		.names_size = PS_PAGE_SIZE, .make_names = test_make_names, .names_arg = opt.cache_uuid,
	};
	struct ps store;

	memcpy(image, good, TEST_SIZE);
	EXPECT(ps_format(image, TEST_SIZE, &opt) == PS_E_NAMES);
	EXPECT(open_image(&store, PS_OPEN_READ_ONLY) == PS_E_CORRUPT);
}

/* --- what other versions make of it --- */

/* An older Forebay verifies the fields of version 1, and then looks at the version. */
static void older_versions_see_a_newer_one(void)
{
	for (u32 copy = 0; copy < PS_NR_SUPERS; copy++) {
		struct ps_super_onmedia s;
		__le32 crc;

		memcpy(&s, good + copy * PS_PAGE_SIZE, sizeof(s));
		crc = s.crc;
		s.crc = 0;
		EXPECT(le32_to_cpu(crc) == ~crc32c(~0u, &s, PS_SUPER_PLAIN_SIZE));
		EXPECT(le32_to_cpu(s.version) == PS_VERSION);
	}
}

static void put_super(struct ps_super_onmedia s)
{
	u32 crc = crc32c(~0u, s.cache_uuid, PS_UUID_SIZE);

	crc = crc32c(crc, &s.names, sizeof(s.names));
	s.names_crc = cpu_to_le32(~crc32c(crc, &s.names_size, sizeof(s.names_size)));
	s.crc = 0;
	s.crc = cpu_to_le32(~crc32c(~0u, &s, PS_SUPER_PLAIN_SIZE));
	for (u32 copy = 0; copy < PS_NR_SUPERS; copy++)
		memcpy(image + copy * PS_PAGE_SIZE, &s, sizeof(s));
}

static void newer_versions_are_refused(void)
{
	struct ps_super_onmedia s = ps.super;
	struct ps store;

	s.version = cpu_to_le32(PS_VERSION + 1);
	put_super(s);
	image[offsetof(struct ps_super_onmedia, names_crc)] ^= 1;	/* not known to be one */
	EXPECT(open_image(&store, 0) == PS_E_VERSION);
	memcpy(image, good, TEST_SIZE);
}

/* Binding writes both copies; version and region stay. */
static void binding_keeps_the_version(void)
{
	struct ps_handle root = test_handle(1);
	struct ps store;
	struct nl nl;

	memcpy(image, good, TEST_SIZE);
	EXPECT(!open_image(&store, 0));
	for (u32 round = 0; round < 2; round++) {
		if (round)
			ps_unbind(&store);
		else
			ps_bind(&store, (const u8 *)"0123456789abcdef", &root);
		EXPECT(!open_image(&store, 0) && ps_is_bound(&store) == !round && !store.repaired);
		EXPECT(le32_to_cpu(store.super.version) == PS_VERSION);
		EXPECT(store.names == ps.names && store.names_size == ps.names_size);
		EXPECT(!open_names(&store, &nl) && !test_check(&store));
	}
}

/* --- damage --- */

/* Each bit of a copy is verified, or compared with the other copy. */
static void every_bit_of_a_superblock(void)
{
	memcpy(image, good, TEST_SIZE);
	for (u32 copy = 0; copy < PS_NR_SUPERS; copy++) {
		for (u32 bit = 0; bit < 200 * 8; bit++) {
			u8 *byte = image + copy * PS_PAGE_SIZE + bit / 8;
			struct ps store;
			bool same;

			*byte ^= 1 << bit % 8;
			EXPECT(!open_image(&store, PS_OPEN_READ_ONLY));
			same = store.names == ps.names && store.names_size == ps.names_size;
			if (!EXPECT(same && test_check(&store) == (bit / 8 < sizeof(store.super))))
				printf("\tcopy %u, bit %u\n", copy, bit);
			*byte ^= 1 << bit % 8;
		}
	}
}

/* A damaged copy is rewritten, its fields of version 2 included. */
static void damaged_copies_are_rewritten(void)
{
	static const u32 offsets[] = { 20, offsetof(struct ps_super_onmedia, names_size) };

	for (u32 i = 0; i < 2 * PS_NR_SUPERS; i++) {
		u32 copy = i / 2;
		struct ps store;

		memcpy(image, good, TEST_SIZE);
		image[copy * PS_PAGE_SIZE + offsets[i % 2]] ^= 4;
		EXPECT(!open_image(&store, 0) && store.repaired == 1u << copy);
		EXPECT(!memcmp(image, good, TEST_SIZE));
	}
}

/* Whatever the numbers are, the store is refused, or its parts lie side by side inside the device. */
static void try_geometry(struct ps_super_onmedia s)
{
	struct ps store;
	enum ps_error err;
	struct nl nl;

	put_super(s);
	err = open_image(&store, PS_OPEN_READ_ONLY);
	EXPECT(err == PS_E_GEOMETRY || err == PS_OK);
	if (err)
		return;
	EXPECT((u8 *)store.names >= (u8 *)(store.pages + store.nr_pages) && store.names_size);
	EXPECT((u8 *)store.names + store.names_size <= store.data);
	open_names(&store, &nl);
	test_check(&store);
}

static void bad_geometry(void)
{
	u64 names = le64_to_cpu(ps.super.names), data = le64_to_cpu(ps.super.data);
	const u64 evil[] = { 0, 1, 4095, 4096, 8192, names - 4096, names + 1, names + 4096, data, data - 4096,
		data + 4096, TEST_SIZE, TEST_SIZE + 4096, 1ULL << 32, 1ULL << 63, ~0ULL, ~0ULL - 4095,
		~0ULL - names + 1, ~0ULL - 4095 - names };
	const u32 n = sizeof(evil) / sizeof(*evil);

	memcpy(image, good, TEST_SIZE);
	for (u32 a = 0; a <= n; a++) {
		for (u32 b = 0; b <= n; b++) {
			struct ps_super_onmedia s = ps.super;

			if (a < n)
				s.names = cpu_to_le64(evil[a]);
			if (b < n)
				s.names_size = cpu_to_le64(evil[b]);
			try_geometry(s);
			s.data = cpu_to_le64(evil[(a + b) % n]);
			try_geometry(s);
		}
	}
}

/* Reserved bytes are compared only. */
static void garbage_supers(void)
{
	const u32 len = offsetof(struct ps_super_onmedia, reserved);

	for (u64 seed = 1; seed <= GARBAGE_SUPERS; seed++) {
		struct ps store;

		memcpy(image, good, TEST_SIZE);
		sim_seed(seed);
		for (u32 i = 0; i < 1u << sim_random(8); i++)
			image[sim_random(2) * PS_PAGE_SIZE + sim_random(len)] = sim_random(256);
		if (!open_image(&store, 0))
			EXPECT(!test_check(&store) && store.names == ps.names &&
			       store.names_size == ps.names_size);
	}
}

void region_tests(void)
{
	start();
	without_a_log_it_is_version_1();
	region_by_size();
	region_limits();
	a_log_that_cannot_be_made();
	older_versions_see_a_newer_one();
	newer_versions_are_refused();
	binding_keeps_the_version();
	every_bit_of_a_superblock();
	damaged_copies_are_rewritten();
	bad_geometry();
	garbage_supers();
	printf("region: every bit of both superblocks, %d random ones\n", GARBAGE_SUPERS);
}
