// SPDX-License-Identifier: GPL-2.0-only
/*
 * Mutated images: whatever is on the device, opening, checking and replaying end,
 * stay inside the device (the sanitizers see to that), and return only what
 * writelog.h promises; and a log on which writing goes on does not break further.
 *
 * The same seed gives the same images. FUZZ_CASES and FUZZ_SEED in the
 * environment make it longer or other. Half of the cases change what checksums
 * cover and then make the checksums right again, for else hardly anything behind
 * them would be reached.
 */
#include "test.h"
#include "writelog_crash.h"
#include "writelog_layout.h"

#include <stdio.h>
#include <stdlib.h>

#define CASES		60000
#define USED		(2 * WL_PAGE_SIZE + WL_PAGE_SIZE + LOG_GENS * LOG_CHUNKS * LOG_CHUNK_SIZE)

static u8 *image;		/* of just LOG_SIZE bytes, so that reading beyond is noticed */
static u8 good[LOG_SIZE];
static u64 opened, replayed, damages;

static u64 random64(void)
{
	return (u64)sim_random(1u << 31) << 33 ^ (u64)sim_random(1u << 31) << 11 ^ sim_random(1u << 11);
}

/* Numbers at which things go wrong, and any others. */
static u64 evil(void)
{
	static const u64 numbers[] = { 0, 1, 2, 3, 255, 256, 511, 512, 4032, 4095, 4096, 65535, 65536,
		LOG_SIZE, 1ULL << 28, 1ULL << 31, 0xffffffffULL, 1ULL << 32, WL_MAX_SECTOR,
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

/* A log with generations in every state, fresh and reused. */
static void make_good(bool data_crc)
{
	static const struct log_scenario scenario = { .name = "fuzz", .raw = true };
	static const u32 order[] = { 1, 0, 2, 3 };
	struct log log;

	log_setup(&scenario, &log, SIM_CPU_CACHE);
	log_format(1, data_crc);
	if (wl_open(&log.wl, sim_live(), LOG_SIZE, 0))
		abort();
	for (u32 i = 0; i < 6; i++) {
		u32 gen = order[i % LOG_GENS];

		if (i >= LOG_GENS)
			wl_gen_free(&log.wl, gen);
		log_open_gen(&log, gen);
		for (u32 n = 0; n < 4; n++)
			log_write(&log, n % 2, sim_random(64), 1 + sim_random(2));
		log_entry(&log, 0, WL_OP_DISCARD, 0, 64);
		wl_commit(&log.wl, &log.slots[0]);
		if (i != 4)
			wl_gen_seal(&log.wl, gen, log.seq);
	}
	wl_gen_free(&log.wl, 2);
	memcpy(good, sim_live(), LOG_SIZE);
}

static void scatter(u32 from, u32 len)
{
	for (u32 n = 1 + sim_random(1u << sim_random(8)); n; n--)
		image[from + sim_random(len)] = sim_random(2) ? sim_random(256) :
			image[from + sim_random(len)];
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
	u64 id = wl_word_id(wl_load(&wl->gens[gen].word));

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

static void mutate(void)
{
	struct wl wl;

	switch (sim_random(4)) {
	case 0:
		scatter(0, 3 * WL_PAGE_SIZE);
		return;
	case 1:
		scatter(2 * WL_PAGE_SIZE, USED - 2 * WL_PAGE_SIZE);
		return;
	case 2:
		for (u32 copy = sim_random(2); copy < 2; copy++)
			mutate_super((void *)(image + copy * WL_PAGE_SIZE));
		return;
	}
	if (wl_open(&wl, image, LOG_SIZE, WL_OPEN_READ_ONLY))
		abort();
	for (u32 n = 1 + sim_random(6); n; n--) {
		static void (*const kinds[])(const struct wl *wl) = {
			mutate_gen, mutate_chunk, mutate_entry, mutate_entry,
		};

		kinds[sim_random(4)](&wl);
	}
}

static bool entry_sane(const struct wl *wl, const struct wl_entry *entry)
{
	u64 len = wl_entry_len(entry);

	return entry->nr_sectors && entry->sector + entry->nr_sectors <= WL_MAX_SECTOR &&
	       entry->sector <= WL_MAX_SECTOR && len == (entry->op == WL_OP_WRITE) * entry->nr_sectors << 9 &&
	       entry->data + len <= wl->size && entry->gen < wl->nr_gens && entry->chunk < wl->nr_chunks;
}

/* Returns a number that tells two replays apart. */
static u64 replay(const struct wl *wl, struct wl_stream *streams, u32 flags)
{
	u64 calls = 0, most = (u64)wl->nr_gens * (2 + wl->nr_chunks * 2ULL * (WL_MAX_FILL + 1));
	struct wl_cursor cursor;
	struct wl_entry entry;
	u64 order = 0, sum = 0;
	int got;

	wl_cursor_start(&cursor, wl, streams, flags);
	while ((got = wl_cursor_next(&cursor, &entry))) {
		if (!EXPECT(++calls <= most))
			return 0;
		sum = sum * 31 + got;
		if (got < 0) {
			damages++;
			EXPECT(cursor.damage.why && cursor.damage.gen < wl->nr_gens);
			if (cursor.damage.kind != WL_BAD_DATA)
				continue;
		}
		if (!entry_sane(wl, &entry) || entry.order <= order)
			EXPECT(!"an impossible entry");
		order = entry.order;
		sum = sum * 31 + entry.order + entry.sector;
	}
	replayed++;
	return sum;
}

/* What a user does that accepts the loss: new writes, then all that was there goes. */
static void go_on(struct wl *wl, struct wl_stream *streams)
{
	struct wl_slot slot = { };
	struct wl_entry entry;
	struct wl_gen_info info;
	u64 id = wl_next_id(wl);
	u32 gen;

	for (gen = 0; gen < wl->nr_gens; gen++)
		wl_gen_free(wl, gen);
	EXPECT(!replay(wl, streams, WL_VERIFY_DATA));
	gen = sim_random(wl->nr_gens);
	if (wl_gen_open(wl, gen, id)) {
		EXPECT(id > WL_MAX_ID);
		return;
	}
	wl_slot_take(&slot, gen, id, sim_random(wl->nr_chunks));
	wl_begin(wl, &slot, WL_OP_ZEROES, 5, 6, 0);
	wl_end(wl, &slot, &entry);
	wl_commit(wl, &slot);
	EXPECT(replay(wl, streams, WL_VERIFY_DATA) == 1 * 31 + entry.order + 5);
	EXPECT(!wl_gen_read(wl, gen, &info) && info.id == id);
}

static void ignore(void *arg, const struct wl_damage *damage)
{
	(void)arg;
	(void)damage;
}

static void one_case(void)
{
	struct wl_stream *streams;
	struct wl wl;

	memcpy(image, good, USED);
	mutate();
	if (wl_open(&wl, image, LOG_SIZE, sim_random(2) ? WL_OPEN_READ_ONLY : 0))
		return;
	opened++;
	streams = malloc(sizeof(*streams) * wl.nr_chunks);
	if (!streams)
		abort();
	wl_check(&wl, streams, ignore, NULL);
	EXPECT(replay(&wl, streams, 0) == replay(&wl, streams, 0));
	go_on(&wl, streams);
	free(streams);
}

void log_fuzz_tests(void)
{
	const char *number = getenv("FUZZ_CASES"), *seed = getenv("FUZZ_SEED");
	u64 n = number ? strtoull(number, NULL, 0) : CASES;

	image = malloc(LOG_SIZE);
	if (!image)
		abort();
	sim_seed(seed ? strtoull(seed, NULL, 0) : 1);
	for (u64 i = 0; i < n; i++) {
		if (i % 1000 == 0) {
			make_good(i / 1000 % 2);
			memcpy(image, good, LOG_SIZE);
		}
		one_case();
	}
	free(image);
	printf("log fuzz: %llu images, %llu opened, %llu replays, %llu damages\n", n, opened,
	       replayed, damages);
}
