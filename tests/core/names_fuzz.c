// SPDX-License-Identifier: GPL-2.0-only
/*
 * Mutated regions. Opening, checking and reading end, stay inside the region (the sanitizers see to that),
 * and return only what names.h promises; and a log that is emptied works.
 *
 * The same seed gives the same images. FUZZ_CASES and FUZZ_SEED in the environment make it longer or other.
 */
#include "names/layout.h"
#include "names/replay.h"
#include "names_crash.h"
#include "test.h"

#include <stdio.h>
#include <stdlib.h>

#define CASES		60000

static u8 *image;		/* of just NAMES_SIZE bytes, so that reading beyond is noticed */
static u8 good[NAMES_SIZE];
static struct nl_record record;
static u64 opened, records, damages;

/* As over xfs: the record's counters are from behind a step. */
static void make_step(struct nl_change *change)
{
	change->flags |= nl_flags_allowed(change->kind, change->has) & NL_STEPPED;
	change->dir.count.before += NL_STEP;
	change->dir2.count.before += NL_STEP;
	change->self.before += NL_STEP;
	change->self2.before += NL_STEP;
}

/* A log with all kinds of records, a tail, a heartbeat and, every second time, decisions. */
static void make_good(bool decided)
{
	static u8 bits[256];
	struct nl nl;

	memset(image, 0, NAMES_SIZE);
	names_forget();
	names_format(image, 1);
	if (nl_open(&nl, image, NAMES_SIZE, 0) || nl_empty(&nl))
		abort();
	for (u32 kind = NL_CREATE; kind <= NL_IFLAGS; kind++) {
		struct nl_change change = names_change(kind, sim_random(100));

		if (kind % 2)
			make_step(&change);
		names_append(&nl, &change);
		if (kind == NL_XATTR_SET)
			nl_commit(&nl, nl_next(&nl));
	}
	nl_beat(&nl, 1, 2, 0);
	if (decided && (nl_open(&nl, image, NAMES_SIZE, 0) || nl_decide(&nl, bits, nl.commit + 9)))
		abort();
	memcpy(good, image, NAMES_SIZE);
}

static void scatter(u8 *at, u32 len)
{
	for (u32 n = 1 + sim_random(1u << sim_random(8)); n; n--)
		at[sim_random(len)] = sim_random(2) ? sim_random(256) : at[sim_random(len)];
}

static u64 evil(u64 near)
{
	switch (sim_random(4)) {
	case 0:
		return sim_random(2000);
	case 1:
		return near + sim_random(40) - 20;
	case 2:
		return near + (1ULL << sim_random(64));
	default:
		return (u64)sim_random(~0u) << 32 | sim_random(~0u);
	}
}

/* Other words, with checks that are right. */
static void mutate_word(struct nl *nl)
{
	u64 place = evil(nl->commit) & NL_MAX_PLACE;

	switch (sim_random(3)) {
	case 0:
		nl->words->trim.word = cpu_to_le64(nl_word(nl, NL_WORD_TRIM, place));
		break;
	case 1:
		nl->words->commit.word = cpu_to_le64(nl_word(nl, NL_WORD_COMMIT, place));
		break;
	default:
		nl->words->decided.word = cpu_to_le64(nl_word(nl, NL_WORD_DECIDED, place));
	}
}

/* A record with other bytes, and a checksum that is right. */
static void mutate_record(struct nl *nl)
{
	u64 place = nl->trim;
	struct nl_record_onmedia *rec;
	u8 bytes[NL_MAX_RECORD];
	u32 lines, crc;

	for (u32 skip = sim_random(10); skip && !nl_read(nl, place, &record); skip--)
		place = record.end;
	if (nl_read(nl, place, &record))
		return;
	lines = record.end - place;
	memcpy(bytes, record.bytes, lines * NL_LINE);
	rec = (void *)bytes;
	for (u32 n = 1 + sim_random(3); n; n--)
		bytes[16 + sim_random(lines * NL_LINE - 16)] = sim_random(sim_random(2) ? 256 : 16);
	if (sim_random(2))
		rec->lines = cpu_to_le16(lines);
	rec->crc = 0;
	crc = ~crc32c(crc32c(nl->seed, bytes + NL_LINE, (lines - 1) * NL_LINE), bytes, NL_LINE);
	rec->crc = cpu_to_le32(crc);
	memcpy(nl_line(nl, place), bytes, lines * NL_LINE);
}

/* Another geometry, with a checksum that is right. */
static void mutate_header(struct nl *nl)
{
	struct nl_header_onmedia *h = &nl->header;
	u32 first = offsetof(struct nl_header_onmedia, seq) / 8, fields = sizeof(*h) / 8 - first;
	u32 at = first + sim_random(fields), crc;
	__le64 raw;

	memcpy(&raw, (u8 *)h + at * 8, 8);
	raw = cpu_to_le64(evil(le64_to_cpu(raw)));
	memcpy((u8 *)h + at * 8, &raw, 8);
	h->crc = 0;
	crc = ~crc32c(~0u, h, sizeof(*h));
	h->crc = cpu_to_le32(crc);
	for (u32 copy = sim_random(2); copy < 2; copy++)
		memcpy(image + copy * NL_PAGE_SIZE, h, sizeof(*h));
}

static void mutate(struct nl *nl)
{
	switch (sim_random(6)) {
	case 0:
		scatter(image, 4 * NL_PAGE_SIZE);
		return;
	case 1:
		scatter(nl->ring, (nl->commit - nl->trim + 20) * NL_LINE);
		return;
	case 2:
		mutate_header(nl);
		return;
	case 3:
		mutate_word(nl);
		return;
	}
	for (u32 n = 1 + sim_random(4); n; n--)
		mutate_record(nl);
}

static bool text_inside(const struct nl_text *text)
{
	return !text->len || (text->bytes > record.bytes &&
			      text->bytes + text->len <= record.bytes + NL_MAX_RECORD);
}

static bool record_sane(u64 place)
{
	const struct nl_change *c = &record.change;

	return record.start >= place && record.end > record.start &&
	       record.end - record.start <= NL_MAX_LINES && nl_change_allowed(c) &&
	       c->dir.id.len <= NL_HANDLE_MAX && c->object.len <= NL_HANDLE_MAX &&
	       text_inside(&c->name) && text_inside(&c->name2) && text_inside(&c->target) &&
	       text_inside(&c->xattr) && text_inside(&c->value) && nl_change_lines(c) > 0;
}

static void read_all(const struct nl *nl)
{
	struct nl_cursor cursor;
	u64 place = 0;
	int got;

	nl_cursor_start(&cursor, nl);
	while ((got = nl_cursor_next(&cursor, &record)) > 0) {
		if (!record_sane(place))
			EXPECT(!"an impossible record");
		place = record.end;
		records++;
		if (nl->decided && nl_on_storage(nl, record.start) < 0)
			EXPECT(!"no decision for a record");
	}
	if (got < 0) {
		damages++;
		EXPECT(cursor.damage.kind && cursor.damage.why);
		EXPECT(names_damage(nl));
	}
	EXPECT(!nl_cursor_next(&cursor, &record));
}

static int random_look(void *arg, const struct nl_identity *dir, u64 *counter, s64 *ctime)
{
	(void)arg;
	EXPECT(dir->len <= NL_HANDLE_MAX);
	*counter = sim_random(2) ? sim_random(200) : evil(100);
	*ctime = evil(5100);
	return sim_random(4) ? (int)sim_random(4) : -ENOENT;
}

/* A judgment and all steps of replay end, whatever the records say and storage has. */
static void conclude(struct nl *nl)
{
	static struct nl_node nodes[256];
	static struct nl_record other;
	struct nl_replay_sizes sizes;
	struct nl_name names[256] = { };
	u32 slots[512] = { }, steps = 0;
	u8 bits[256] = { };
	struct nl_nodes table = { .nodes = nodes, .max = 256, .slots = slots, .nr_slots = 512 };
	struct nl_judge judge = {
		.nl = nl, .record = &record, .nodes = table, .bits = bits, .look = random_look,
	};
	struct nl_bind bind = {
		.nl = nl, .record = &record, .other = &other, .nodes = table, .names = names, .nr_names = 256,
	};
	struct nl_binding step;

	if (nl_replay_sizes(nl, &record, &sizes) || sizes.nodes > 256 || sizes.names > 255 ||
	    nl_bits_size(nl) > sizeof(bits))
		return;
	if (!nl->decided && (nl_judge(&judge) || nl_decide(nl, bits, judge.end)))
		EXPECT(!"a log without damage gets no verdict");
	memset(slots, 0, sizeof(slots));
	if (nl_bind_start(&bind))
		return;		/* it contradicts itself */
	while (nl_bind_next(&bind, &step) > 0)
		steps++;
	EXPECT(steps <= sizes.nodes + sizes.names + sizes.records);
}

/* As a user that accepts the loss. */
static void go_on(struct nl *nl)
{
	struct nl_change change = names_change(NL_CREATE, 1);
	struct nl_cursor cursor;
	int err = nl_empty(nl);
	u64 end;

	if (err) {
		EXPECT(err == -EOVERFLOW || nl->bad & NL_BAD_TRIM_WORD);
		return;
	}
	end = names_append(nl, &change);
	EXPECT(end && !nl_commit(nl, end) && !nl->bad);
	nl_cursor_start(&cursor, nl);
	EXPECT(nl_cursor_next(&cursor, &record) == 1 && record.end == end);
	while (nl_cursor_next(&cursor, &record) > 0)
		EXPECT(cursor.place <= nl->trim + nl->nr_lines);	/* only with another geometry */
}

static void one_case(void)
{
	struct nl nl;

	memcpy(image, good, NAMES_SIZE);
	if (nl_open(&nl, image, NAMES_SIZE, NL_OPEN_READ_ONLY))
		abort();
	mutate(&nl);
	if (nl_open(&nl, image, NAMES_SIZE, sim_random(2) ? NL_OPEN_READ_ONLY : 0))
		return;
	opened++;
	names_damage(&nl);
	read_all(&nl);
	conclude(&nl);
	go_on(&nl);
}

void names_fuzz_tests(void)
{
	const char *number = getenv("FUZZ_CASES"), *seed = getenv("FUZZ_SEED");
	u64 n = number ? strtoull(number, NULL, 0) : CASES;

	image = aligned_alloc(4096, NAMES_SIZE);
	if (!image)
		abort();
	sim_seed(seed ? strtoull(seed, NULL, 0) : 1);
	for (u64 i = 0; i < n; i++) {
		if (i % 1000 == 0)
			make_good(i / 1000 % 2);
		one_case();
		names_forget();
	}
	free(image);
	printf("names fuzz: %llu images, %llu opened, %llu records, %llu damages\n", n, opened, records,
	       damages);
}
