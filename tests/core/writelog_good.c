// SPDX-License-Identifier: GPL-2.0-only
/* A good log, to be damaged: how it is made, where its words and headers are, and what a replay gives. */
#include "writelog_good.h"
#include "test.h"

#include <stdlib.h>

u8 good[LOG_SIZE];
struct log made;
struct good_found got;
static enum sim_domain domain;

/* Brings its image back. */
void good_restore(void)
{
	sim_start(good, LOG_SIZE, domain);
}

/* Makes it on the simulator's image. */
void good_make(enum sim_domain where)
{
	static const struct log_scenario scenario = { .name = "damage", .raw = true };
	static const u32 order[] = { 1, 0, 2 };

	domain = where;
	log_setup(&scenario, &made, domain);
	log_format(1, true);
	if (wl_open(&made.wl, sim_live(), LOG_SIZE, domain == SIM_MEM_CTRL ? WL_OPEN_FLUSH_CACHES : 0))
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
	good_restore();
}

void replay(void)
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

u8 *chunk_header(u32 gen, u32 chunk)
{
	return made.wl.data + (gen * LOG_CHUNKS + chunk + 1) * LOG_CHUNK_SIZE - WL_LINE;
}

u8 *entry_header(u32 gen, u32 chunk, u32 index)
{
	return chunk_header(gen, chunk) - (index + 1) * WL_LINE;
}

void flip(u8 *at, u32 bit)
{
	at[bit / 8] ^= 1 << bit % 8;
}

/* The medium flips a bit of a word, clears the word, or loses it. */
void spoil_word(__le64 *word, u32 way)
{
	if (way < 64)
		flip((u8 *)word, way);
	else if (way == 64)
		*word = 0;
	else
		sim_lose_line(word);
}
