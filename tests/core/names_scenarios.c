// SPDX-License-Identifier: GPL-2.0-only
/*
 * Every operation on a name log, cut at every point; and the proof that these tests notice mistakes. Each
 * fence, flush and copy past the caches of an operation is left out in turn, and then a state must be wrong.
 *
 * Operations acknowledge (ack()) where a sync call or a step of recovery may return.
 */
#include "names_crash.h"
#include "sabotage.h"
#include "test.h"

#include <stdlib.h>

#define ARRAY_SIZE(a)	(sizeof(a) / sizeof(*(a)))

static u64 append(struct nl *nl, enum nl_kind kind, u32 number)
{
	struct nl_change change = names_change(kind, number);
	u64 end = names_append(nl, &change);

	if (!end)
		abort();
	return end;
}

static void commit(struct nl *nl, u64 end)
{
	if (nl_commit(nl, end))
		abort();
}

static void trim(struct nl *nl, u64 end)
{
	nl_settle(nl, end);
	if (nl_trim(nl, end))
		abort();
}

static void reopen(struct nl *nl)
{
	if (nl_open(nl, sim_live(), NAMES_SIZE, names_open_flags()))
		abort();
}

static void empty(struct nl *nl)
{
	if (nl_empty(nl))
		abort();
}

/* --- setups --- */

static void setup_some(struct nl *nl)
{
	append(nl, NL_CREATE, 1);
	commit(nl, append(nl, NL_LINK, 2));
}

/* A tail that no commit has reached. */
static void setup_tail(struct nl *nl)
{
	setup_some(nl);
	append(nl, NL_RENAME, 3);
	append(nl, NL_UNLINK, 4);
}

/* The next record goes round the end of the ring. */
static void setup_round(struct nl *nl)
{
	while (nl_next(nl) % nl->nr_lines < nl->nr_lines - 2) {
		bool near = nl_next(nl) % nl->nr_lines > nl->nr_lines - 9;

		trim(nl, append(nl, near ? NL_TMPFILE : NL_XATTR_SET, nl_next(nl) % 1000));
		sim_settle();
	}
	commit(nl, append(nl, NL_TMPFILE, 6));
}

/* The log has no space left: records of all lines, committed. */
static void setup_full(struct nl *nl)
{
	struct nl_change change = names_change(NL_LINK, 1);
	u64 end = 0, next;

	for (u32 number = 0; (next = names_append(nl, &change)); number++)
		end = next;
	commit(nl, end);
}

/* As left by a machine that lost its power: opened, and not emptied. */
static void setup_recovery(struct nl *nl)
{
	setup_tail(nl);
	nl_beat(nl, 100, 200, 0);
	append(nl, NL_CREATE, 5);
	sim_settle();
	reopen(nl);
}

static void setup_foreign(struct nl *nl)
{
	u32 *words = sim_live();

	(void)nl;
	for (u32 i = 0; i < NAMES_SIZE / sizeof(*words); i++)
		words[i] = sim_random(~0u) | 1;
}

static void setup_old_log(struct nl *nl)
{
	names_format(sim_live(), 2);
	if (nl_open(nl, sim_live(), NAMES_SIZE, 0) || nl_empty(nl))
		abort();
	setup_tail(nl);
}

static void setup_bad_a(struct nl *nl)
{
	setup_some(nl);
	((u8 *)sim_live())[9] ^= 1;
}

static void setup_bad_b(struct nl *nl)
{
	setup_some(nl);
	((u8 *)sim_live())[NL_PAGE_SIZE + 9] ^= 1;
}

static void setup_bad_words(struct nl *nl)
{
	setup_tail(nl);
	nl->words->commit.word ^= cpu_to_le64(4);
	nl->words->decided.word = cpu_to_le64(12345);
	sim_settle();
	reopen(nl);
}

/* --- operations --- */

static void op_format(struct nl *nl)
{
	(void)nl;
	names_format(sim_live(), 1);
}

static void op_commit(struct nl *nl)
{
	commit(nl, append(nl, NL_RENAME, 7));
}

/* Every kind of record; a sync for two at a time. */
static void op_all_kinds(struct nl *nl)
{
	for (u32 kind = NL_CREATE; kind <= NL_IFLAGS; kind += 2) {
		append(nl, kind, 10 + kind);
		commit(nl, append(nl, kind + 1, 40 + kind));
		ack();
	}
}

/* Two processors write records; a third makes both durable. */
static void op_writers(struct nl *nl)
{
	struct nl_change a = names_change(NL_LINK, 1), b = names_change(NL_CREATE, 2);
	struct nl_place first, second;

	if (nl_reserve(nl, &first, nl_change_lines(&a)) || nl_reserve(nl, &second, nl_change_lines(&b)))
		abort();
	nl_take(nl, &first, first.reserved, false);
	nl_take(nl, &second, second.reserved, false);
	sim_thread(1);
	names_write(nl, &second, &b);
	if (nl_commit(nl, second.end) != -EAGAIN)
		abort();
	sim_thread(2);
	names_write(nl, &first, &a);
	sim_thread(3);
	commit(nl, first.end);
	ack();
	sim_thread(1);
	commit(nl, second.end);
}

/* The background's lower sync has returned; the lines are used again. */
static void op_trim(struct nl *nl)
{
	u64 end = nl_next(nl);

	trim(nl, end);
	ack();
	commit(nl, append(nl, NL_LINK, 9));
	ack();
	append(nl, NL_CREATE, 9);
	trim(nl, nl_next(nl));
}

static void op_reuse(struct nl *nl)
{
	trim(nl, nl->commit - nl->nr_lines / 2);
	ack();
	commit(nl, append(nl, NL_RENAME, 11));
	ack();
	for (u32 i = 0; i < 20; i++)
		append(nl, NL_CREATE, 60 + i);
	commit(nl, append(nl, NL_LINK, 12));
}

static void op_beat(struct nl *nl)
{
	nl_beat(nl, 1000, 2000, 0);
	ack();
	append(nl, NL_CREATE, 3);
	nl_beat(nl, 2000, 3000, 1500);
	ack();
	commit(nl, append(nl, NL_LINK, 4));
	ack();
	append(nl, NL_CREATE, 5);
	nl_beat(nl, 3000, 4000, 0);
}

/* A commit can't pass an opaque record before a lower sync has. */
static void op_opaque(struct nl *nl)
{
	u64 before = append(nl, NL_CREATE, 3), opaque = names_append_opaque(nl, 4), end, synced;

	end = append(nl, NL_LINK, 5);
	if (nl_commit(nl, end) != -EBUSY || nl_commit(nl, opaque) != -EBUSY)
		abort();
	commit(nl, before);
	ack();
	synced = nl_next(nl);
	names_append_opaque(nl, 6);
	nl_settle(nl, synced);
	commit(nl, end);
	ack();
	if (nl_commit(nl, nl_next(nl)) != -EBUSY)
		abort();
	nl_settle(nl, nl_next(nl));
	commit(nl, nl_next(nl));
}

/* Every second record that the log has. */
static void decide(struct nl *nl)
{
	static struct nl_record record;
	struct nl_cursor cursor;
	u8 bits[256] = { };
	u32 n = 0;

	if (nl_bits_size(nl) > sizeof(bits))
		abort();
	nl_cursor_start(&cursor, nl);
	while (nl_cursor_next(&cursor, &record) > 0)
		if (n++ % 2)
			nl_bit_set(nl, bits, record.start);
	if (nl_decide(nl, bits, cursor.place) || nl_decide(nl, bits, cursor.place) != -EEXIST)
		abort();
}

static void recover(struct nl *nl)
{
	decide(nl);
	ack();
	empty(nl);
}

/* Recovery, and the next life; which has a recovery, too. */
static void op_recovery(struct nl *nl)
{
	recover(nl);
	ack();
	append(nl, NL_LINK, 1);
	commit(nl, append(nl, NL_CREATE, 2));
	ack();
	reopen(nl);
	recover(nl);
}

/* The module is loaded again without a power cut: the tail is in the CPU's caches. */
static void op_restart(struct nl *nl)
{
	sim_thread(1);
	append(nl, NL_CREATE, 1);
	append(nl, NL_LINK, 2);
	sim_thread(2);
	reopen(nl);
	recover(nl);
}

static void op_empty(struct nl *nl)
{
	empty(nl);
	ack();
	append(nl, NL_CREATE, 1);
	commit(nl, append(nl, NL_LINK, 2));
}

/* The medium loses the line of a word. From here on a cut leaves the damage, or what the next steps do. */
static void lose_line(struct nl_word_onmedia *word)
{
	sim_lose_line(word);
	ack();
}

static void op_commit_lost_word(struct nl *nl)
{
	lose_line(&nl->words->commit);
	op_commit(nl);
}

static void op_trim_lost_word(struct nl *nl)
{
	lose_line(&nl->words->trim);
	trim(nl, nl_next(nl));
	ack();
	commit(nl, append(nl, NL_LINK, 9));
}

/* Recovery finds that the words are lost, and the loss is accepted. */
static void op_empty_lost_words(struct nl *nl)
{
	sim_lose_line(&nl->words->commit);
	lose_line(&nl->words->decided);
	reopen(nl);
	op_empty(nl);
}

/*
 * Some steps may be missing without harm because only another case needs them; .spared says how many, over
 * both domains. Format where no log was: breaking the header copies hides nothing, and what is not zeroed in
 * the page of words is of no valid heartbeat. Where CPU caches are persistent, each record has a fence of
 * its own. That fence is needed only if no other fence of the task comes before the commit.
 */
static const struct names_scenario scenarios[] = {
	{ .name = "format a blank region", .raw = true, .op = op_format, .spared = 4 },
	{ .name = "format a foreign region", .raw = true, .setup = setup_foreign, .op = op_format,
	  .spared = 6 },
	{ .name = "format over a log", .raw = true, .setup = setup_old_log, .op = op_format },
	{ .name = "open, copy A bad", .setup = setup_bad_a, .op = reopen },
	{ .name = "open, copy B bad", .setup = setup_bad_b, .op = reopen },
	{ .name = "first commit", .op = op_commit },
	{ .name = "commit behind a tail", .setup = setup_tail, .op = op_commit },
	{ .name = "commit round the end of the ring", .setup = setup_round,
	  .op = op_all_kinds, .spared = 5 },
	{ .name = "every kind of record", .op = op_all_kinds, .spared = 5 },
	{ .name = "two writers", .setup = setup_some, .op = op_writers },
	{ .name = "trim", .setup = setup_tail, .op = op_trim, .spared = 1 },
	{ .name = "use lines again", .setup = setup_full, .op = op_reuse, .spared = 20 },
	{ .name = "heartbeats", .setup = setup_tail, .op = op_beat },
	{ .name = "opaque records", .setup = setup_some, .op = op_opaque, .spared = 4 },
	{ .name = "recovery, twice", .setup = setup_recovery, .op = op_recovery, .spared = 1 },
	{ .name = "restart without a power cut", .setup = setup_some, .op = op_restart, .spared = 1 },
	{ .name = "empty", .setup = setup_tail, .op = op_empty, .spared = 1 },
	{ .name = "commit, the commit word lost", .setup = setup_tail, .op = op_commit_lost_word },
	{ .name = "trim, the trim word lost", .setup = setup_tail, .op = op_trim_lost_word },
	{ .name = "empty, words lost", .setup = setup_tail, .op = op_empty_lost_words, .spared = 1 },
	{ .name = "empty, words damaged", .setup = setup_bad_words, .op = op_empty, .spared = 1 },
};

static const char *explore(const void *scenario, enum sim_domain domain, u32 samples,
			   enum sim_sabotage what, u32 nth)
{
	struct nl nl;

	names_setup(scenario, &nl, domain);
	return names_explore(scenario, &nl, domain, samples, what, nth);
}

static void all_scenarios(void (*test)(const struct operation *operation))
{
	for (u32 i = 0; i < ARRAY_SIZE(scenarios); i++)
		test(&(struct operation){
			.group = "names crash", .name = scenarios[i].name, .spared = scenarios[i].spared,
			.scenario = &scenarios[i], .explore = explore,
		});
}

void names_crash_tests(void)
{
	all_scenarios(cut_everywhere);
}

void names_sabotage_tests(void)
{
	all_scenarios(sabotage_all_steps);
}
