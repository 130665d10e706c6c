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

/* Headers in a row that a medium may damage at once: those of a page. */
#define MAX_HOLE	((int)(WL_PAGE_SIZE / WL_LINE))

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
 * wl_gen_live - whether a generation holds entries that count
 * @wl: log
 * @gen: number, below nr_gens
 * @info: as from wl_gen_read()
 *
 * A word may be whole and yet be that of an earlier life, because the medium has lost the present one. The
 * earlier life's entries are on the origin, perhaps under newer ones, and must not come back. The present
 * life's are lost, as with a damaged word. So the caller may use the generation as a free one.
 *
 * Context: Any; no slot holds a chunk of it. Reads the words of its chunks.
 * Return: false if it is free, its word is damaged, or its chunks were filled in a later life.
 */
bool wl_gen_live(const struct wl *wl, u32 gen, struct wl_gen_info *info)
{
	return !wl_gen_read(wl, gen, info) && info->state != WL_GEN_FREE &&
	       wl_gen_newest(wl, gen) <= info->id;
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

/*
 * Counts the entries of this life in a chunk by their headers, up to the last whole one. Headers that aren't
 * whole may lie between others: the medium has damaged them. A header doesn't lie in an earlier entry's data.
 */
static int count_headers(const struct wl *wl, u32 gen, u64 id, u32 chunk)
{
	const u8 *data_end = wl_chunk_at(wl, gen, chunk);
	int i, n = 0, max = min_t(u32, wl->chunk_size / WL_LINE - 1, WL_MAX_FILL);
	struct wl_entry entry;

	for (i = 0; i < max && i < n + MAX_HOLE; i++) {
		if ((u8 *)wl_entry_header(wl, gen, chunk, i) < data_end)
			break;
		if (wl_entry_read(wl, gen, id, chunk, i, &entry))
			continue;
		n = i + 1;
		if (wl_entry_len(&entry))
			data_end = (u8 *)wl_entry_data(wl, &entry) + wl_entry_len(&entry);
	}
	return n;
}

/* The number of entries in a chunk: by its word, or if that is damaged, or @by_headers, by its headers. */
static int count_entries(const struct wl *wl, u32 gen, u64 id, u32 chunk, bool by_headers, bool *damaged)
{
	int fill = wl_chunk_read(wl, gen, id, chunk);

	*damaged |= fill < 0;
	return by_headers || fill < 0 ? count_headers(wl, gen, id, chunk) : fill;
}

/* Sums up a generation's entries. *@damaged: whether a chunk's word is. */
static u64 add_up(const struct wl *wl, u32 gen, u64 id, bool by_headers, bool *damaged)
{
	u64 sum = 0;
	u32 chunk;

	for (chunk = 0, *damaged = false; chunk < wl->nr_chunks; chunk++) {
		sum += count_entries(wl, gen, id, chunk, by_headers, damaged);
		cond_resched();
	}
	return sum;
}

/*
 * Writes words of chunks anew that the medium has damaged or lost since the chunks' last commits, or that it
 * shows as they were before. All entries that were made in this life are committed, and @entries is their
 * number. So each whole header of this life is that of an entry, and a chunk has at least the entries up to
 * its last whole header. Headers count only where words don't: where a word is damaged or, if the sum is
 * wrong then, everywhere. Durable after a fence.
 */
static void heal_chunks(const struct wl *wl, u32 gen, u64 id, u64 entries)
{
	bool by_headers, damaged;
	u32 chunk;

	by_headers = add_up(wl, gen, id, false, &damaged) != entries;
	if (!by_headers && !damaged)
		return;
	if (by_headers && add_up(wl, gen, id, true, &damaged) > entries)	/* headers can't be trusted */
		return;
	for (chunk = 0; chunk < wl->nr_chunks; chunk++) {
		int n = count_entries(wl, gen, id, chunk, by_headers, &damaged);
		struct wl_chunk_onmedia rec = { };

		if (wl_chunk_read(wl, gen, id, chunk) >= n)
			continue;
		if (n)
			rec.word = cpu_to_le64(wl_chunk_word(wl, wl_chunk_number(wl, gen, chunk), id, n));
		pm_copy(wl_chunk_header(wl, gen, chunk), &rec, sizeof(rec));
		cond_resched();
	}
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
 * the generation was opened. Sealing writes it anew then, and no entry is lost. So it does with the words of
 * chunks, from the headers of their entries. Where the last headers of a chunk are damaged, too, entries are
 * missing, and their number shows that.
 *
 * Context: May sleep; the caller excludes others from the generation.
 */
void wl_gen_seal(struct wl *wl, u32 gen, u64 id, u64 entries)
{
	u64 word = wl_gen_word(wl, gen, id, WL_GEN_SEALED, entries);

	heal_chunks(wl, gen, id, entries);
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

/**
 * wl_gen_open - begin a new life of a free generation
 * @wl: log, not opened read-only
 * @gen: number; durably free, or its word is damaged or lost, and its entries are given up
 * @id: larger than any given before, see wl_next_id()
 *
 * Durable on return: slots may take its chunks. Entries of its last life don't count. A damaged word is first
 * written anew, as that of a free generation. So it is whole also where the medium can't hold a chunk's word.
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
	if (wl_gen_read(wl, gen, &info))
		wl_gen_free(wl, gen);
	if (clear_chunk_words(wl, gen, false)) {
		pm_fence();
		/* Entries in a chunk whose word stays bad would be lost. */
		if (clear_chunk_words(wl, gen, false))
			return -EIO;
	}
	wl_store(wl, &wl->gens[gen].word, word);
	if (!BREAK_OPEN_FENCE)
		pm_fence();
	return wl_gen_read(wl, gen, &info) ? -EIO : 0;
}
