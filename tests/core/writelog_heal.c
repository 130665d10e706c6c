// SPDX-License-Identifier: GPL-2.0-only
/*
 * Words that the medium has damaged, and that opening, sealing, freeing or the next commit writes anew:
 * nothing is lost that can be told, and nothing is made up.
 */
#include "test.h"
#include "writelog_good.h"

#include <stdio.h>

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
	good_restore();
}

/* A generation whose line the medium has lost is whole again once it is freed, and once it is opened. */
static void lost_line(void)
{
	sim_lose_line(&made.wl.gens[1].word);
	replay();
	EXPECT(got.damage == 1 && got.first.kind == WL_BAD_GENERATION);
	wl_gen_free(&made.wl, 1);
	replay();
	EXPECT(!got.damage && got.entries == ENTRIES - 4);
	sim_lose_line(&made.wl.gens[1].word);
	EXPECT(!wl_gen_open(&made.wl, 1, wl_next_id(&made.wl)));
	replay();
	EXPECT(!got.damage && got.entries == ENTRIES - 4);
	good_restore();
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
		good_restore();
	}
}

/* Seals the open generation, of which words of chunks are damaged; so many entries and damages are found. */
static void expect_sealed(u32 entries, u32 damage)
{
	wl_gen_seal(&made.wl, 2, made.id, 5);
	replay();
	if (!EXPECT(got.entries == entries && got.damage == damage))
		printf("\t%u entries for %u, %u damages for %u\n", got.entries, entries, got.damage, damage);
	good_restore();
}

/* The medium damages, loses or clears the word of one chunk, used or not, after its last commit. */
static void seal_with_a_damaged_chunk(void)
{
	for (u32 chunk = 0; chunk < LOG_CHUNKS; chunk++) {
		for (u32 way = 0; way < WAYS_TO_SPOIL; way++) {
			spoil_word((void *)chunk_header(2, chunk), way);
			expect_sealed(ENTRIES, 0);
		}
	}
}

/* The medium damages, loses or clears the words of two chunks: headers say how many entries they have. */
static void seal_with_two_damaged_chunks(void)
{
	for (u32 chunk = 1; chunk < LOG_CHUNKS; chunk++) {
		for (u32 way = 0; way < WAYS_TO_SPOIL; way++) {
			spoil_word((void *)chunk_header(2, 0), WAYS_TO_SPOIL - 1 - way);
			spoil_word((void *)chunk_header(2, chunk), way);
			expect_sealed(ENTRIES, 0);
		}
	}
}

/* The medium shows a word of an earlier commit, as if it had lost the last one. */
static void seal_with_an_old_word(void)
{
	__le64 *first = (void *)chunk_header(2, 0), *second = (void *)chunk_header(2, 1);
	const u64 old = wl_chunk_word(&made.wl, wl_chunk_number(&made.wl, 2, 1), made.id, 1);

	*second = cpu_to_le64(old);
	expect_sealed(ENTRIES, 0);
	sim_lose_line(first);
	*second = cpu_to_le64(old);
	expect_sealed(ENTRIES, 0);
}

/* Headers are damaged, too: all other entries are there, and none is made up. */
static void seal_with_damaged_headers(void)
{
	for (u32 index = 0; index < 3; index++) {
		sim_lose_line(chunk_header(2, 0));
		sim_lose_line(chunk_header(2, 1));
		sim_lose_line(entry_header(2, 0, index));
		expect_sealed(ENTRIES - 1, 1);
	}
	sim_lose_line(chunk_header(2, 0));
	for (u32 index = 0; index < 3; index++)
		sim_lose_line(entry_header(2, 0, index));
	expect_sealed(ENTRIES - 3, 1);
}

/* Ends an entry in the open generation, and doesn't commit it. */
static void end_an_entry(u32 chunk)
{
	struct wl_slot slot = made.slots[chunk];
	struct wl_entry entry;

	wl_begin(&made.wl, &slot, WL_OP_DISCARD, 1, 1, made.seq);
	wl_end(&made.wl, &slot, &entry);
}

/*
 * More headers are whole than entries were made. A chunk with a whole word has as many as the word says. For
 * one with a damaged word it can't be told, and no word is changed.
 */
static void seal_with_too_many_headers(void)
{
	end_an_entry(1);
	sim_lose_line(chunk_header(2, 0));
	expect_sealed(ENTRIES, 0);
	end_an_entry(0);
	sim_lose_line(chunk_header(2, 0));
	expect_sealed(ENTRIES - 3, 1);
}

/* Headers of chunk 1 that were read. */
static u32 headers_read;

static void count_reads(const void *from)
{
	for (u32 index = 0; index < 3; index++)
		headers_read += from == entry_header(2, 1, index);
}

/* Headers are read where a word is damaged, and nowhere else unless the words don't add up. */
static void seal_reads_few_headers(void)
{
	for (u32 way = 0; way < WAYS_TO_SPOIL; way++) {
		headers_read = 0;
		spoil_word((void *)chunk_header(2, 0), way);
		sim_before_reads(count_reads);
		wl_gen_seal(&made.wl, 2, made.id, 5);
		sim_before_reads(NULL);
		EXPECT(!headers_read == (way != 64));	/* a cleared word is whole */
		good_restore();
	}
}

/* Makes a header look like that of the chunk's next entry. */
static void forge_header(u32 gen, u32 chunk, u32 index)
{
	struct wl_entry_onmedia rec;

	memcpy(&rec, entry_header(gen, chunk, index - 1), sizeof(rec));
	rec.index = cpu_to_le32(index);
	rec.order = cpu_to_le64(wl_order(made.id, made.seq));
	rec.crc = cpu_to_le32(wl_entry_crc(&made.wl, wl_chunk_number(&made.wl, gen, chunk), &rec));
	memcpy(entry_header(gen, chunk, index), &rec, sizeof(rec));
}

/* An entry's data look like the header of the chunk's next entry: they are none. */
static void seal_with_a_header_in_data(void)
{
	struct wl_slot *slot = &made.slots[1];
	const struct log saved = made;
	u32 more = 0;
	u8 *data;

	while (wl_slot_space(&made.wl, slot, 512)) {
		log_write(&made, 1, 600, 1);
		more++;
	}
	data = (u8 *)wl_entry_data(&made.wl, &made.last);
	while (entry_header(2, 1, slot->fill) >= data + 512) {
		log_entry(&made, 1, WL_OP_DISCARD, 1, 1);
		more++;
	}
	wl_commit(&made.wl, slot);
	forge_header(2, 1, slot->fill);
	sim_lose_line(chunk_header(2, 1));
	wl_gen_seal(&made.wl, 2, made.id, 5 + more);
	replay();
	EXPECT(got.entries == ENTRIES + more - 1 && got.damage == 1 && got.first.kind == WL_BAD_DATA);
	made = saved;
	good_restore();
}

/*
 * The medium can't hold a chunk's word: its line is lost before each read. A generation whose own word was
 * damaged, too, is whole and free after the attempt to open it.
 */
static void lose_again(const void *from)
{
	(void)from;
	sim_lose_line(chunk_header(3, 1));
}

static void open_with_a_broken_chunk(void)
{
	for (u32 way = 0; way < WAYS_TO_SPOIL; way++) {
		struct wl_gen_info info;

		wl_gen_free(&made.wl, 1);
		wl_gen_free(&made.wl, 0);
		wl_gen_free(&made.wl, 2);
		EXPECT(!wl_gen_open(&made.wl, 3, made.id + 1));
		wl_gen_free(&made.wl, 3);
		spoil_word(&made.wl.gens[3].word, way);
		sim_before_reads(lose_again);
		EXPECT(wl_gen_open(&made.wl, 3, made.id + 2) == -EIO);
		sim_before_reads(NULL);
		EXPECT(!wl_gen_read(&made.wl, 3, &info) && info.state == WL_GEN_FREE);
		replay();
		EXPECT(!got.damage && !got.entries);
		good_restore();
	}
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
		good_restore();
	}
}

static void heal_everything(enum sim_domain domain)
{
	good_make(domain);
	given_up();
	lost_line();
	seal_of_a_damaged_word();
	seal_with_a_damaged_chunk();
	seal_with_two_damaged_chunks();
	seal_with_an_old_word();
	seal_with_damaged_headers();
	seal_with_too_many_headers();
	seal_reads_few_headers();
	seal_with_a_header_in_data();
	open_with_a_broken_chunk();
	commit_over_a_damaged_word();
}

void log_heal_tests(void)
{
	heal_everything(SIM_MEM_CTRL);
	heal_everything(SIM_CPU_CACHE);
}
