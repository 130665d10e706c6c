// SPDX-License-Identifier: GPL-2.0-only
/*
 * Changes a log as failing hardware or an attacker would: bytes anywhere, or
 * numbers that checksums cover. The checksums are then made right again, since
 * with wrong ones hardly any code behind them would be reached.
 *
 * Linked into core-test, and into the helper that makes images for the kernel
 * (tests/tools/fuzz_log.c); each has its own sim_random().
 */
#include <stdlib.h>

#include "pm_sim.h"
#include "log/layout.h"
#include "writelog_mutate.h"

static u64 random64(void)
{
	return (u64)sim_random(1u << 31) << 33 ^ (u64)sim_random(1u << 31) << 11 ^ sim_random(1u << 11);
}

/* Numbers at which things go wrong, and any others. */
static u64 evil(void)
{
	static const u64 numbers[] = { 0, 1, 2, 3, 255, 256, 511, 512, 4032, 4095, 4096, 65535, 65536,
		1ULL << 20, 1ULL << 28, 1ULL << 31, 0xffffffffULL, 1ULL << 32, WL_MAX_SECTOR,
		WL_MAX_SECTOR - 1, WL_MAX_ID, 1ULL << 63, ~0ULL, ~0ULL - 4095, ~0ULL / 64 + 1 };
	u64 number = numbers[sim_random(sizeof(numbers) / sizeof(*numbers))];

	switch (sim_random(4)) {
	case 0:
		return random64();
	case 1:
		return sim_random(32);
	case 2:
		return number + sim_random(5) - 2;
	default:
		return number;
	}
}

static void scatter(u8 *at, u32 len)
{
	for (u32 n = 1 + sim_random(1u << sim_random(8)); n; n--)
		at[sim_random(len)] = sim_random(2) ? sim_random(256) : at[sim_random(len)];
}

static void mutate_super(struct wl_super_onmedia *s)
{
	const struct super_head {
		__le64 magic;
		__le32 version, crc;
	} *head = (void *)s;
	u32 first = offsetof(struct wl_super_onmedia, seq) / 4;
	u32 at = first + sim_random(sizeof(*s) / 4 - first);
	__le32 zero = 0;
	u32 crc;

	((__le32 *)s)[at] = cpu_to_le32(evil());
	if (!sim_random(3))
		((__le32 *)s)[first + sim_random(20)] = cpu_to_le32(evil());
	crc = crc32c(~0u, head, 12);
	crc = crc32c(crc, &zero, 4);
	s->crc = cpu_to_le32(~crc32c(crc, (u8 *)s + 16, sizeof(*s) - 16));
}

static void mutate_gen(const struct wl *wl)
{
	u32 gen = sim_random(wl->nr_gens);
	u64 id = sim_random(2) ? sim_random(9) : evil() & WL_MAX_ID;
	u64 entries = evil();

	wl->gens[gen].entries = cpu_to_le64(entries);
	wl->gens[gen].word = cpu_to_le64(wl_gen_word(wl, gen, id, sim_random(4), entries));
}

static void mutate_chunk(const struct wl *wl)
{
	u32 gen = sim_random(wl->nr_gens), chunk = sim_random(wl->nr_chunks);
	u64 id = sim_random(3) ? 1 + sim_random(8) : evil() & WL_MAX_ID;
	u32 fill = sim_random(3) ? sim_random(70) : evil() & WL_FILL_MASK;

	wl_chunk_header(wl, gen, chunk)->word =
		cpu_to_le64(wl_chunk_word(wl, wl_chunk_number(wl, gen, chunk), id, fill));
}

static void mutate_entry(const struct wl *wl)
{
	u32 gen = sim_random(wl->nr_gens), chunk = sim_random(wl->nr_chunks), index = sim_random(5);
	struct wl_entry_onmedia *rec = wl_entry_header(wl, gen, chunk, index);
	u64 id = wl_word_id(le64_to_cpu(wl->gens[gen].word));

	switch (sim_random(6)) {
	case 0:
		rec->order = cpu_to_le64(wl_order(id, evil() & WL_MAX_SEQ));
		break;
	case 1:
		rec->sector = cpu_to_le64(evil());
		break;
	case 2:
		rec->nr_sectors = cpu_to_le64(evil());
		break;
	case 3:
		rec->op = cpu_to_le32(evil());
		break;
	case 4:
		rec->data = cpu_to_le32(evil());
		break;
	default:
		rec->order = cpu_to_le64(random64());
	}
	rec->crc = cpu_to_le32(wl_entry_crc(wl, wl_chunk_number(wl, gen, chunk), rec));
}

/**
 * log_mutate - change a log that is whole in one of many ways
 * @image: starts with a good log
 * @size: bytes
 *
 * What it does is decided by sim_random().
 */
void log_mutate(u8 *image, u64 size)
{
	struct wl wl;
	u32 data, used;

	if (wl_open(&wl, image, size, WL_OPEN_READ_ONLY))
		abort();
	data = wl.data - image;
	used = data + wl.nr_gens * wl.nr_chunks * wl.chunk_size;
	switch (sim_random(4)) {
	case 0:
		scatter(image, data);
		return;
	case 1:
		scatter(image + 2 * WL_PAGE_SIZE, used - 2 * WL_PAGE_SIZE);
		return;
	case 2:
		for (u32 copy = sim_random(2); copy < 2; copy++)
			mutate_super((void *)(image + copy * WL_PAGE_SIZE));
		return;
	}
	for (u32 n = 1 + sim_random(6); n; n--) {
		static void (*const kinds[])(const struct wl *wl) = {
			mutate_gen, mutate_chunk, mutate_entry, mutate_entry,
		};

		kinds[sim_random(4)](&wl);
	}
}
