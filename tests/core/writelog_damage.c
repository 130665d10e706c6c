// SPDX-License-Identifier: GPL-2.0-only
/*
 * Damaged logs: the damage is reported, with its right kind, and all other
 * entries are still replayed.
 */
#include "log/layout.h"
#include "test.h"
#include "writelog_crash.h"

#include <stdio.h>
#include <stdlib.h>

#define ENTRIES		13	/* of the good log */
#define WAYS_TO_SPOIL	66	/* of spoil_word() */

static u8 good[LOG_SIZE];
static struct log made;		/* how it was made; its wl is open on the simulator's image */

/* Three generations: 1 and 0 are sealed, 2 is open. Data have checksums. */
static void start(void)
{
	static const struct log_scenario scenario = { .name = "damage", .raw = true };
	static const u32 order[] = { 1, 0, 2 };

	log_setup(&scenario, &made, SIM_MEM_CTRL);
	log_format(1, true);
	if (wl_open(&made.wl, sim_live(), LOG_SIZE, 0))
		abort();
	for (u32 i = 0; i < 3; i++) {
		log_open_gen(&made, order[i]);
		log_write(&made, 0, 100 + i, 1);
		log_write(&made, 1, 200 + i, 2);
		log_entry(&made, 0, WL_OP_DISCARD, 300 + i, 9);
		log_write(&made, 0, 400 + i, 1);
		if (i < 2)
			wl_gen_seal(&made.wl, order[i], made.id, 4);
	}
	log_write(&made, 1, 500, 1);
	memcpy(good, sim_live(), LOG_SIZE);
}

/* What a replay of the image gave. */
static struct {
	u32 entries;
	u32 damage;
	struct wl_damage first;
	struct wl_entry bad_data;	/* of a WL_BAD_DATA */
} got;

static void replay(void)
{
	struct wl_stream streams[LOG_CHUNKS];
	struct wl_cursor cursor;
	struct wl_entry entry;
	u64 last = 0;
	int err;

	memset(&got, 0, sizeof(got));
	wl_cursor_start(&cursor, &made.wl, streams, WL_VERIFY_DATA);
	while ((err = wl_cursor_next(&cursor, &entry))) {
		if (err < 0) {
			if (!got.damage++)
				got.first = cursor.damage;
			if (cursor.damage.kind == WL_BAD_DATA)
				got.bad_data = entry;
			continue;
		}
		EXPECT(entry.order > last);
		last = entry.order;
		got.entries++;
	}
	EXPECT(log_check(&made.wl) == got.damage);
}

/* The replay found this one damage, and so many entries besides. */
static void expect_damage(enum wl_damage_kind kind, u32 entries)
{
	replay();
	if (!EXPECT(got.damage == 1 && got.first.kind == kind && got.entries == entries))
		printf("\tkind %d for %d, %u damages, %u entries (%s)\n", got.first.kind, kind,
		       got.damage, got.entries, got.first.why);
	memcpy(sim_live(), good, LOG_SIZE);
}

static u8 *chunk_header(u32 gen, u32 chunk)
{
	return made.wl.data + (gen * LOG_CHUNKS + chunk + 1) * LOG_CHUNK_SIZE - WL_LINE;
}

static u8 *entry_header(u32 gen, u32 chunk, u32 index)
{
	return chunk_header(gen, chunk) - (index + 1) * WL_LINE;
}

static void flip(u8 *at, u32 bit)
{
	at[bit / 8] ^= 1 << bit % 8;
}

/* Generation 0, chunk 0 has three entries; each bit of the middle one's header. */
static void every_bit_of_a_header(void)
{
	for (u32 bit = 0; bit < sizeof(struct wl_entry_onmedia) * 8; bit++) {
		flip(entry_header(0, 0, 1), bit);
		expect_damage(WL_BAD_ENTRY, ENTRIES - 1);
	}
	EXPECT(got.first.gen == 0 && got.first.chunk == 0 && got.first.index == 1);
	EXPECT(got.first.id == 2);
}

/* Any one or two bits of a chunk's word. */
static void every_bit_of_a_chunk_word(void)
{
	for (u32 a = 0; a < 64; a++) {
		for (u32 b = a; b < 64; b++) {
			flip(chunk_header(0, 0), a);
			if (a != b)
				flip(chunk_header(0, 0), b);
			expect_damage(WL_BAD_CHUNK, ENTRIES - 3);
		}
	}
}

static void every_bit_of_a_generation_word(void)
{
	for (u32 a = 0; a < 64; a++) {
		for (u32 b = a; b < 64; b++) {
			flip((u8 *)&made.wl.gens[0].word, a);
			if (a != b)
				flip((u8 *)&made.wl.gens[0].word, b);
			expect_damage(WL_BAD_GENERATION, ENTRIES - 4);
		}
	}
	for (u32 bit = 0; bit < 64; bit++) {
		flip((u8 *)&made.wl.gens[0].entries, bit);
		expect_damage(WL_BAD_GENERATION, ENTRIES - 4);
	}
}

static void every_bit_of_data(void)
{
	for (u32 bit = 0; bit < 1024 * 8; bit += 7) {
		flip(made.wl.data + (0 * LOG_CHUNKS + 1) * LOG_CHUNK_SIZE, bit);
		expect_damage(WL_BAD_DATA, ENTRIES - 1);
	}
	EXPECT(got.bad_data.sector == 201 && got.bad_data.nr_sectors == 2);
}

/* The medium lost a store: the word is that of an earlier life, and whole. */
static void lost_stores(void)
{
	__le64 *word = (void *)chunk_header(0, 1);

	*word = 0;
	expect_damage(WL_BAD_SUM, ENTRIES - 1);
	made.wl.gens[0].word = 0;
	expect_damage(WL_BAD_GENERATION, ENTRIES - 4);
	EXPECT(strstr(got.first.why, "later life"));
	wl_gen_free(&made.wl, 2);
	EXPECT(log_check(&made.wl) == 1);	/* generation 2 is younger than those that are left */
	memcpy(sim_live(), good, LOG_SIZE);
}

static void copied_elsewhere(void)
{
	memcpy(entry_header(0, 0, 1), entry_header(0, 0, 0), WL_LINE);
	expect_damage(WL_BAD_ENTRY, ENTRIES - 1);
	memcpy(entry_header(0, 0, 0), entry_header(1, 0, 0), WL_LINE);
	expect_damage(WL_BAD_ENTRY, ENTRIES - 1);
	memcpy(chunk_header(0, 2), chunk_header(0, 0), WL_LINE);
	expect_damage(WL_BAD_CHUNK, ENTRIES);
}

/* Headers that are whole, but cannot both be true. */
static void contradictions(void)
{
	struct wl_slot slot = made.slots[1];
	struct wl_entry entry;

	wl_begin(&made.wl, &slot, WL_OP_DISCARD, 1, 1, made.seq - 1);
	wl_end(&made.wl, &slot, &entry);
	wl_commit(&made.wl, &slot);
	expect_damage(WL_BAD_ENTRY, ENTRIES);
	slot = made.slots[1];
	slot.head -= 512;
	wl_begin(&made.wl, &slot, WL_OP_WRITE, 1, 1, made.seq);
	wl_end(&made.wl, &slot, &entry);
	wl_commit(&made.wl, &slot);
	expect_damage(WL_BAD_ENTRY, ENTRIES);
	EXPECT(!strcmp(got.first.why, "claims the data of another one"));
	slot = made.slots[1];
	wl_begin(&made.wl, &slot, WL_OP_ZEROES, WL_MAX_SECTOR, 1, made.seq);
	wl_end(&made.wl, &slot, &entry);
	wl_commit(&made.wl, &slot);
	expect_damage(WL_BAD_ENTRY, ENTRIES);
	wl_gen_open(&made.wl, 3, 2);
	expect_damage(WL_BAD_GENERATION, ENTRIES);
	EXPECT(!strcmp(got.first.why, "has the identifier of another one") && got.first.gen == 3);
}

/* Damage in two places is two reports; everything else is there. */
static void twice(void)
{
	flip(entry_header(1, 0, 0), 9);
	flip(entry_header(2, 1, 0), 9);
	replay();
	EXPECT(got.damage == 2 && got.entries == ENTRIES - 2);
	EXPECT(got.first.gen == 1 && got.first.id == 1);
	memcpy(sim_live(), good, LOG_SIZE);
}

/* After a damaged generation was given up, nothing is left to report. */
static void given_up(void)
{
	flip((u8 *)&made.wl.gens[1].word, 30);
	wl_gen_free(&made.wl, 1);
	replay();
	EXPECT(!got.damage && got.entries == ENTRIES - 4);
	flip(chunk_header(1, 2), 3);
	EXPECT(!wl_gen_open(&made.wl, 1, wl_next_id(&made.wl)));
	replay();
	EXPECT(!got.damage && got.entries == ENTRIES - 4);
	memcpy(sim_live(), good, LOG_SIZE);
}

/* A generation whose line the medium has lost is whole again once it is freed, and once it is opened. */
static void lost_line(void)
{
	sim_lose_line(&made.wl.gens[1].word);
	expect_damage(WL_BAD_GENERATION, ENTRIES - 4);
	wl_gen_free(&made.wl, 1);
	replay();
	EXPECT(!got.damage && got.entries == ENTRIES - 4);
	sim_lose_line(&made.wl.gens[1].word);
	EXPECT(!wl_gen_open(&made.wl, 1, wl_next_id(&made.wl)));
	replay();
	EXPECT(!got.damage && got.entries == ENTRIES - 4);
	memcpy(sim_live(), good, LOG_SIZE);
}

/* The medium flips a bit of a word, clears the word, or loses it. */
static void spoil_word(__le64 *word, u32 way)
{
	if (way < 64)
		flip((u8 *)word, way);
	else if (way == 64)
		*word = 0;
	else
		sim_lose_line(word);
}

/* The medium damages, loses or clears the word of the open generation: sealing it loses no entry. */
static void seal_of_a_damaged_word(void)
{
	__le64 *word = &made.wl.gens[2].word;

	for (u32 way = 0; way < WAYS_TO_SPOIL; way++) {
		spoil_word(word, way);
		wl_gen_seal(&made.wl, 2, made.id, 5);
		replay();
		EXPECT(!got.damage && got.entries == ENTRIES);
		memcpy(sim_live(), good, LOG_SIZE);
	}
}

/* Seals the open generation, of which words of chunks are damaged; so many entries and damages are found. */
static void expect_sealed(u32 entries, u32 damage)
{
	wl_gen_seal(&made.wl, 2, made.id, 5);
	replay();
	if (!EXPECT(got.entries == entries && got.damage == damage))
		printf("\t%u entries for %u, %u damages for %u\n", got.entries, entries, got.damage, damage);
	memcpy(sim_live(), good, LOG_SIZE);
}

/* The medium damages or loses the word of one chunk, used or not, after its last commit: no entry is lost. */
static void seal_with_a_damaged_chunk(void)
{
	for (u32 chunk = 0; chunk < LOG_CHUNKS; chunk++) {
		for (u32 way = 0; way < WAYS_TO_SPOIL; way++) {
			if (way == 64)
				continue;	/* a word of 0 is whole */
			spoil_word((void *)chunk_header(2, chunk), way);
			expect_sealed(ENTRIES, 0);
		}
	}
}

/* How many entries a chunk has is not known: its word stays damaged, and none of them is made up. */
static void seal_with_an_unknown_chunk(void)
{
	__le64 *first = (void *)chunk_header(2, 0), *second = (void *)chunk_header(2, 1);

	sim_lose_line(first);
	sim_lose_line(second);
	expect_sealed(ENTRIES - 5, 2);
	sim_lose_line(first);
	*second = cpu_to_le64(wl_chunk_word(&made.wl, wl_chunk_number(&made.wl, 2, 1), made.id, 1));
	expect_sealed(ENTRIES - 4, 1);
	sim_lose_line(first);
	*second = 0;
	expect_sealed(ENTRIES - 5, 1);
	sim_lose_line(first);
	flip(entry_header(2, 0, 1), 9);
	expect_sealed(ENTRIES - 3, 1);
}

/* The medium damages, loses or clears the word of a chunk being filled: the next commit loses no entry. */
static void commit_over_a_damaged_word(void)
{
	__le64 *word = (void *)chunk_header(2, 0);
	const struct log saved = made;

	for (u32 way = 0; way < WAYS_TO_SPOIL; way++) {
		spoil_word(word, way);
		log_write(&made, 0, 600, 1);
		replay();
		EXPECT(!got.damage && got.entries == ENTRIES + 1);
		made = saved;
		memcpy(sim_live(), good, LOG_SIZE);
	}
}

static void damaged_supers(void)
{
	struct wl_super_onmedia *b = (void *)((u8 *)sim_live() + WL_PAGE_SIZE);
	struct wl wl;

	for (u32 bit = 0; bit < sizeof(*b) * 8; bit++) {
		flip((u8 *)b, bit);
		EXPECT(!wl_open(&wl, sim_live(), LOG_SIZE, WL_OPEN_READ_ONLY) && !wl.repaired);
		EXPECT(log_check(&wl) == 1);
		EXPECT(!wl_open(&wl, sim_live(), LOG_SIZE, 0) && wl.repaired == 2);
		EXPECT(!memcmp(sim_live(), good, LOG_SIZE));
	}
	b->seq = 0;
	((u8 *)sim_live())[8] ^= 1;
	EXPECT(wl_open(&wl, sim_live(), LOG_SIZE, 0) == WL_E_CORRUPT);
	memcpy(sim_live(), good, LOG_SIZE);
}

/* How many times a reader has turned to another superblock copy, and which one it reads. */
static u32 turns, turned_to;

/*
 * A table updates the superblocks while another one is loaded: the reader finds each copy half written at its
 * first turn.
 */
static void update_under_reader(const void *from)
{
	u32 copy = ((const u8 *)from - (const u8 *)sim_live()) / WL_PAGE_SIZE;

	if (!turns || copy != turned_to)
		turns++;
	turned_to = copy;
	memcpy(sim_live(), good, WL_NR_SUPERS * WL_PAGE_SIZE);
	if (turns <= WL_NR_SUPERS)
		((struct wl_super_onmedia *)((u8 *)sim_live() + copy * WL_PAGE_SIZE))->fingerprint ^= 1;
}

static void supers_updated_meanwhile(void)
{
	struct wl wl;

	turns = 0;
	sim_before_reads(update_under_reader);
	EXPECT(!wl_open(&wl, sim_live(), LOG_SIZE, WL_OPEN_READ_ONLY));
	sim_before_reads(NULL);
	EXPECT(turns > WL_NR_SUPERS && !memcmp(sim_live(), good, LOG_SIZE));
}

void log_damage_tests(void)
{
	start();
	replay();
	EXPECT(!got.damage && got.entries == ENTRIES);
	every_bit_of_a_header();
	every_bit_of_a_chunk_word();
	every_bit_of_a_generation_word();
	every_bit_of_data();
	lost_stores();
	copied_elsewhere();
	contradictions();
	twice();
	given_up();
	lost_line();
	seal_of_a_damaged_word();
	seal_with_a_damaged_chunk();
	seal_with_an_unknown_chunk();
	commit_over_a_damaged_word();
	damaged_supers();
	supers_updated_meanwhile();
}
