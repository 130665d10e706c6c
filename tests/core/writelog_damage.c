// SPDX-License-Identifier: GPL-2.0-only
/*
 * Damaged logs: the damage is reported, with its right kind, and all other
 * entries are still replayed.
 */
#include "test.h"
#include "writelog_good.h"

#include <stdio.h>

/* The replay found this one damage, and so many entries besides. */
static void expect_damage(enum wl_damage_kind kind, u32 entries)
{
	replay();
	if (!EXPECT(got.damage == 1 && got.first.kind == kind && got.entries == entries))
		printf("\tkind %d for %d, %u damages, %u entries (%s)\n", got.first.kind, kind,
		       got.damage, got.entries, got.first.why);
	good_restore();
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
	good_restore();
}

/*
 * A generation's word is that of an earlier life: it counts neither as one with entries, nor as one that had
 * to be freed before the others.
 */
static void word_of_an_earlier_life(void)
{
	const struct log saved = made;
	struct wl_gen_info info;
	__le64 line[2];
	u64 id = made.id;

	EXPECT(wl_gen_live(&made.wl, 1, &info) && info.id == 1 && info.entries == 4);
	EXPECT(!wl_gen_live(&made.wl, 3, &info));
	memcpy(line, &made.wl.gens[1], sizeof(line));
	wl_gen_free(&made.wl, 1);
	EXPECT(!wl_gen_live(&made.wl, 1, &info));
	EXPECT(!wl_gen_open(&made.wl, 1, id + 1));
	wl_slot_take(&made.slots[0], 1, id + 1, 0);
	log_write(&made, 0, 900, 1);
	EXPECT(wl_gen_live(&made.wl, 1, &info) && info.id == id + 1);
	memcpy(&made.wl.gens[1], line, sizeof(line));
	EXPECT(!wl_gen_live(&made.wl, 1, &info));
	replay();
	EXPECT(got.damage == 1 && got.first.kind == WL_BAD_GENERATION && got.entries == ENTRIES - 4);
	wl_gen_free(&made.wl, 0);
	replay();
	EXPECT(got.damage == 1 && got.entries == ENTRIES - 8);
	EXPECT(!wl_gen_open(&made.wl, 1, id + 2) && wl_gen_live(&made.wl, 1, &info));
	replay();
	EXPECT(!got.damage && got.entries == ENTRIES - 8);
	made = saved;
	good_restore();
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
	good_restore();
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
	good_restore();
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
	good_make(SIM_MEM_CTRL);
	replay();
	EXPECT(!got.damage && got.entries == ENTRIES);
	every_bit_of_a_header();
	every_bit_of_a_chunk_word();
	every_bit_of_a_generation_word();
	every_bit_of_data();
	lost_stores();
	word_of_an_earlier_life();
	copied_elsewhere();
	contradictions();
	twice();
	damaged_supers();
	supers_updated_meanwhile();
}
