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
	struct wl_gen_info info;

	if (id > WL_MAX_ID)
		return -EOVERFLOW;
	if (wl_gen_read(wl, gen, &info)) {
		const struct wl_gen_onmedia blank = { };

		pm_copy(&wl->gens[gen], &blank, sizeof(blank));
		pm_fence();
	}
	if (clear_chunk_words(wl, gen, false)) {
		pm_fence();
		/* Entries in a chunk whose word stays bad would be lost. */
		if (clear_chunk_words(wl, gen, false))
			return -EIO;
	}
	wl_store(wl, &wl->gens[gen].word, wl_gen_word(wl, gen, id, WL_GEN_OPEN, 0));
	if (!BREAK_OPEN_FENCE)
		pm_fence();
	return wl_gen_read(wl, gen, &info) ? -EIO : 0;
}

/**
 * wl_gen_seal - mark a generation as complete: nothing will be added to it
 * @wl: log
 * @gen: number; open, and no slot holds a chunk of it
 * @entries: number of entries committed in it; replay compares with this
 *
 * Durable on return. Sealing is optional: an open generation can be freed, too.
 *
 * Context: Any; the caller excludes others from the generation.
 */
void wl_gen_seal(struct wl *wl, u32 gen, u64 entries)
{
	struct wl_gen_onmedia *rec = &wl->gens[gen];
	u64 word;

	if (!wl_load(&rec->word, &word))
		return;
	wl_store(wl, &rec->entries, entries);
	pm_fence();
	wl_store(wl, &rec->word, wl_gen_word(wl, gen, wl_word_id(word), WL_GEN_SEALED, entries));
	pm_fence();
}

/* Writes the whole line of a generation that the medium has lost: a store of the word alone heals nothing. */
static void heal_gen(const struct wl *wl, u32 gen)
{
	const struct wl_gen_onmedia blank = { };
	struct wl_gen_onmedia rec;

	if (pm_read(&rec, &wl->gens[gen], sizeof(rec)))
		return;
	pm_copy(&wl->gens[gen], &blank, sizeof(blank));
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
		heal_gen(wl, gen);
	} else if (info.id) {
		word = wl_gen_word(wl, gen, info.id, WL_GEN_FREE, 0);
	}
	wl_store(wl, &wl->gens[gen].word, word);
	if (!BREAK_FREE_FENCE)
		pm_fence();
}
