// SPDX-License-Identifier: GPL-2.0-only
/*
 * Damaged name logs: every changed byte of a committed record, of a word and of a decision is noticed, with
 * its right kind; and nothing is read behind it.
 */
#include "names/layout.h"
#include "names_log.h"
#include "pm_sim.h"
#include "test.h"

#include <stdio.h>

static _Alignas(4096) u8 region[NAMES_SIZE];
static u8 good[NAMES_SIZE];
static struct nl nl;
static struct nl_record record;
static u64 committed[3], tail_start, tail_end;

/* Three committed records, a tail of two, a heartbeat that knows the first of these. */
static void start(bool decided)
{
	static u8 bits[256];
	struct nl_change change;

	memset(region, 0, sizeof(region));
	names_forget();
	names_format(region, 1);
	EXPECT(!nl_open(&nl, region, NAMES_SIZE, 0) && !nl_empty(&nl));
	for (u32 i = 0; i < 3; i++) {
		committed[i] = nl_next(&nl);
		change = names_change(i ? NL_RENAME : NL_CREATE, 20 + i);
		EXPECT(!nl_commit(&nl, names_append(&nl, &change)));
	}
	change = names_change(NL_LINK, 30);
	tail_start = names_append(&nl, &change);
	nl_beat(&nl, 5, 6, 0);
	tail_end = names_append(&nl, &change);
	if (decided) {
		nl_bit_set(&nl, bits, committed[1]);
		EXPECT(!nl_open(&nl, region, NAMES_SIZE, 0) && !nl_decide(&nl, bits, tail_end));
	}
	memcpy(good, region, NAMES_SIZE);
	EXPECT(!nl_open(&nl, region, NAMES_SIZE, 0) && !names_damage(&nl));
}

/* How many records a cursor gives before it ends, and whether it reports what the check does. */
static u32 count(u32 *kind)
{
	struct nl_cursor cursor;
	u32 n = 0;

	nl_cursor_start(&cursor, &nl);
	while (nl_cursor_next(&cursor, &record) > 0)
		n++;
	*kind = cursor.damage.kind;
	return n;
}

/* Opens the changed region: this damage, and so many records before it. */
static bool damaged(u32 kind, u32 records)
{
	u32 found, seen, kinds;

	if (nl_open(&nl, region, NAMES_SIZE, NL_OPEN_READ_ONLY))
		return false;
	kinds = names_damage(&nl);
	found = count(&seen);
	memcpy(region, good, NAMES_SIZE);
	return kinds == kind && seen == kind && found == records;
}

static void every_byte_of_a_record(void)
{
	for (u32 i = 0; i < 3; i++) {
		u32 len = ((i < 2 ? committed[i + 1] : nl.commit) - committed[i]) * NL_LINE;
		u8 *at = nl_line(&nl, committed[i]);

		for (u32 bit = 0; bit < len * 8; bit++) {
			at[bit / 8] ^= 1 << bit % 8;
			if (!damaged(NL_BAD_RECORD, i))
				EXPECT(!"a changed bit of a committed record is not noticed");
		}
	}
}

/* The tail just ends, but where a heartbeat has called it durable. */
static void every_byte_of_the_tail(void)
{
	u8 *known = nl_line(&nl, nl.commit), *unknown = nl_line(&nl, tail_start);

	for (u32 bit = 0; bit < (tail_start - nl.commit) * NL_LINE * 8; bit += 3) {
		known[bit / 8] ^= 1 << bit % 8;
		if (!damaged(NL_BAD_TAIL, 3))
			EXPECT(!"a changed bit of a durable tail is not noticed");
		unknown[bit / 8] ^= 1 << bit % 8;
		if (!damaged(0, 4))
			EXPECT(!"a tail that ends is called damaged");
	}
}

/* Any one or two bits of a word. */
static void every_bit_of_a_word(struct nl_word_onmedia *word, u32 kind)
{
	for (u32 a = 0; a < 64; a++) {
		for (u32 b = a; b < 64; b++) {
			u64 bits = 1ULL << a | 1ULL << b;

			word->word ^= cpu_to_le64(bits);
			if (!damaged(kind, 0))
				EXPECT(!"changed bits of a word are not noticed");
		}
	}
}

static void every_bit_of_decisions(void)
{
	u32 len = sizeof(*nl.decisions) + nl_bits_size(&nl);

	for (u32 bit = 0; bit < len * 8; bit++) {
		((u8 *)nl.decisions)[bit / 8] ^= 1 << bit % 8;
		if (!damaged(NL_BAD_DECISIONS, 0))
			EXPECT(!"a changed bit of a decision is not noticed");
	}
}

static void every_bit_of_a_header(void)
{
	for (u32 bit = 0; bit < sizeof(nl.header) * 8; bit++) {
		region[bit / 8] ^= 1 << bit % 8;
		EXPECT(!nl_open(&nl, region, NAMES_SIZE, NL_OPEN_READ_ONLY));
		EXPECT(names_damage(&nl) == NL_BAD_HEADER);
		EXPECT(!nl_open(&nl, region, NAMES_SIZE, 0) && nl.repaired == 1);
		EXPECT(!memcmp(region, good, NAMES_SIZE));
	}
	region[9] ^= 1;
	region[NL_PAGE_SIZE + 9] ^= 1;
	EXPECT(nl_open(&nl, region, NAMES_SIZE, 0) == NL_E_CORRUPT);
	memcpy(region, good, NAMES_SIZE);
	EXPECT(!nl_open(&nl, region, NAMES_SIZE, 0));
}

/* The medium shows an older value of a line, which is whole. */
static void lost_stores(void)
{
	struct nl_change change = names_change(NL_LINK, 31);
	static u8 older[NAMES_SIZE];

	memcpy(older, region, NAMES_SIZE);
	EXPECT(!nl_empty(&nl) && !nl_commit(&nl, names_append(&nl, &change)));
	nl_beat(&nl, 7, 8, 0);
	memcpy(good, region, NAMES_SIZE);
	memcpy(&nl.words->commit, older + 2 * NL_PAGE_SIZE + offsetof(struct nl_words_onmedia, commit),
	       NL_LINE);
	EXPECT(damaged(NL_BAD_COMMIT, 0));
	memcpy(nl_line(&nl, nl.trim), nl_line(&nl, nl.trim - nl.nr_lines / 2), NL_LINE);
	EXPECT(damaged(NL_BAD_RECORD, 0));
}

/* A record that was committed, copied to another place, or of another log. */
static void copied_elsewhere(void)
{
	memcpy(nl_line(&nl, committed[1]), nl_line(&nl, committed[2]), NL_LINE);
	EXPECT(damaged(NL_BAD_RECORD, 1));
	names_format(region, 2);
	memcpy(nl_line(&nl, 1), good + (nl_line(&nl, committed[0]) - region), 8 * NL_LINE);
	EXPECT(!nl_open(&nl, region, NAMES_SIZE, 0) && nl_read(&nl, committed[0], &record));
	memcpy(region, good, NAMES_SIZE);
	EXPECT(!nl_open(&nl, region, NAMES_SIZE, 0));
}

static void count_damage(void *arg, const struct nl_damage *damage)
{
	(void)damage;
	++*(u32 *)arg;
}

/* The check reports each gap, where the cursor ends at the first. */
static void two_gaps(void)
{
	u32 n = 0;

	nl_line(&nl, committed[0])[50] ^= 1;
	nl_line(&nl, committed[2])[50] ^= 1;
	EXPECT(!nl_open(&nl, region, NAMES_SIZE, 0));
	EXPECT(nl_check(&nl, &record, count_damage, &n) == 2 && n == 2);
	memcpy(region, good, NAMES_SIZE);
}

/* What can be set aside, and what needs another format. */
static void given_up(void)
{
	nl.words->commit.word ^= 1;
	EXPECT(!nl_open(&nl, region, NAMES_SIZE, 0) && !nl_empty(&nl));
	EXPECT(!nl_open(&nl, region, NAMES_SIZE, 0) && !names_damage(&nl));
	nl.words->trim.word ^= 1;
	EXPECT(!nl_open(&nl, region, NAMES_SIZE, 0) && nl_empty(&nl) == -EUCLEAN);
	memcpy(region, good, NAMES_SIZE);
	EXPECT(!nl_open(&nl, region, NAMES_SIZE, 0));
}

static void append_committed(void)
{
	struct nl_change change = names_change(NL_CREATE, 40);

	EXPECT(!nl_commit(&nl, names_append(&nl, &change)));
}

/* Opened again, the log on the simulator's image has so many records, all whole. */
static bool whole(u32 records)
{
	u32 kind;

	return !nl_open(&nl, sim_live(), NAMES_SIZE, 0) && !names_damage(&nl) && count(&kind) == records &&
	       !kind;
}

/* The medium loses the line of a word: the next store of the word heals it, and no record is lost. */
static void lost_lines(void)
{
	names_forget();
	sim_start(good, NAMES_SIZE, SIM_MEM_CTRL);
	EXPECT(!nl_open(&nl, sim_live(), NAMES_SIZE, 0) && !nl_empty(&nl));
	append_committed();
	sim_lose_line(&nl.words->commit);
	append_committed();
	EXPECT(whole(2) && !nl_empty(&nl));
	append_committed();
	sim_lose_line(&nl.words->trim);
	EXPECT(!nl_trim(&nl, nl_next(&nl)));
	append_committed();
	EXPECT(whole(1));
	sim_lose_line(&nl.words->commit);
	sim_lose_line(&nl.words->decided);
	EXPECT(!nl_open(&nl, sim_live(), NAMES_SIZE, 0));
	EXPECT(names_damage(&nl) == (NL_BAD_COMMIT_WORD | NL_BAD_DECIDED_WORD));
	EXPECT(!nl_empty(&nl) && whole(0));
}

void names_damage_tests(void)
{
	start(false);
	EXPECT(nl.commit == nl.trim + (nl.commit - committed[0]));
	every_byte_of_a_record();
	every_byte_of_the_tail();
	every_bit_of_a_word(&nl.words->trim, NL_BAD_TRIM_WORD);
	every_bit_of_a_word(&nl.words->commit, NL_BAD_COMMIT_WORD);
	every_bit_of_a_header();
	copied_elsewhere();
	two_gaps();
	given_up();
	lost_stores();
	lost_lines();
	start(true);
	every_bit_of_a_word(&nl.words->decided, NL_BAD_DECIDED_WORD);
	every_bit_of_decisions();
}
