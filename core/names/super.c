// SPDX-License-Identifier: GPL-2.0-only
/*
 * The header of a name log: formatting a region, opening the log in it.
 *
 * Invariants, besides those of ../pm/supers.h:
 *   - no copy is valid while the words are not: nl_format() breaks both copies, writes the words and
 *     then the new copies, a fence after each of the three;
 *   - no geometry is used before it has been found to lie inside the region.
 *
 * The ring is not erased: no record of an earlier log is valid under the new UUID.
 */
#include "../pm/supers.h"
#include "layout.h"

static_assert(sizeof(struct nl_header_onmedia) == 80);
static_assert(offsetof(struct nl_header_onmedia, uuid) == sizeof(struct super_head_onmedia));
static_assert(NL_NR_HEADERS * NL_PAGE_SIZE == SUPERS_SIZE);

static const struct super_kind kind = {
	.magic = NL_MAGIC,
	.other_magic = PS_MAGIC,
	.size = sizeof(struct nl_header_onmedia),
	.crc_size = sizeof(struct nl_header_onmedia),
};

/**
 * nl_header_read - read and verify one copy of the header
 * @base: start of the region
 * @copy: 0 or 1
 * @h: the copy, valid or not
 *
 * Context: Any.
 * Return: true if the copy is valid; its version and geometry may still be unacceptable.
 */
bool nl_header_read(void *base, u32 copy, struct nl_header_onmedia *h)
{
	return super_read(&kind, base, copy, h);
}

/* Bytes from the line before the bits of the decisions to the ring. */
static u64 decisions_size(u64 nr_lines)
{
	return nl_round_up(NL_LINE + nl_bits_bytes(nr_lines), NL_PAGE_SIZE);
}

static bool geometry_valid(const struct nl_header_onmedia *h, u64 size)
{
	u64 nr_lines = le64_to_cpu(h->nr_lines), first = le64_to_cpu(h->first);
	u64 decisions = le64_to_cpu(h->decisions), ring = le64_to_cpu(h->ring);
	u64 end = le64_to_cpu(h->size);

	return end <= size && nr_lines >= NL_MIN_LINES && nr_lines <= NL_MAX_RING_LINES &&
	       decisions >= SUPERS_SIZE + NL_PAGE_SIZE && decisions <= ring && ring <= end &&
	       decisions % NL_PAGE_SIZE == 0 && ring % NL_PAGE_SIZE == 0 &&
	       decisions_size(nr_lines) <= ring - decisions && nr_lines * NL_LINE <= end - ring &&
	       first && first <= NL_MAX_PLACE / 2;
}

/* Chooses the layout of a region of @size bytes. */
static void geometry_choose(struct nl_header_onmedia *h, u64 size, u64 first)
{
	u64 decisions = SUPERS_SIZE + NL_PAGE_SIZE, nr_lines = (size - decisions) / NL_LINE;

	nr_lines = min_t(u64, nr_lines, NL_MAX_RING_LINES);
	while (decisions + decisions_size(nr_lines) + nr_lines * NL_LINE > size)
		nr_lines -= NL_PAGE_SIZE / NL_LINE;
	h->size = cpu_to_le64(size);
	h->decisions = cpu_to_le64(decisions);
	h->ring = cpu_to_le64(decisions + decisions_size(nr_lines));
	h->nr_lines = cpu_to_le64(nr_lines);
	h->first = cpu_to_le64(first ?: 1);
}

/* Sets the fields of an open log from its header. */
static void fill_in(struct nl *nl, void *base, const struct nl_header_onmedia *h)
{
	u8 *decisions = (u8 *)base + le64_to_cpu(h->decisions);

	*nl = (struct nl){
		.base = base,
		.nr_lines = le64_to_cpu(h->nr_lines),
		.seed = crc32c(~0u, h->uuid, NL_UUID_SIZE),
		.words = (void *)((u8 *)base + SUPERS_SIZE),
		.decisions = (void *)decisions,
		.bits = decisions + NL_LINE,
		.ring = (u8 *)base + le64_to_cpu(h->ring),
		.header = *h,
	};
}

/* Durable on return: an empty log without decisions and heartbeats. */
static void write_words(const struct nl *nl)
{
	u64 first = le64_to_cpu(nl->header.first);

	pm_zero(nl->words, NL_PAGE_SIZE);
	nl_store(nl, NL_WORD_TRIM, &nl->words->trim, first);
	nl_store(nl, NL_WORD_COMMIT, &nl->words->commit, first);
	pm_fence();
}

/**
 * nl_format - make an empty name log; overwrites what is in the region
 * @base: start of the region, aligned to a page
 * @size: bytes
 * @opt: identity, and the first place
 *
 * Durable on return. Takes the same time for any size.
 *
 * Context: Any.
 * Return: NL_OK; NL_E_TOO_SMALL; NL_E_GEOMETRY: the first place is too large. After an error nothing has
 * been written.
 */
enum nl_error nl_format(void *base, u64 size, const struct nl_format_options *opt)
{
	struct nl_header_onmedia h = {
		.magic = cpu_to_le64(NL_MAGIC),
		.version = cpu_to_le32(NL_VERSION),
	};
	struct nl nl;

	if (size < NL_MIN_SIZE)
		return NL_E_TOO_SMALL;
	geometry_choose(&h, size, opt->first);
	if (!geometry_valid(&h, size))
		return NL_E_GEOMETRY;
	memcpy(h.uuid, opt->uuid, NL_UUID_SIZE);
	fill_in(&nl, base, &h);
	nl.flush_caches = true;		/* it is not known yet, and costs nothing here */

	supers_break(&kind, base);
	write_words(&nl);
	supers_write_first(&kind, base, &h);
	return NL_OK;
}

/* Finds the copy that counts. *@best is set only if NL_OK is returned. */
static enum nl_error headers_choose(const struct nl_header_onmedia *h, const enum copy_state *state,
				    u32 *best)
{
	u32 copy;

	for (copy = 0; copy < NL_NR_HEADERS; copy++)
		if (state[copy] == COPY_FOREIGN || state[copy] == COPY_OTHER_KIND)
			return NL_E_FOREIGN;
	if (state[0] == COPY_BLANK && state[1] == COPY_BLANK)
		return NL_E_NOT_FORMATTED;
	if (state[0] != COPY_VALID && state[1] != COPY_VALID)
		return NL_E_CORRUPT;
	*best = supers_best(state, (const void *)&h[0], (const void *)&h[1]);
	return le32_to_cpu(h[*best].version) == NL_VERSION ? NL_OK : NL_E_VERSION;
}

/* Reads the words and the newest heartbeat; notes what is damaged. There is no space to reserve yet. */
static void read_words(struct nl *nl)
{
	struct nl_beat beat;

	if (!nl_load(nl, NL_WORD_TRIM, &nl->words->trim, &nl->trim) ||
	    nl->trim < le64_to_cpu(nl->header.first) ||
	    nl->trim > NL_MAX_PLACE - 4 * NL_MAX_RING_LINES)
		nl->bad |= NL_BAD_TRIM_WORD;
	if (!nl_load(nl, NL_WORD_COMMIT, &nl->words->commit, &nl->commit) ||
	    (!nl->bad && nl->commit > nl->trim + nl->nr_lines))
		nl->bad |= NL_BAD_COMMIT_WORD;
	nl_beat_read(nl, &beat);
	nl->beat = beat.seq;
	if (!nl->bad && max_t(u64, nl->commit, nl->trim) < beat.commit)
		nl->bad |= NL_BAD_COMMIT;
	nl->next = nl->trim + nl->nr_lines;
	nl->limit = NL_NO_LIMIT;
	nl->bad |= nl_decisions_read(nl);
}

/**
 * nl_open - open the name log in a region
 * @nl: set if NL_OK is returned
 * @base: start of the region, aligned to a page
 * @size: bytes; may be more than the log was made for
 * @flags: NL_OPEN_*
 *
 * Rewrites a damaged header copy, unless NL_OPEN_READ_ONLY. Damaged words and decisions are noted in
 * @nl->bad; cursors and nl_check() report them.
 *
 * Context: Any. Reads three pages and the decisions, if there are any, not the records.
 * Return: NL_OK, or the reason why there is no log to open.
 */
enum nl_error nl_open(struct nl *nl, void *base, u64 size, u32 flags)
{
	struct nl_header_onmedia h[NL_NR_HEADERS];
	enum copy_state state[NL_NR_HEADERS];
	enum nl_error err;
	u32 best, copy;

	if (size < NL_MIN_SIZE)
		return NL_E_TOO_SMALL;
	for (copy = 0; copy < NL_NR_HEADERS; copy++)
		state[copy] = super_copy_state(&kind, base, copy, nl_header_read(base, copy, &h[copy]));
	err = headers_choose(h, state, &best);
	if (err)
		return err;
	if (!geometry_valid(&h[best], size))
		return NL_E_GEOMETRY;
	fill_in(nl, base, &h[best]);
	nl->flush_caches = flags & NL_OPEN_FLUSH_CACHES;
	if (!(flags & NL_OPEN_READ_ONLY))
		nl->repaired = supers_repair(&kind, base, state, &nl->header);
	read_words(nl);
	return NL_OK;
}

/**
 * nl_strerror - describe a result of nl_open() or nl_format() to an administrator
 * @err: the result
 *
 * Return: a sentence without the full stop; never NULL.
 */
const char *nl_strerror(enum nl_error err)
{
	switch (err) {
	case NL_OK:
		return "no error";
	case NL_E_TOO_SMALL:
		return "the region is too small: a name log needs at least 64 KiB";
	case NL_E_NOT_FORMATTED:
		return "the region holds no name log";
	case NL_E_FOREIGN:
		return "the region holds something that is not a name log";
	case NL_E_CORRUPT:
		return "both headers of the name log are damaged, or formatting was cut short";
	case NL_E_VERSION:
		return "the name log was made by a newer version of Forebay";
	case NL_E_GEOMETRY:
		return "the name log's layout does not fit the region";
	}
	return "unknown error";
}
