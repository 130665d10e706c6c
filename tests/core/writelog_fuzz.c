// SPDX-License-Identifier: GPL-2.0-only
/*
 * Mutated images. Opening, checking and replaying end, stay inside the device
 * (the sanitizers see to that), and return only what writelog.h promises; and a
 * log on which writing goes on does not break further.
 *
 * The same seed gives the same images. FUZZ_CASES and FUZZ_SEED in the
 * environment make it longer or other.
 */
#include "test.h"
#include "writelog_crash.h"
#include "writelog_mutate.h"

#include <stdio.h>
#include <stdlib.h>

#define CASES		60000
#define USED		(2 * WL_PAGE_SIZE + WL_PAGE_SIZE + LOG_GENS * LOG_CHUNKS * LOG_CHUNK_SIZE)

static u8 *image;		/* of just LOG_SIZE bytes, so that reading beyond is noticed */
static u8 good[LOG_SIZE];
static u64 opened, replayed, damages;

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
			wl_gen_seal(&log.wl, gen, log.id, log.seq);
	}
	wl_gen_free(&log.wl, 2);
	memcpy(good, sim_live(), LOG_SIZE);
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

/* As a user that accepts the loss: frees all that was there, then writes anew. */
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
	log_mutate(image, LOG_SIZE);
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
