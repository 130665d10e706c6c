// SPDX-License-Identifier: GPL-2.0-only
/*
 * Every operation on a write log, cut at every point; and the proof that these
 * tests notice mistakes. Each fence, flush and copy past the caches of an
 * operation is left out in turn, and then a state must be wrong.
 *
 * Operations are what the target does: they acknowledge (ack()) where it
 * may complete a write, and rely on nothing else being durable.
 */
#include "sabotage.h"
#include "test.h"
#include "writelog_crash.h"

#include <stdlib.h>

#define ARRAY_SIZE(a)	(sizeof(a) / sizeof(*(a)))

/* --- setups --- */

static void setup_open(struct log *log)
{
	log_open_gen(log, 0);
}

/* Three entries in slot 0's chunk, one in slot 1's. */
static void setup_some(struct log *log)
{
	log_open_gen(log, 0);
	log_write(log, 0, 100, 1);
	log_entry(log, 0, WL_OP_DISCARD, 50, 1000);
	log_write(log, 0, 101, 2);
	log_write(log, 1, 100, 1);
}

/* Two generations that are sealed, and a third that is open; the oldest is number 1. */
static void setup_generations(struct log *log)
{
	static const u32 order[] = { 1, 0, 2 };

	for (u32 i = 0; i < 3; i++) {
		log_open_gen(log, order[i]);
		log_write(log, 0, 100, 1);
		log_write(log, 1, 101, 1);
		log_write(log, 0, 200 + i, 1);
		if (i < 2)
			wl_gen_seal(&log->wl, order[i], log->id, 3);
	}
}

/* Generation 1, which was the oldest, is free; what it held still lies there. */
static void setup_freed(struct log *log)
{
	setup_generations(log);
	wl_gen_free(&log->wl, 1);
}

/* As that, and the medium has changed a word of one of its chunks. */
static void setup_freed_damaged(struct log *log)
{
	u8 *word = log->wl.data + (LOG_CHUNKS + 1) * LOG_CHUNK_SIZE - 64;

	setup_freed(log);
	word[3] ^= 0x10;
}

static void setup_damaged_gen(struct log *log)
{
	setup_generations(log);
	log->wl.gens[1].word ^= cpu_to_le64(1 << 5);
}

static void setup_damaged_open_gen(struct log *log)
{
	setup_generations(log);
	log->wl.gens[2].word ^= cpu_to_le64(1 << 5);
}

static void setup_foreign(struct log *log)
{
	u32 *words = sim_live();

	(void)log;
	for (u32 i = 0; i < 65536 / sizeof(*words); i++)
		words[i] = sim_random(~0u) | 1;
	memcpy(sim_durable(), words, LOG_SIZE);
}

static void setup_old_log(struct log *log)
{
	log_format(LOG_GENS + 1, false);
	if (wl_open(&log->wl, sim_live(), LOG_SIZE, 0))
		abort();
	setup_generations(log);
}

static void setup_bad_super(struct log *log, u32 copy)
{
	setup_some(log);
	((u8 *)sim_live())[copy * WL_PAGE_SIZE + 9] ^= 1;
}

static void setup_bad_a(struct log *log)
{
	setup_bad_super(log, 0);
}

static void setup_bad_b(struct log *log)
{
	setup_bad_super(log, 1);
}

/* --- operations --- */

static void op_format(struct log *log)
{
	(void)log;
	log_format(LOG_GENS, true);
}

static void op_open(struct log *log)
{
	if (wl_open(&log->wl, sim_live(), LOG_SIZE, 0))
		abort();
}

static void op_bind(struct log *log)
{
	wl_bind(&log->wl, 1000, (const u8 *)"0123456789012345678901234567890123456789012345678901234567890123");
	ack();
	wl_bind(&log->wl, 2000, (const u8 *)"0123456789012345678901234567890123456789012345678901234567890123");
	ack();
	wl_unbind(&log->wl);
}

/*
 * Two generations are written back, the second of which changes how the origin begins. Then the log is
 * bound to another origin.
 */
static void op_fingerprint(struct log *log)
{
	wl_bind(&log->wl, 1000, (const u8 *)"0123456789012345678901234567890123456789012345678901234567890123");
	ack();
	wl_fingerprint_set(&log->wl, 0x12345678);
	ack();
	wl_gen_free(&log->wl, 1);
	ack();
	wl_fingerprint_set(&log->wl, WL_FINGERPRINT_CHANGING);
	ack();		/* the origin may be changed now */
	wl_fingerprint_set(&log->wl, 0x9abcdef0);
	ack();
	wl_gen_free(&log->wl, 0);
	ack();
	wl_bind(&log->wl, 2000, (const u8 *)"abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijkl");
	ack();
	wl_fingerprint_set(&log->wl, 0x9abcdef0);
	ack();
	wl_fingerprint_set(&log->wl, WL_FINGERPRINT_NONE);
}

static void op_discard(struct log *log)
{
	log_entry(log, 0, WL_OP_DISCARD, 7, 3);
	wl_commit(&log->wl, &log->slots[0]);
	ack();
	log_entry(log, 0, WL_OP_ZEROES, 1ULL << 50, 1 << 20);
	wl_commit(&log->wl, &log->slots[0]);
}

static void op_write(struct log *log)
{
	log_write(log, 0, 100, 1);
}

/* The medium loses the line of a word. From here on a cut leaves the damage, or what the next steps do. */
static void lose_line(void *word)
{
	sim_lose_line(word);
	ack();
}

/* The medium loses the word of the chunk before the first write, and of the other chunk before the second. */
static void op_write_lost_word(struct log *log)
{
	u8 *end = log->wl.data + LOG_CHUNK_SIZE;

	lose_line(end - WL_LINE);
	log_write(log, 0, 100, 1);
	ack();
	lose_line(end + LOG_CHUNK_SIZE - WL_LINE);
	log_write(log, 1, 100, 1);
}

static void op_write_again(struct log *log)
{
	log_write(log, 0, 100, 1);
	ack();
	log_write(log, 0, 100, 1);
	ack();
	log_write(log, 1, 100, 1);
}

/* A write of 5 sectors that is split, as if by a chunk's end; durable at once. */
static void op_write_batch(struct log *log)
{
	log_entry(log, 0, WL_OP_WRITE, 100, 1);
	log_entry(log, 0, WL_OP_WRITE, 101, 2);
	log_entry(log, 0, WL_OP_DISCARD, 0, 1);
	wl_commit(&log->wl, &log->slots[0]);
}

/* Two processors, each in its own slot, neither waiting for the other. */
static void op_two_writers(struct log *log)
{
	sim_thread(1);
	log_entry(log, 1, WL_OP_WRITE, 100, 1);
	sim_thread(2);
	log_entry(log, 0, WL_OP_WRITE, 100, 1);
	wl_commit(&log->wl, &log->slots[0]);
	ack();
	sim_thread(1);
	wl_commit(&log->wl, &log->slots[1]);
	ack();
	sim_thread(2);
	log_entry(log, 0, WL_OP_DISCARD, 0, 5);
	wl_commit(&log->wl, &log->slots[0]);
}

/* Fills a chunk to the last byte, then takes the next. */
static void op_chunk_change(struct log *log)
{
	struct wl_slot *slot = &log->slots[0];

	while (wl_slot_space(&log->wl, slot, 1024))
		log_entry(log, 0, WL_OP_WRITE, 100, 2);
	while (!wl_slot_full(&log->wl, slot))
		log_entry(log, 0, WL_OP_DISCARD, 8, 1);
	wl_commit(&log->wl, slot);
	ack();
	wl_slot_take(slot, slot->gen, slot->id, 2);
	log_write(log, 0, 100, 1);
}

/* Another processor opens the next generation; the old one is sealed later. */
static void op_generation_change(struct log *log)
{
	sim_thread(1);
	log_open_gen(log, 3);
	sim_thread(2);
	log_write(log, 0, 100, 1);
	ack();
	sim_thread(1);
	wl_gen_seal(&log->wl, 0, log->id - 1, 4);
	ack();
	sim_thread(2);
	log_write(log, 1, 100, 1);
}

static void op_reclaim(struct log *log)
{
	wl_gen_free(&log->wl, 1);
	ack();
	wl_gen_free(&log->wl, 0);
	ack();
	wl_gen_free(&log->wl, 2);
}

/* Space that held entries is opened and written again. */
static void op_reuse(struct log *log)
{
	sim_thread(1);
	log_open_gen(log, 1);
	sim_thread(2);
	log_write(log, 1, 100, 1);
	ack();
	log_entry(log, 0, WL_OP_DISCARD, 1, 1);
	wl_commit(&log->wl, &log->slots[0]);
}

static void op_seal(struct log *log)
{
	wl_gen_seal(&log->wl, 2, log->id, 3);
}

static void op_seal_lost_word(struct log *log)
{
	lose_line(&log->wl.gens[2].word);
	wl_gen_seal(&log->wl, 2, log->id, 3);
}

/* The medium loses the word of a chunk after the chunk's last commit. */
static void op_seal_lost_chunk(struct log *log)
{
	lose_line(log->wl.data + (2 * LOG_CHUNKS + 1) * LOG_CHUNK_SIZE - WL_LINE);
	wl_gen_seal(&log->wl, 2, log->id, 3);
}

/* The same with the words of both chunks. */
static void op_seal_lost_chunks(struct log *log)
{
	u8 *end = log->wl.data + (2 * LOG_CHUNKS + 1) * LOG_CHUNK_SIZE;

	sim_lose_line(end - WL_LINE);
	lose_line(end + LOG_CHUNK_SIZE - WL_LINE);
	wl_gen_seal(&log->wl, 2, log->id, 3);
}

/* The oldest generation goes while others are being filled, and comes again. */
static void op_life(struct log *log)
{
	sim_thread(1);
	log_write(log, 0, 300, 1);
	ack();
	sim_thread(2);
	wl_gen_free(&log->wl, 1);
	ack();
	wl_gen_seal(&log->wl, 2, log->id, 4);
	ack();
	log_open_gen(log, 1);
	ack();
	sim_thread(1);
	log_write(log, 0, 100, 1);
	ack();
	sim_thread(2);
	wl_gen_free(&log->wl, 0);
}

/* A generation whose word is damaged is given up, and then used again. */
static void op_give_up(struct log *log)
{
	wl_gen_free(&log->wl, 1);
	ack();
	log_open_gen(log, 1);
	ack();
	log_write(log, 0, 100, 1);
}

static void op_give_up_lost_word(struct log *log)
{
	lose_line(&log->wl.gens[1].word);
	op_give_up(log);
}

static void op_reuse_lost_word(struct log *log)
{
	lose_line(&log->wl.gens[1].word);
	op_reuse(log);
}

/*
 * Some steps may be missing without harm because only another case needs them;
 * .spared says how many, over both domains.
 *   - Format where no log was: breaking the superblock copies hides nothing.
 *   - Format of a device that is not zero: a word that stays in a chunk is of
 *     another log, which its check shows. Only a log formatted with the same
 *     UUID needs these steps.
 *   - A generation whose word is lost is freed, and opened at once: the word that
 *     says free, and its fence. Only a medium that can't hold a chunk needs them.
 */
static const struct log_scenario scenarios[] = {
	{ .name = "format a blank device", .raw = true, .op = op_format, .spared = 4 },
	{ .name = "format a foreign device", .raw = true, .setup = setup_foreign, .op = op_format,
	  .spared = 18 },
	{ .name = "format over a log", .raw = true, .setup = setup_old_log, .op = op_format,
	  .spared = 6 },
	{ .name = "open, copy A bad", .setup = setup_bad_a, .op = op_open },
	{ .name = "open, copy B bad", .setup = setup_bad_b, .op = op_open },
	{ .name = "bind, bind again, unbind", .setup = setup_some, .op = op_bind },
	{ .name = "fingerprint of the origin", .setup = setup_generations, .op = op_fingerprint },
	{ .name = "log a discard and zeroes", .setup = setup_open, .op = op_discard },
	{ .name = "log a write", .setup = setup_open, .op = op_write },
	{ .name = "log three more writes", .setup = setup_some, .op = op_write_again },
	{ .name = "log writes, their chunks' words lost", .setup = setup_some, .op = op_write_lost_word },
	{ .name = "log a batch", .setup = setup_some, .op = op_write_batch },
	{ .name = "two writers", .setup = setup_some, .op = op_two_writers },
	{ .name = "chunk change", .setup = setup_some, .op = op_chunk_change },
	{ .name = "generation change", .setup = setup_some, .op = op_generation_change },
	{ .name = "reclaim", .setup = setup_generations, .op = op_reclaim },
	{ .name = "use space again", .setup = setup_freed, .op = op_reuse },
	{ .name = "use space again, a word damaged", .setup = setup_freed_damaged, .op = op_reuse },
	{ .name = "use space again, a generation's word lost", .setup = setup_freed,
	  .op = op_reuse_lost_word, .spared = 3 },
	{ .name = "life of a generation", .setup = setup_generations, .op = op_life },
	{ .name = "seal a damaged generation", .setup = setup_damaged_open_gen, .op = op_seal },
	{ .name = "seal a generation, its word lost", .setup = setup_generations, .op = op_seal_lost_word },
	{ .name = "seal a generation, a chunk's word lost", .setup = setup_generations,
	  .op = op_seal_lost_chunk },
	{ .name = "seal a generation, the words of its chunks lost", .setup = setup_generations,
	  .op = op_seal_lost_chunks, .piecewise = true },
	{ .name = "give a damaged generation up", .setup = setup_damaged_gen, .op = op_give_up },
	{ .name = "give a generation up, its word lost", .setup = setup_generations,
	  .op = op_give_up_lost_word },
};

static const char *explore(const void *scenario, enum sim_domain domain, u32 samples,
			   enum sim_sabotage what, u32 nth)
{
	struct log log;

	log_setup(scenario, &log, domain);
	return log_explore(scenario, &log, domain, samples, what, nth);
}

static void all_scenarios(void (*test)(const struct operation *operation))
{
	for (u32 i = 0; i < ARRAY_SIZE(scenarios); i++)
		test(&(struct operation){
			.group = "log crash", .name = scenarios[i].name, .spared = scenarios[i].spared,
			.scenario = &scenarios[i], .explore = explore,
		});
}

void log_crash_tests(void)
{
	all_scenarios(cut_everywhere);
}

void log_sabotage_tests(void)
{
	all_scenarios(sabotage_all_steps);
}
