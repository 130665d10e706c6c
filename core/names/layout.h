/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The layout of a name log in memory, the encoding of its words, and which fields a kind of record has.
 * For the files of core/names/ only.
 */
#ifndef FOREBAY_CORE_NAMES_LAYOUT_H
#define FOREBAY_CORE_NAMES_LAYOUT_H

#include "names.h"

#define NL_CHECK_BITS		(64 - NL_PLACE_BITS)
#define NL_NO_LIMIT		(~0ULL)

/* Which word of the log: part of its check. */
enum nl_word { NL_WORD_TRIM = 't', NL_WORD_COMMIT = 'c', NL_WORD_DECIDED = 'd' };

static inline u64 nl_round_up(u64 value, u64 align)
{
	return (value + align - 1) & ~(align - 1);
}

/* The line of a place. */
static inline u8 *nl_line(const struct nl *nl, u64 place)
{
	return nl->ring + place % nl->nr_lines * NL_LINE;
}

/* A word that stands for a place. */
static inline u64 nl_word(const struct nl *nl, enum nl_word which, u64 place)
{
	__le64 covered[] = { cpu_to_le64(which), cpu_to_le64(place) };
	u64 check = ~crc32c_few(nl->seed, covered, sizeof(covered)) >> (32 - NL_CHECK_BITS);

	return place | check << NL_PLACE_BITS;
}

/* False: the word is damaged, or can't be read. *@place is its place then, if it has any. */
static inline bool nl_load(const struct nl *nl, enum nl_word which, const struct nl_word_onmedia *word,
			   u64 *place)
{
	__le64 raw = 0;
	bool readable = pm_read(&raw, &word->word, sizeof(raw));

	*place = le64_to_cpu(raw) & NL_MAX_PLACE;
	return readable && *place && le64_to_cpu(raw) == nl_word(nl, which, *place);
}

/* Writes back bytes that were stored; durable after a fence. */
static inline void nl_flush(const struct nl *nl, void *addr, size_t len)
{
	if (nl->flush_caches && !BREAK_FLUSH)
		pm_flush(addr, len);
}

/*
 * All changes of words are made by this function. If the medium has lost the word's line, the whole line is
 * written: a store of the word alone would not heal it. Durable after a fence.
 */
static inline void nl_store_raw(const struct nl *nl, struct nl_word_onmedia *word, u64 value)
{
	struct nl_word_onmedia rec;

	if (pm_read(&rec, word, sizeof(rec))) {
		pm_store64(&word->word, cpu_to_le64(value));
		nl_flush(nl, &word->word, sizeof(word->word));
	} else {
		rec = (struct nl_word_onmedia){ .word = cpu_to_le64(value) };
		pm_copy(word, &rec, sizeof(rec));
	}
}

/* Stores a word that stands for a place. Durable after a fence. */
static inline void nl_store(const struct nl *nl, enum nl_word which, struct nl_word_onmedia *word,
			    u64 place)
{
	nl_store_raw(nl, word, nl_word(nl, which, place));
}

/* Bytes of the bits of the decisions: whole lines. */
static inline u64 nl_bits_bytes(u64 nr_lines)
{
	return nl_round_up((nr_lines + 7) / 8, NL_LINE);
}

/* Which fields a kind of record must have, and which it may have. */
struct nl_kind_fields {
	u32	must;
	u32	may;
};

#define NL_HAS(field)		(1u << NL_F_##field)
#define NL_HAS_ENTRY		(NL_HAS(DIR) | NL_HAS(OBJECT) | NL_HAS(NAME))
#define NL_HAS_XATTR		(NL_HAS(OBJECT) | NL_HAS(XATTR) | NL_HAS(ATTR))

static inline bool nl_fields_allowed(u32 kind, u32 has)
{
	static const struct nl_kind_fields nl_kinds[] = {
		[NL_CREATE] = { NL_HAS_ENTRY | NL_HAS(ATTR), NL_HAS(SELF) | NL_HAS(TARGET) },
		[NL_TMPFILE] = { NL_HAS(OBJECT) | NL_HAS(ATTR), 0 },
		[NL_LINK] = { NL_HAS_ENTRY, NL_HAS(NEEDS) },
		[NL_UNLINK] = { NL_HAS_ENTRY, 0 },
		[NL_RMDIR] = { NL_HAS_ENTRY, NL_HAS(SELF) },
		[NL_RENAME] = { NL_HAS_ENTRY | NL_HAS(NAME2),
				NL_HAS(DIR2) | NL_HAS(OBJECT2) | NL_HAS(SELF) | NL_HAS(SELF2) |
				NL_HAS(NEEDS) },
		[NL_SETATTR] = { NL_HAS(OBJECT) | NL_HAS(ATTR), NL_HAS(SELF) | NL_HAS(NEEDS) },
		[NL_XATTR_SET] = { NL_HAS_XATTR | NL_HAS(VALUE), NL_HAS(SELF) },
		[NL_XATTR_REMOVE] = { NL_HAS_XATTR, NL_HAS(SELF) },
		[NL_IFLAGS] = { NL_HAS(OBJECT) | NL_HAS(ATTR), NL_HAS(SELF) },
		[NL_OPAQUE] = { 0, NL_HAS(DIR) | NL_HAS(DIR2) | NL_HAS(OBJECT) | NL_HAS(OBJECT2) |
				NL_HAS(SELF) | NL_HAS(SELF2) },
	};

	if (!kind || kind > NL_OPAQUE)
		return false;
	return !(nl_kinds[kind].must & ~has) &&
	       !(has & ~(nl_kinds[kind].must | nl_kinds[kind].may));
}

/* Each object that a change names has a handle: records of one object are joined by it. */
static inline bool nl_handles_given(const struct nl_change *change)
{
	u32 has = change->has;

	return (!(has & NL_HAS(DIR)) || change->dir.id.len) &&
	       (!(has & NL_HAS(DIR2)) || change->dir2.id.len) &&
	       (!(has & NL_HAS(OBJECT)) || change->object.len) &&
	       (!(has & NL_HAS(OBJECT2)) || change->object2.len) &&
	       (!(has & NL_HAS(NEEDS)) || change->needs.len);
}

/* The flags that a record with these fields may have. */
static inline u32 nl_flags_allowed(u32 kind, u32 has)
{
	u32 counts = has & (NL_HAS(DIR) | NL_HAS(DIR2) | NL_HAS(SELF) | NL_HAS(SELF2));

	return NL_SAME_CTIME(counts) | (counts ? NL_STEPPED : 0) |
	       (kind == NL_RENAME ? NL_NOREPLACE | NL_EXCHANGE : 0);
}

/* A counter of one of the fields that says something was raised by the step. */
static inline bool nl_step_possible(const struct nl_change *change, u32 field, const struct nl_count *count)
{
	return !(change->flags & NL_STEPPED) || !(change->has & field) || !count->before ||
	       count->before >= NL_STEP;
}

static inline bool nl_steps_possible(const struct nl_change *change)
{
	return nl_step_possible(change, NL_HAS(DIR), &change->dir.count) &&
	       nl_step_possible(change, NL_HAS(DIR2), &change->dir2.count) &&
	       nl_step_possible(change, NL_HAS(SELF), &change->self) &&
	       nl_step_possible(change, NL_HAS(SELF2), &change->self2);
}

/* The rules of names.h for a change, besides the lengths of its parts. */
static inline bool nl_change_allowed(const struct nl_change *change)
{
	bool exchange = change->flags & NL_EXCHANGE;

	if (!nl_fields_allowed(change->kind, change->has) || !nl_handles_given(change) ||
	    change->flags & ~nl_flags_allowed(change->kind, change->has) || !nl_steps_possible(change))
		return false;
	if (change->has & NL_HAS(SELF2) && !(change->has & NL_HAS(OBJECT2)))
		return false;
	if (change->has & NL_HAS(SELF) && !(change->has & NL_HAS(OBJECT)))
		return false;
	if (exchange && (change->flags & NL_NOREPLACE || !(change->has & NL_HAS(OBJECT2))))
		return false;
	return !(change->has & NL_HAS(ATTR)) || !(change->attr.mask & ~NL_ATTR_ALL);
}

void nl_record_write(const struct nl *nl, u64 place, u64 began, u32 lines,
		     const struct nl_change *change);
u32 nl_decisions_read(struct nl *nl);
void nl_flush_lines(const struct nl *nl, u64 from, u64 to);

static_assert(sizeof(struct nl_record_onmedia) == 32);
static_assert(sizeof(struct nl_decisions_onmedia) == NL_LINE);
static_assert(sizeof(struct nl_beat_onmedia) == NL_LINE);
static_assert(sizeof(struct nl_words_onmedia) == 5 * NL_LINE);

#endif
