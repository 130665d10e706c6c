// SPDX-License-Identifier: GPL-2.0-only
/*
 * The primitives of env.h over a model of persistent memory whose power can
 * fail between any two of them.
 *
 * There are two images: the live one, which the CPU sees, and the durable one,
 * which is what surely survives. Between them, each 8-byte word that has been
 * stored since it was last durable holds the list of its values, in order.
 *
 *   - A value is written back when its line is flushed, or if it was copied
 *     past the caches, or at once if the caches are in the persistence domain.
 *   - A fence makes every value that its own thread has written back durable;
 *     there are other threads only where a test says so (sim_thread()).
 *   - At a power cut each word, independently of all others, holds its durable
 *     value or any later one: caches evict lines whenever they like.
 *
 * That is weaker than any real machine: x86 keeps the order of plain stores
 * within a line, and, with persistent caches, among all of them. Copies past
 * the caches have no order on x86, and plain stores have none on other
 * machines. So both domains are tested under the weaker model.
 *
 * A cut is tried right before each fence, and where a test asks. That covers a
 * cut between any two stores. Until a fence, another store only adds to what
 * may have happened, because it may not have landed. So the states before a
 * fence include those at every point since the fence before.
 *
 * Beside this file: pm_visit.c visits the states that a cut may leave, and pm_state.h is what the two
 * files share.
 */
#include "pm_sim.h"
#include "pm_state.h"

#include <stdlib.h>

#define LINE	64
#define LOST	0x1057c0de1057c0deULL	/* what a lost word holds in an image */

struct sim_state sim;

/* xorshift64*: a seed gives the same numbers on every machine. */
u32 sim_random(u32 below)
{
	sim.random ^= sim.random >> 12;
	sim.random ^= sim.random << 25;
	sim.random ^= sim.random >> 27;
	return (u32)((sim.random * 0x2545f4914f6cdd1dULL) >> 32) % below;
}

void sim_seed(u64 seed)
{
	sim.random = seed ? seed : 1;
}

static void *image_alloc(void *old, size_t size)
{
	void *image;

	free(old);
	image = aligned_alloc(4096, size);
	if (!image)
		abort();
	return image;
}

/* Begins with power just on: @image is durable. */
void sim_start(const void *image, size_t size, enum sim_domain domain)
{
	if (size != sim.size) {
		sim.live = image_alloc(sim.live, size);
		sim.durable = image_alloc(sim.durable, size);
		sim.pending = image_alloc(sim.pending, size / WORD * sizeof(*sim.pending));
		sim.slot = image_alloc(sim.slot, size / WORD * sizeof(*sim.slot));
		memset(sim.slot, 0, size / WORD * sizeof(*sim.slot));
		sim.size = size;
		sim.nr_pending = 0;
	}
	memcpy(sim.durable, image, size);
	memcpy(sim.live, image, size);
	for (u32 i = 0; i < sim.nr_pending; i++)
		sim.slot[sim.pending[i].word] = 0;
	sim.nr_pending = 0;
	sim.domain = domain;
	sim.thread = 0;
	sim.visit = NULL;
	sim.failed = false;
	sim.kept = NULL;
	sim.any_lost = false;
	sim.before_read = NULL;
	sim.after_copy = NULL;
	sim.sabotage = SIM_NONE;
	sim.sabotage_done = false;
	memset(sim.count, 0, sizeof(sim.count));
}

/* From now on, another thread stores and fences; its fences do nothing for the others. */
void sim_thread(u32 thread)
{
	sim.thread = thread;
}

/* From now on, leaves out the @nth step (from 0) of this kind. */
void sim_sabotage(enum sim_sabotage what, u32 nth)
{
	memset(sim.count, 0, sizeof(sim.count));
	sim.sabotage = what;
	sim.sabotage_nth = nth;
	sim.sabotage_done = false;
}

/* Returns true if there was an nth step of the kind to leave out. */
bool sim_sabotage_reached(void)
{
	return sim.count[sim.sabotage] > sim.sabotage_nth;
}

/* Returns true if the sabotage has left any word less durable than it would be. */
bool sim_sabotaged(void)
{
	return sim.sabotage_done;
}

void *sim_live(void)
{
	return sim.live;
}

void *sim_durable(void)
{
	return sim.durable;
}

static bool within(const void *addr, const u8 *image)
{
	return (const u8 *)addr >= image && (const u8 *)addr < image + sim.size;
}

/* Stores elsewhere than to the live image are plain. */
static bool is_live(const void *addr)
{
	return within(addr, sim.live);
}

/* Before a store while a crash state is visited, so that it can be undone. */
static void remember(const void *addr, size_t len)
{
	size_t from = (const u8 *)addr - sim.durable;

	if (!within(addr, sim.durable))
		return;
	for (size_t word = from / WORD; word <= (from + len - 1) / WORD; word++) {
		if (sim.nr_undo == MAX_UNDO)
			abort();
		sim.undo[sim.nr_undo].word = word;
		sim.undo[sim.nr_undo++].value = *word_at(sim.durable, word);
	}
}

static bool sabotage_now(enum sim_sabotage what)
{
	return sim.sabotage == what && sim.count[what]++ == sim.sabotage_nth;
}

/* Notes that a word of the live image has got a new value. */
static void word_stored(u32 word, bool written_back)
{
	u64 value = *word_at(sim.live, word);
	struct pending *p;
	u64 last;

	if (!sim.slot[word]) {
		if (value == *word_at(sim.durable, word))
			return;
		p = &sim.pending[sim.nr_pending++];
		*p = (struct pending){ .word = word };
		sim.slot[word] = sim.nr_pending;
	}
	p = &sim.pending[sim.slot[word] - 1];
	last = p->nr_values ? p->values[p->nr_values - 1] : *word_at(sim.durable, word);
	if (value != last) {
		if (p->nr_values == MAX_VALUES)
			abort();
		p->values[p->nr_values++] = value;
	}
	if (written_back) {
		p->written_back = p->nr_values;
		p->thread = sim.thread;
	}
}

static void range_stored(const void *addr, size_t len, bool written_back)
{
	size_t from = (const u8 *)addr - sim.live;

	if (!is_live(addr))
		return;
	for (size_t word = from / WORD; word <= (from + len - 1) / WORD; word++)
		word_stored(word, written_back);
}

/*
 * The medium loses the line of the live image at @addr, durably. Reads of it fail until each of its words has
 * been stored to. So where a crash state lacks one of the words that heal the line, the line is still lost.
 */
void sim_lose_line(void *addr)
{
	u32 first = ((u8 *)addr - sim.live) / LINE * (LINE / WORD);

	for (u32 word = first; word < first + LINE / WORD; word++) {
		struct pending *p = &sim.pending[sim.slot[word] - 1];

		if (sim.slot[word]) {
			p->nr_values = 0;
			p->written_back = 0;
		}
		*word_at(sim.live, word) = LOST;
		*word_at(sim.durable, word) = LOST;
	}
	sim.any_lost = true;
}

/* Returns true if lines of the image that hold these bytes are lost. */
static bool lost(u8 *image, const void *from, size_t len)
{
	size_t at = (const u8 *)from - image;

	if (!sim.any_lost || !len || !within(from, image))
		return false;
	for (size_t word = at / LINE * (LINE / WORD);
	     word < ((at + len - 1) / LINE + 1) * (LINE / WORD); word++)
		if (*word_at(image, word) == LOST)
			return true;
	return false;
}

/* From now on @store is called before each read. It may store what another user of the device stores. */
void sim_before_reads(void (*store)(const void *from))
{
	sim.before_read = store;
}

/* From now on @store is called after each copy. It may store what a program stores that owns the source. */
void sim_after_copies(void (*store)(void))
{
	sim.after_copy = store;
}

bool pm_read(void *to, const void *from, size_t len)
{
	if (sim.before_read)
		sim.before_read(from);
	if (lost(sim.live, from, len) || lost(sim.durable, from, len))
		return false;
	memcpy(to, from, len);
	return true;
}

void pm_store64(__le64 *to, __le64 value)
{
	if ((size_t)to % WORD)
		abort();
	remember(to, WORD);
	*to = value;
	range_stored(to, WORD, sim.domain == SIM_CPU_CACHE);
}

/* @from NULL: zeros. */
static void copy_or_zero(void *to, const void *from, size_t len)
{
	bool cached;

	if (!len)
		return;
	remember(to, len);
	if (from)
		memcpy(to, from, len);
	else
		memset(to, 0, len);
	cached = is_live(to) && sabotage_now(SIM_CACHED);
	range_stored(to, len, !cached || sim.domain == SIM_CPU_CACHE);
}

void pm_copy(void *to, const void *from, size_t len)
{
	copy_or_zero(to, from, len);
	if (sim.after_copy)
		sim.after_copy();
}

void pm_zero(void *to, size_t len)
{
	copy_or_zero(to, NULL, len);
}

void pm_flush(void *addr, size_t len)
{
	size_t from = (u8 *)addr - sim.live;

	if (!is_live(addr) || !len || sabotage_now(SIM_NO_FLUSH))
		return;
	for (size_t word = from / LINE * (LINE / WORD);
	     word < ((from + len - 1) / LINE + 1) * (LINE / WORD); word++) {
		struct pending *p = &sim.pending[sim.slot[word] - 1];

		if (sim.slot[word]) {
			p->written_back = p->nr_values;
			p->thread = sim.thread;
		}
	}
}

/* Makes durable what has been written back, by this thread or by any. */
static void settle_written_back(bool any)
{
	u32 kept = 0;

	for (u32 i = 0; i < sim.nr_pending; i++) {
		struct pending p = sim.pending[i];

		if (p.written_back && (any || p.thread == sim.thread)) {
			*word_at(sim.durable, p.word) = p.values[p.written_back - 1];
			p.nr_values -= p.written_back;
			memmove(p.values, p.values + p.written_back,
				p.nr_values * sizeof(*p.values));
			p.written_back = 0;
		}
		if (p.nr_values) {
			sim.pending[kept++] = p;
			sim.slot[p.word] = kept;
		} else {
			sim.slot[p.word] = 0;
		}
	}
	sim.nr_pending = kept;
}

/* A random state of a power cut before the @nth fence from now goes to @image. */
void sim_keep_cut(void *image, u32 nth)
{
	sim.kept = image;
	sim.keep_after = nth;
}

bool sim_cut_kept(void)
{
	return !sim.kept;
}

static void keep_cut(void)
{
	memcpy(sim.kept, sim.durable, sim.size);
	for (u32 i = 0; i < sim.nr_pending; i++) {
		const struct pending *p = &sim.pending[i];
		u32 choice = sim_random(p->nr_values + 1);

		if (choice)
			*word_at(sim.kept, p->word) = p->values[choice - 1];
	}
	sim.kept = NULL;
}

static bool all_written_back(void)
{
	for (u32 i = 0; i < sim.nr_pending; i++)
		if (sim.pending[i].written_back < sim.pending[i].nr_values)
			return false;
	return true;
}

void pm_fence(void)
{
	if (sim.visiting)
		return;
	if (sabotage_now(SIM_NO_FENCE)) {
		sim.sabotage_done = sim.nr_pending > 0;
		return;
	}
	if (!all_written_back())
		sim.sabotage_done = true;
	sim_cut();
	if (sim.kept && !sim.keep_after--)
		keep_cut();
	settle_written_back(false);
}

/* Makes everything durable, even without flush and fence: for setting up a test. */
void sim_settle(void)
{
	for (u32 i = 0; i < sim.nr_pending; i++)
		sim.pending[i].written_back = sim.pending[i].nr_values;
	settle_written_back(true);
}
