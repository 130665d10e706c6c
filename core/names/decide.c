// SPDX-License-Identifier: GPL-2.0-only
/*
 * The decisions of recovery: which records storage has. They are made once, from the lower directories'
 * change counters, and kept: replay changes the counters.
 *
 * Invariants:
 *   - decisions count only after all of them are durable;
 *   - decisions that count are never written again. They stop counting when the trim word passes the
 *     places that they cover.
 *
 * judge.c makes the decisions.
 */
#include "layout.h"

/**
 * nl_bits_size - bytes of the bits of decisions
 * @nl: log
 *
 * Context: Any.
 * Return: bytes; for the caller's memory.
 */
u64 nl_bits_size(const struct nl *nl)
{
	return nl_bits_bytes(nl->nr_lines);
}

/**
 * nl_bit_set - decide that storage has a record's change
 * @nl: log
 * @bits: of nl_bits_size() bytes, zero at first
 * @place: the record's
 *
 * Context: Any.
 */
void nl_bit_set(const struct nl *nl, u8 *bits, u64 place)
{
	u64 bit = place % nl->nr_lines;

	bits[bit / 8] |= 1u << bit % 8;
}

/**
 * nl_bit - what was decided of a record, before it is durable
 * @nl: log
 * @bits: as for nl_bit_set()
 * @place: the record's
 *
 * Context: Any.
 * Return: true if storage has the record's change.
 */
bool nl_bit(const struct nl *nl, const u8 *bits, u64 place)
{
	u64 bit = place % nl->nr_lines;

	return bits[bit / 8] >> bit % 8 & 1;
}

static u32 head_crc(const struct nl *nl, const struct nl_decisions_onmedia *head)
{
	struct nl_decisions_onmedia covered = *head;

	covered.crc = 0;
	return ~crc32c(nl->seed, &covered, sizeof(covered));
}

/**
 * nl_decide - make the decisions of a recovery durable
 * @nl: log, opened, not read-only, without decisions
 * @bits: for each record before @end, from nl_bit_set()
 * @end: the place where the cursor has found the log's end
 *
 * The records before @end are made durable, too. After a restart without a power cut, the end of the tail
 * may still be in the CPU's caches. After a power cut during this function, no decision counts, or all do.
 *
 * Context: Nothing else uses the log.
 * Return: 0; -EEXIST: there are decisions; -EUCLEAN: the log is damaged.
 */
int nl_decide(struct nl *nl, const u8 *bits, u64 end)
{
	u64 size = nl_bits_size(nl);
	struct nl_decisions_onmedia head = {
		.from = cpu_to_le64(nl->trim),
		.to = cpu_to_le64(end),
		.bits_crc = cpu_to_le32(~crc32c(nl->seed, bits, size)),
	};

	if (nl->bad)
		return -EUCLEAN;
	if (nl->decided)
		return -EEXIST;
	if (end <= nl->trim)
		return 0;
	head.crc = cpu_to_le32(head_crc(nl, &head));
	nl_flush_lines(nl, nl->trim, end);
	pm_copy(nl->bits, bits, size);
	pm_copy(nl->decisions, &head, sizeof(head));
	if (!BREAK_DECIDE_FENCE)
		pm_fence();
	nl_store(nl, NL_WORD_DECIDED, &nl->words->decided, end);
	BREAK_WAIT(BREAK_DECIDE_FENCE, 300);
	pm_fence();
	nl->decided = end;
	return 0;
}

static bool bits_whole(const struct nl *nl, u32 crc)
{
	u64 left = nl_bits_size(nl);
	const u8 *from = nl->bits;
	u32 sum = nl->seed;
	u8 part[NL_LINE];

	for (; left; left -= sizeof(part), from += sizeof(part)) {
		if (!pm_read(part, from, sizeof(part)))
			return false;
		sum = crc32c(sum, part, sizeof(part));
	}
	return crc == (u32)~sum;
}

/* Sets @nl->decided. Returns what is damaged, as NL_BAD_* bits. For super.c. */
u32 nl_decisions_read(struct nl *nl)
{
	struct nl_decisions_onmedia head;
	__le64 raw = 0;
	u64 to;

	nl->decided = 0;
	if (BREAK_DECISIONS || (pm_read(&raw, &nl->words->decided.word, sizeof(raw)) && !raw))
		return 0;
	if (!nl_load(nl, NL_WORD_DECIDED, &nl->words->decided, &to))
		return NL_BAD_DECIDED_WORD;
	if (to <= nl->trim)
		return 0;
	if (!pm_read(&head, nl->decisions, sizeof(head)) || le32_to_cpu(head.crc) != head_crc(nl, &head) ||
	    le64_to_cpu(head.from) != nl->trim || le64_to_cpu(head.to) != to ||
	    to > nl->trim + nl->nr_lines || !bits_whole(nl, le32_to_cpu(head.bits_crc)))
		return NL_BAD_DECISIONS;
	nl->decided = to;
	return 0;
}

/**
 * nl_on_storage - what was decided of a record
 * @nl: log with decisions
 * @place: the record's
 *
 * Context: Any.
 * Return: 1: storage has the record's change; 0: it has not; -EUCLEAN: the decision can't be read;
 * -ENOENT: there is none for this place.
 */
int nl_on_storage(const struct nl *nl, u64 place)
{
	u64 bit = place % nl->nr_lines;
	u8 byte;

	if (place < nl->trim || place >= nl->decided)
		return -ENOENT;
	if (!pm_read(&byte, nl->bits + bit / 8, 1))
		return -EUCLEAN;
	return byte >> bit % 8 & 1;
}
