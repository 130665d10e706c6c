// SPDX-License-Identifier: GPL-2.0-only
/*
 * What a power cut (cuts.c) may leave of a write log. Every state must
 *   - open, or fail to open as it did before or does after;
 *   - replay to just what was there at the last acknowledgment or will be at the next; right after an
 *     acknowledgment, to what was acknowledged;
 *   - have nothing for wl_check() to find once wl_open() has repaired it, but what was damaged before.
 */
#include "writelog_crash.h"

#include <stdlib.h>

#define MAX_CHUNKS	16	/* of any log that is checked */

static struct {
	const struct log_scenario *scenario;
	struct log_view seen[CUTS_MAX_ACKS + 1];
} run;

static void report(void *arg, const struct wl_damage *damage)
{
	*(const char **)arg = damage->why;
}

static u64 check(const struct wl *wl, const char **why)
{
	struct wl_stream streams[MAX_CHUNKS];

	if (wl->nr_chunks > MAX_CHUNKS)
		abort();
	return wl_check(wl, streams, report, why);
}

u64 log_check(const struct wl *wl)
{
	const char *why;

	return check(wl, &why);
}

/* A format that a cut interrupts leaves the old log, none, or the new one; never a mixture. */
static const char *judge_format(const struct log_view *before, const struct log_view *after,
				const struct log_view *now)
{
	if (now->err)
		return now->err == WL_E_CORRUPT || now->err == before->err ?
			NULL : "opening fails in an unexpected way";
	if (!before->err && !memcmp(now->uuid, before->uuid, WL_UUID_SIZE))
		return log_view_between(before, before, now, false);
	return log_view_between(after, after, now, false);
}

static const char *judge(void *image, u32 at, bool acknowledged)
{
	const struct log_view *before = &run.seen[at];
	const struct log_view *after = acknowledged ? before : before + 1;
	static struct log_view now;
	const char *why = NULL;
	struct wl wl;
	enum wl_error err = wl_open(&wl, image, LOG_SIZE, WL_OPEN_READ_ONLY);

	if (!err && acknowledged && check(&wl, &why) && why != before->damage)
		return why;
	if (wl_open(&wl, image, LOG_SIZE, 0) != err)
		return "opening read-only gives another result";
	if (!err && check(&wl, &why) && why != before->damage)
		return why;
	if (err)
		now = (struct log_view){ .err = err };
	else
		log_view_read(&now, &wl);
	if (run.scenario->raw && !acknowledged)
		return judge_format(before, after, &now);
	if (now.err)
		return now.err == before->err ? NULL : wl_strerror(now.err);
	return log_view_between(before, after, &now, run.scenario->piecewise);
}

static void note(u32 nr)
{
	log_view_open(&run.seen[nr], sim_live());
}

static void run_op(void *subject)
{
	run.scenario->op(subject);
}

void log_format(u32 id, bool data_crc)
{
	struct wl_format_options opt = {
		.nr_gens = LOG_GENS, .chunk_size = LOG_CHUNK_SIZE, .align = WL_DATA_ALIGN,
		.nr_chunks = LOG_CHUNKS, .data_crc = data_crc,
	};

	memset(opt.uuid, (int)id, WL_UUID_SIZE);
	if (wl_format(sim_live(), LOG_SIZE, &opt))
		abort();
}

/* Opens a generation under the next identifier; both slots leave their chunks. */
void log_open_gen(struct log *log, u32 gen)
{
	if (wl_gen_open(&log->wl, gen, ++log->id))
		abort();
	log->seq = 0;
	for (u32 slot = 0; slot < 2; slot++)
		wl_slot_take(&log->slots[slot], gen, log->id, slot);
}

/* Makes an entry whose data tell where it belongs; not committed yet. */
void log_entry(struct log *log, u32 slot, enum wl_op op, u64 sector, u32 nr_sectors)
{
	struct wl_slot *s = &log->slots[slot];
	u64 words[64];

	wl_begin(&log->wl, s, op, sector, nr_sectors, log->seq++);
	for (u32 i = 0; op == WL_OP_WRITE && i < nr_sectors; i++) {
		for (u32 word = 0; word < 64; word++)
			words[word] = s->entry.order << 20 | (i * 64 + word + 1);
		wl_write(&log->wl, s, words, 100);
		wl_write(&log->wl, s, (u8 *)words + 100, 412);
	}
	wl_end(&log->wl, s, &log->last);
}

void log_write(struct log *log, u32 slot, u64 sector, u32 nr_sectors)
{
	log_entry(log, slot, WL_OP_WRITE, sector, nr_sectors);
	wl_commit(&log->wl, &log->slots[slot]);
}

/* Brings the simulated machine to where the scenario's operation begins. */
void log_setup(const struct log_scenario *scenario, struct log *log, enum sim_domain domain)
{
	static const u8 blank[LOG_SIZE];

	*log = (struct log){ };
	sim_start(blank, LOG_SIZE, domain);
	if (!scenario->raw) {
		log_format(LOG_GENS, false);
		if (wl_open(&log->wl, sim_live(), LOG_SIZE,
			    domain == SIM_MEM_CTRL ? WL_OPEN_FLUSH_CACHES : 0))
			abort();
	}
	if (scenario->setup)
		scenario->setup(log);
	sim_settle();
}

/* Cuts the power at every point of the operation. Returns what is wrong, or NULL. */
const char *log_explore(const struct log_scenario *scenario, struct log *log,
			enum sim_domain domain, u32 samples, enum sim_sabotage sabotage, u32 nth)
{
	const struct cuts cuts = {
		.size = LOG_SIZE, .subject = log, .subject_size = sizeof(*log),
		.op = run_op, .note = note, .judge = judge,
	};

	run.scenario = scenario;
	return cuts_explore(&cuts, domain, samples, sabotage, nth);
}
