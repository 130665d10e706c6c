// SPDX-License-Identifier: GPL-2.0-only
/*
 * Making records of a name log durable: the commit of a sync call, and the heartbeat.
 *
 * Invariants:
 *   - the commit word passes only records whose lines are durable;
 *   - a heartbeat names only places before which all lines are durable, and a commit word that is.
 *
 * The caller's commit lock is around the functions.
 */
#include "layout.h"

/* Writes the lines of places back; durable after a fence. For core/names/. */
void nl_flush_lines(const struct nl *nl, u64 from, u64 to)
{
	u64 at = from % nl->nr_lines, lines = to - from;
	u64 before = min_t(u64, lines, nl->nr_lines - at);	/* the end of the ring */

	nl_flush(nl, nl->ring + at * NL_LINE, before * NL_LINE);
	if (lines > before)
		nl_flush(nl, nl->ring, (lines - before) * NL_LINE);
}

/*
 * Makes the records before @end durable, if no commit or heartbeat has. Where CPU caches are in the
 * persistence domain, nl_write() has.
 */
static void flush_records(struct nl *nl, u64 end)
{
	u64 from = max_t(u64, nl->flushed, nl->trim);

	if (!nl->flush_caches || from >= end)
		return;
	nl_flush_lines(nl, from, end);
	if (!BREAK_DATA_FENCE && !BREAK_NAMES_FENCE)
		pm_fence();
	nl->flushed = end;
}

/**
 * nl_commit - make all records before a place part of the log, durably
 * @nl: log
 * @end: the end of a record, from nl_take()
 *
 * After a power cut during this function, a prefix of the records is part of the log: those that were
 * before, or all of them. What records need besides (N2) is durable before the call.
 *
 * Context: Commit lock. Doesn't sleep.
 * Return: 0; -EAGAIN: a record before @end is not done yet, and will be soon; -EBUSY: an opaque record
 * is not settled, and the sync goes below.
 */
int nl_commit(struct nl *nl, u64 end)
{
	if (end <= max_t(u64, nl->commit, nl->trim))
		return 0;
	if (end > READ_ONCE(nl->limit))
		return -EBUSY;
	/* Pairs with nl_done(): the records' lines are flushed after they were stored. */
	if (end > smp_load_acquire(&nl->whole))
		return -EAGAIN;
	flush_records(nl, end);
	nl_store(nl, NL_WORD_COMMIT, &nl->words->commit, end);
	BREAK_WAIT(BREAK_NAMES_FENCE, 2);
	pm_fence();
	nl->commit = end;
	return 0;
}

static u32 beat_crc(const struct nl *nl, const struct nl_beat_onmedia *rec, u32 number)
{
	struct nl_beat_onmedia covered = *rec;

	covered.crc = cpu_to_le32(number);
	return ~crc32c(nl->seed, &covered, sizeof(covered));
}

/**
 * nl_beat_read - read the newest heartbeat
 * @nl: log
 * @beat: set; @beat->seq 0: there is none
 *
 * Context: Commit lock, or nothing else uses the log.
 */
void nl_beat_read(const struct nl *nl, struct nl_beat *beat)
{
	u32 number;

	*beat = (struct nl_beat){ };
	for (number = 0; number < NL_NR_BEATS; number++) {
		struct nl_beat_onmedia rec;

		if (!pm_read(&rec, &nl->words->beat[number], sizeof(rec)) ||
		    le32_to_cpu(rec.crc) != beat_crc(nl, &rec, number) ||
		    le64_to_cpu(rec.seq) <= beat->seq)
			continue;
		*beat = (struct nl_beat){
			.seq = le64_to_cpu(rec.seq),
			.time = le64_to_cpu(rec.time),
			.until = le64_to_cpu(rec.until),
			.back = le64_to_cpu(rec.back),
			.durable = le64_to_cpu(rec.durable),
			.commit = le64_to_cpu(rec.commit),
		};
	}
}

/**
 * nl_beat - note the time, durably, with all records that are whole
 * @nl: log
 * @time: now, in nanoseconds since 1970; ctimes are taken from the same clock
 * @until: the latest ctime of any change before the next heartbeat has returned
 * @back: the clock was set back since the log's first record, and no change since then has an earlier ctime;
 *	0: it wasn't
 *
 * The first one of a life of the log comes before its first change.
 *
 * The records are durable on return, and not committed. A power cut during this function leaves the
 * heartbeat before it, or this one.
 *
 * Context: Commit lock. Doesn't sleep.
 */
void nl_beat(struct nl *nl, s64 time, s64 until, s64 back)
{
	/* Pairs with nl_done(), as in nl_commit(). */
	u64 durable = max_t(u64, smp_load_acquire(&nl->whole), nl->trim);
	struct nl_beat_onmedia rec = {
		.seq = cpu_to_le64(nl->beat + 1),
		.time = cpu_to_le64(time),
		.until = cpu_to_le64(until),
		.back = cpu_to_le64(back),
		.durable = cpu_to_le64(durable),
		.commit = cpu_to_le64(nl->commit),
	};
	u32 number = (nl->beat + 1) % NL_NR_BEATS;

	rec.crc = cpu_to_le32(beat_crc(nl, &rec, number));
	flush_records(nl, durable);
	pm_copy(&nl->words->beat[number], &rec, sizeof(rec));
	pm_fence();
	nl->beat++;
}
