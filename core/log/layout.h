/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The layout of a log in memory, and the encoding of its two kinds of words. For the files of core/log/
 * only.
 */
#ifndef FOREBAY_CORE_LOG_LAYOUT_H
#define FOREBAY_CORE_LOG_LAYOUT_H

#include "log.h"

/* False: the word can't be read. */
static inline bool wl_load(const __le64 *word, u64 *value)
{
	__le64 raw = 0;
	bool readable = pm_read(&raw, word, sizeof(raw));

	*value = le64_to_cpu(raw);
	return readable;
}

/* All changes of words are made by this function. */
static inline void wl_store(const struct wl *wl, __le64 *word, u64 value)
{
	pm_store64(word, cpu_to_le64(value));
	if (wl->flush_caches && !BREAK_FLUSH)
		pm_flush(word, sizeof(*word));
}

static inline u64 wl_round_up(u64 value, u64 align)
{
	return (value + align - 1) & ~(align - 1);
}

static inline u64 wl_round_down(u64 value, u64 align)
{
	return value & ~(align - 1);
}

/* A chunk's number in the whole log. */
static inline u32 wl_chunk_number(const struct wl *wl, u32 gen, u32 chunk)
{
	return gen * wl->nr_chunks + chunk;
}

static inline u8 *wl_chunk_at(const struct wl *wl, u32 gen, u32 chunk)
{
	return wl->data + (u64)wl_chunk_number(wl, gen, chunk) * wl->chunk_size;
}

/* Start of the header of the entry at index @n - 1; for 0, of the chunk's own header. */
static inline u32 wl_headers_start(const struct wl *wl, u32 n)
{
	return wl->chunk_size - (n + 1) * WL_LINE;
}

static inline struct wl_chunk_onmedia *wl_chunk_header(const struct wl *wl, u32 gen, u32 chunk)
{
	return (void *)(wl_chunk_at(wl, gen, chunk) + wl_headers_start(wl, 0));
}

static inline struct wl_entry_onmedia *wl_entry_header(const struct wl *wl, u32 gen, u32 chunk,
						       u32 index)
{
	return (void *)(wl_chunk_at(wl, gen, chunk) + wl_headers_start(wl, index + 1));
}

/* Checksum of three numbers, which stand for a kind, and a position or a state. */
static inline u32 wl_sum(const struct wl *wl, u64 a, u64 b, u64 c)
{
	__le64 numbers[] = { cpu_to_le64(a), cpu_to_le64(b), cpu_to_le64(c) };

	return ~crc32c_few(wl->seed, numbers, sizeof(numbers));
}

static inline u64 wl_word_id(u64 word)
{
	return word >> WL_ID_SHIFT;
}

/* The word of a chunk that holds @fill entries of generation @id. */
static inline u64 wl_chunk_word(const struct wl *wl, u32 number, u64 id, u32 fill)
{
	u64 facts = id << WL_ID_SHIFT | fill;
	u64 check = wl_sum(wl, 'c', number, facts) >> (32 - WL_CHUNK_CHECK_BITS);

	return facts | check << WL_CHUNK_CHECK_SHIFT;
}

/* A word of 0 is that of a chunk never used. Other words are valid only if their number of headers fits. */
static inline bool wl_chunk_word_whole(const struct wl *wl, u32 number, u64 word)
{
	u32 fill = word & WL_FILL_MASK;

	return !word || (wl_word_id(word) && fill && fill < wl->chunk_size / WL_LINE &&
			 word == wl_chunk_word(wl, number, wl_word_id(word), fill));
}

/* False: the chunk's word is damaged. */
static inline bool wl_chunk_load(const struct wl *wl, u32 gen, u32 chunk, u64 *word)
{
	return wl_load(&wl_chunk_header(wl, gen, chunk)->word, word) &&
	       wl_chunk_word_whole(wl, wl_chunk_number(wl, gen, chunk), *word);
}

/* The word of a generation. @entries counts only if sealed. */
static inline u64 wl_gen_word(const struct wl *wl, u32 gen, u64 id, enum wl_gen_state state,
			      u64 entries)
{
	u64 facts = id << WL_ID_SHIFT | state;
	u64 covered = (u64)gen << 32 | (state == WL_GEN_SEALED ? entries : 0);
	u64 check = wl_sum(wl, 'g', covered, facts) >> (32 - WL_GEN_CHECK_BITS);

	return facts | check << WL_GEN_CHECK_SHIFT;
}

/* The checksum of an entry's header in chunk @number. */
static inline u32 wl_entry_crc(const struct wl *wl, u32 number, const struct wl_entry_onmedia *rec)
{
	struct wl_entry_onmedia covered = *rec;

	covered.crc = cpu_to_le32(number);
	return ~crc32c_few(wl->seed, &covered, sizeof(covered));
}

u64 wl_gen_newest(const struct wl *wl, u32 gen);

#endif
