// SPDX-License-Identifier: GPL-2.0-only
/*
 * What a power cut (cuts.c) may leave of a page store. Every state must
 *   - open, or fail to open as it did before or does after;
 *   - read as a state between the last acknowledgment and the next (view.c), its name log included;
 *   - have nothing for ps_check() to find once ps_open() has repaired it; right after an acknowledgment even
 *     before that, for then nothing is in flight;
 *   - if the operation is a repair: bring nothing back that it has set aside.
 */
#include "crash.h"
#include "names/names.h"

#include <stdlib.h>

static struct {
	const struct scenario *scenario;
	struct view seen[CUTS_MAX_ACKS + 1];	/* at the start and at each acknowledgment */
	u32 nr_seen;
} run;

void test_report(void *arg, const char *what, u64 number, const char *why)
{
	(void)what;
	(void)number;
	*(const char **)arg = why;
}

static u64 check(const struct ps *ps, const char **why)
{
	static u32 scratch[TEST_MAX_PAGES];

	return ps_check(ps, scratch, test_report, why);
}

u64 test_check(const struct ps *ps)
{
	const char *why;

	return check(ps, &why);
}

/* A format that a cut interrupts leaves the old store, none, or the new one; never a mixture. */
static const char *judge_format(const struct view *before, const struct view *after,
				const struct view *now)
{
	if (now->err)
		return now->err == PS_E_CORRUPT || now->err == before->err ?
			NULL : "opening fails in an unexpected way";
	if (!before->err &&
	    !memcmp(now->super.cache_uuid, before->super.cache_uuid, PS_UUID_SIZE))
		return view_between(before, before, now);
	return view_between(after, after, now);
}

/* After a complete or interrupted repair, a new file in a free record must get no old pages. */
static const char *judge_next_lives(struct ps *ps)
{
	struct ps_handle handle = test_handle(77);

	for (u32 file = 0; file < ps->nr_files; file++) {
		struct ps_file_info info;

		if (ps_file_read(ps, file, &info) || info.state != PS_FILE_FREE)
			continue;
		ps_file_create(ps, file, &handle, 0);
		for (u32 page = 0; page < ps->nr_pages; page++) {
			struct ps_page_info found;

			if (!ps_page_read(ps, page, &found) && found.state != PS_PAGE_FREE &&
			    found.file == file)
				return "a page that was set aside comes back with the next file";
		}
		ps_file_free(ps, file);
	}
	return NULL;
}

static const char *judge(void *image, u32 at, bool acknowledged)
{
	const struct view *before = &run.seen[at];
	const struct view *after = acknowledged ? before : before + 1;
	bool damaged = at < run.scenario->damaged;
	const char *why = NULL;
	struct view now;
	struct ps ps;
	enum ps_error err = ps_open(&ps, image, TEST_SIZE, PS_OPEN_READ_ONLY);

	if (!err && acknowledged && !damaged && check(&ps, &why))
		return why;
	if (ps_open(&ps, image, TEST_SIZE, 0) != err)
		return "opening read-only gives another result";
	if (!err && !damaged && check(&ps, &why))
		return why;
	if (err)
		now = (struct view){ .err = err };
	else
		view_read(&now, &ps);
	if (run.scenario->raw && !acknowledged)
		return judge_format(before, after, &now);
	if (now.err)
		return now.err == before->err ? NULL : ps_strerror(now.err);
	why = view_between(before, after, &now);
	return why || !run.scenario->damaged ? why : judge_next_lives(&ps);
}

static void note(u32 nr)
{
	view_open(&run.seen[nr], sim_live());
	view_keep(&run.seen[nr]);
	run.nr_seen = nr + 1;
}

static void run_op(void *subject)
{
	run.scenario->op(subject);
}

u32 crash_open_flags(enum sim_domain domain)
{
	return domain == SIM_MEM_CTRL ? PS_OPEN_FLUSH_CACHES : 0;
}

void test_format(u32 nr_files)
{
	test_format_names(nr_files, 0);
}

/* The log's UUID is the cache's. */
bool test_make_names(void *region, u64 size, const void *uuid)
{
	struct nl_format_options opt = { 0 };

	memcpy(opt.uuid, uuid, NL_UUID_SIZE);
	return !nl_format(region, size, &opt);
}

/* With a name log, if @names_size isn't 0. */
void test_format_names(u32 nr_files, u64 names_size)
{
	struct ps_format_options opt = {
		.nr_files = nr_files, .names_size = names_size, .make_names = test_make_names,
	};

	memset(opt.cache_uuid, (int)nr_files, PS_UUID_SIZE);
	opt.names_arg = opt.cache_uuid;
	if (ps_format(sim_live(), TEST_SIZE, &opt))
		abort();
}

/* Distinct handles of distinct lengths. */
struct ps_handle test_handle(u32 id)
{
	struct ps_handle handle = { .type = 1, .len = 8 + id % (PS_HANDLE_MAX - 7) };

	memset(handle.bytes, (int)id, handle.len);
	return handle;
}

/* Data in which no 8-byte word is zero or occurs twice. */
void test_fill(u8 *data, u32 seed)
{
	for (u32 i = 0; i < PS_PAGE_SIZE / 8; i++) {
		u64 word = (u64)(seed + 1) << 32 | (i + 1);

		memcpy(data + i * 8, &word, 8);
	}
}

/* Brings the simulated machine to where the scenario's operation begins. */
struct ps crash_setup(const struct scenario *scenario, enum sim_domain domain)
{
	static const u8 blank[TEST_SIZE];
	struct ps ps = { 0 };

	sim_start(blank, TEST_SIZE, domain);
	if (!scenario->raw) {
		test_format(TEST_FILES);
		if (ps_open(&ps, sim_live(), TEST_SIZE, crash_open_flags(domain)))
			abort();
	}
	if (scenario->setup)
		scenario->setup(&ps);
	sim_settle();
	return ps;
}

/* Cuts the power at every point of the operation. Returns what is wrong, or NULL. */
const char *crash_explore(const struct scenario *scenario, struct ps *ps, enum sim_domain domain,
			  u32 samples, enum sim_sabotage sabotage, u32 nth)
{
	const struct cuts cuts = {
		.size = TEST_SIZE, .subject = ps, .subject_size = sizeof(*ps),
		.op = run_op, .note = note, .judge = judge,
	};
	const char *wrong;

	run.scenario = scenario;
	run.nr_seen = 0;
	wrong = cuts_explore(&cuts, domain, samples, sabotage, nth);
	for (u32 i = 0; i < run.nr_seen; i++)
		view_drop(&run.seen[i]);
	return wrong;
}
