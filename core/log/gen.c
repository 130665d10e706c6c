// SPDX-License-Identifier: GPL-2.0-only
/*
 * The generations of a write log: how each is opened, sealed and freed.
 *
 * Invariants (docs/writelog-format.md argues them):
 *   - an identifier is given once, and a larger one each time;
 *   - a generation is durably open under its new identifier before anything is
 *     written into its chunks; so its last life can't be replayed any more when
 *     it is overwritten;
 *   - of the generations that aren't free, none is older than a free one:
 *     wl_gen_free() is durable before the caller frees the next.
 *
 * The caller has one lock around these functions. append.c fills a generation,
 * replay.c reads it.
 */
#include "layout.h"

static_assert(sizeof(struct wl_gen_onmedia) == WL_LINE);
static_assert(sizeof(struct wl_chunk_onmedia) == WL_LINE);

/**
 * wl_gen_read - read and verify the word of a generation
 * @wl: log
 * @gen: number, below nr_gens
 * @info: set unless the word is damaged
 *
 * Context: Any; concurrent with slots, not with other wl_gen_*() for @gen.
 * Return: 0, or -EUCLEAN: the word is damaged.
 */
int wl_gen_read(const struct wl *wl, u32 gen, struct wl_gen_info *info)
{
	u64 word, entries;

	memset(info, 0, sizeof(*info));
	if (!wl_load(&wl->gens[gen].word, &word) || !wl_load(&wl->gens[gen].entries, &entries))
		return -EUCLEAN;
	info->state = word & WL_STATE_MASK;
	info->id = wl_word_id(word);
	if (info->state == WL_GEN_SEALED)
		info->entries = entries;
	if (!word)
		return 0;
	if (info->state > WL_GEN_SEALED || !info->id ||
	    word != wl_gen_word(wl, gen, info->id, info->state, entries))
		return -EUCLEAN;
	return 0;
}

/* Returns the largest identifier in valid words of a generation's chunks; 0: there is none. */
u64 wl_gen_newest(const struct wl *wl, u32 gen)
{
	u64 newest = 0;
	u32 chunk;

	for (chunk = 0; chunk < wl->nr_chunks; chunk++) {
		u64 word;

		if (wl_chunk_load(wl, gen, chunk, &word))
			newest = max_t(u64, newest, wl_word_id(word));
	}
	return newest;
}

/**
 * wl_next_id - the identifier for the next generation that is opened
 * @wl: log
 *
 * Reads the words of all generations and chunks. Callers call it once, and count from there.
 *
 * Context: May sleep; nothing changes the log meanwhile.
 * Return: one more than any that was ever given and has left a trace.
 */
u64 wl_next_id(const struct wl *wl)
{
	u64 newest = 0;
	u32 gen;

	for (gen = 0; gen < wl->nr_gens; gen++) {
		struct wl_gen_info info;

		if (!wl_gen_read(wl, gen, &info))
			newest = max_t(u64, newest, info.id);
		newest = max_t(u64, newest, wl_gen_newest(wl, gen));
		cond_resched();		/* a large log has millions of words */
	}
	return newest + 1;
}

/*
 * Clears words without valid content, of chunks that are going to be used: all words if @all, otherwise
 * the damaged ones. Writes whole lines, which also heals lines that the medium has lost. Durable after
 * a fence.
 *
 * Return: the number of words cleared.
 */
static u32 clear_chunk_words(const struct wl *wl, u32 gen, bool all)
{
	const struct wl_chunk_onmedia blank = { };
	u32 chunk, cleared = 0;

	for (chunk = 0; chunk < wl->nr_chunks; chunk++) {
		u64 word;

		if (!all && wl_chunk_load(wl, gen, chunk, &word))
			continue;
		pm_copy(wl_chunk_header(wl, gen, chunk), &blank, sizeof(blank));
		cleared++;
	}
	return cleared;
}

/*
 * Writes the whole line of a generation whose word is damaged: a store of the word alone doesn't heal a line
 * that the medium has lost. The line gets the new word at once, and not 0 before it: that would say that the
 * generation is free. A cut leaves the word damaged, or the new one. Durable after a fence.
 */
static void write_line(const struct wl *wl, u32 gen, u64 word, u64 entries)
{
	struct wl_gen_onmedia rec = { .word = cpu_to_le64(word), .entries = cpu_to_le64(entries) };

	pm_copy(&wl->gens[gen], &rec, sizeof(rec));
}

/* True if the medium has lost the line of a generation. */
static bool line_lost(const struct wl *wl, u32 gen)
{
	struct wl_gen_onmedia rec;

	return !pm_read(&rec, &wl->gens[gen], sizeof(rec));
}

/**
 * wl_gen_open - begin a new life of a free generation
 * @wl: log, not opened read-only
 * @gen: number; durably free
 * @id: larger than any given before, see wl_next_id()
 *
 * Durable on return: slots may take its chunks. Entries of its last life don't count.
 *
 * Context: Any; the caller excludes others from the generation.
 * Return: 0; -EOVERFLOW: no identifiers are left, and the log has to be formatted anew once it is
 * empty; -EIO: the medium can't hold it.
 */
int wl_gen_open(struct wl *wl, u32 gen, u64 id)
{
	u64 word = wl_gen_word(wl, gen, id, WL_GEN_OPEN, 0);
	struct wl_gen_info info;

	if (id > WL_MAX_ID)
		return -EOVERFLOW;
	if (clear_chunk_words(wl, gen, false)) {
		pm_fence();
		/* Entries in a chunk whose word stays bad would be lost. */
		if (clear_chunk_words(wl, gen, false))
			return -EIO;
	}
	if (wl_gen_read(wl, gen, &info))
		write_line(wl, gen, word, 0);
	else
		wl_store(wl, &wl->gens[gen].word, word);
	if (!BREAK_OPEN_FENCE)
		pm_fence();
	return wl_gen_read(wl, gen, &info) ? -EIO : 0;
}

/* True if the first @n headers of a chunk are whole, and of this life of the generation. */
static bool headers_whole(const struct wl *wl, u32 gen, u64 id, u32 chunk, u32 n)
{
	struct wl_entry entry;
	u32 i;

	for (i = 0; i < n; i++)
		if (wl_entry_read(wl, gen, id, chunk, i, &entry))
			return false;
	return true;
}

/*
 * Writes the word of a chunk anew that the medium has damaged or lost since the chunk's last commit. All
 * entries that were made in this life are committed, and @entries is their number. So if no other word is
 * damaged, the chunk has those that the other chunks lack. Durable after a fence.
 */
static void heal_chunk(const struct wl *wl, u32 gen, u64 id, u64 entries)
{
	u32 chunk, damaged = 0, nr_damaged = 0;
	struct wl_chunk_onmedia rec = { };
	u64 word;

	for (chunk = 0; chunk < wl->nr_chunks; chunk++) {
		if (!wl_chunk_load(wl, gen, chunk, &word)) {
			damaged = chunk;
			nr_damaged++;
		} else if (wl_word_id(word) == id) {
			entries -= word & WL_FILL_MASK;
		}
	}
	if (nr_damaged != 1 || entries >= wl->chunk_size / WL_LINE || entries > WL_MAX_FILL ||
	    !headers_whole(wl, gen, id, damaged, entries))
		return;
	word = wl_chunk_word(wl, wl_chunk_number(wl, gen, damaged), id, entries);
	rec.word = cpu_to_le64(entries ? word : 0);
	pm_copy(wl_chunk_header(wl, gen, damaged), &rec, sizeof(rec));
}

/**
 * wl_gen_seal - mark a generation as complete: nothing will be added to it
 * @wl: log
 * @gen: number; open, and no slot holds a chunk of it
 * @id: its identifier
 * @entries: number of entries committed in it; replay compares with this
 *
 * Durable on return. Sealing is optional: an open generation can be freed, too.
 *
 * The identifier comes from the caller, not from the word: the medium may have damaged or lost the word since
 * the generation was opened. Sealing writes it anew then, and no entry is lost. So it does with the word of
 * one chunk, whose number of entries is known from those of the others.
 *
 * Context: Any; the caller excludes others from the generation.
 */
void wl_gen_seal(struct wl *wl, u32 gen, u64 id, u64 entries)
{
	u64 word = wl_gen_word(wl, gen, id, WL_GEN_SEALED, entries);

	heal_chunk(wl, gen, id, entries);
	if (line_lost(wl, gen)) {
		write_line(wl, gen, word, entries);
	} else {
		wl_store(wl, &wl->gens[gen].entries, entries);
		pm_fence();
		wl_store(wl, &wl->gens[gen].word, word);
	}
	pm_fence();
}

/**
 * wl_gen_free - free a generation: none of its entries is replayed
 * @wl: log, not opened read-only
 * @gen: number, any state; all its entries are durable on the origin
 *
 * Durable on return. Generations are freed in the order of their identifiers. Freeing one whose word is
 * damaged or lost gives up its entries.
 *
 * Context: Any; the caller excludes others from the generation.
 */
void wl_gen_free(struct wl *wl, u32 gen)
{
	struct wl_gen_info info;
	u64 word = 0;

	if (wl_gen_read(wl, gen, &info) || wl_gen_newest(wl, gen) > info.id) {
		clear_chunk_words(wl, gen, true);
		pm_fence();
	} else if (info.id) {
		word = wl_gen_word(wl, gen, info.id, WL_GEN_FREE, 0);
	}
	if (line_lost(wl, gen))
		write_line(wl, gen, word, 0);
	else
		wl_store(wl, &wl->gens[gen].word, word);
	if (!BREAK_FREE_FENCE)
		pm_fence();
}
