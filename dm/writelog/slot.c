// SPDX-License-Identifier: GPL-2.0-only
/*
 * Slots, and the chunks and generations that writers append to.
 *
 * A slot is held by one writer at a time, so that the writer has the slot's chunk for itself. The
 * number of slots limits how many writers copy to PMem at once. A chunk is taken with one atomic
 * increment. A writer that finds no chunk left in the current generation looks for one with space among
 * the free slots. Only if there is none, the writer takes gen_lock and opens a free generation, which
 * becomes the current one.
 *
 * A writer looks up the current generation while it holds its slot. A generation is no longer current
 * when dwl_slots_wait() begins. dwl_slots_wait() then takes each slot once; after that no writer writes
 * to the generation, now or later.
 */
#include "space.h"
#include "trace.h"

/* Minimum bytes for which another slot's chunk is taken over. */
#define DWL_MIN_SWAP		((u32)SZ_64K)

/**
 * dwl_slot_get() - take a slot for appending
 * @w: the target
 * @nowait: fail instead of sleeping
 *
 * Context: Task. Sleeps unless @nowait.
 * Return: the slot, with its lock held; NULL: all are taken.
 */
struct dwl_slot *dwl_slot_get(struct dwl *w, bool nowait)
{
	u32 first = raw_smp_processor_id() % w->params.slots, i = first;
	u64 start_ns;

	do {
		if (mutex_trylock(&w->slots[i].lock))
			return &w->slots[i];
		if (++i == w->params.slots)
			i = 0;
	} while (i != first);
	if (nowait)
		return NULL;
	dwl_count(w, DWL_SLOT_WAITS, 1);
	start_ns = dwl_now(w);
	mutex_lock(&w->slots[first].lock);
	dwl_latency(w, DWL_PHASE_SLOT, start_ns);
	return &w->slots[first];
}

/* Ends the current generation; the worker will seal it. */
static void dwl_gen_close(struct dwl *w, struct dwl_gen *gen)
{
	lockdep_assert_held(&w->gen_lock);
	gen->state = DWL_GEN_CLOSED;
	list_add_tail(&gen->list, &w->closed_gens);
	WRITE_ONCE(w->nr_unsealed, w->nr_unsealed + 1);
	WRITE_ONCE(w->current_gen, NULL);
	wake_up(&w->kick);
}

/*
 * Closes the current generation. Returns the identifier of the last closed one: later writes go to
 * later generations.
 */
u64 dwl_gen_close_current(struct dwl *w)
{
	u64 id;

	mutex_lock(&w->gen_lock);
	if (w->current_gen)
		dwl_gen_close(w, w->current_gen);
	id = list_empty(&w->closed_gens) ? w->freed_to :
	     list_last_entry(&w->closed_gens, struct dwl_gen, list)->id;
	mutex_unlock(&w->gen_lock);
	return id;
}

#ifdef FB_BREAK_SLOW_STORE	/* on purpose: while depth is 1, the medium can't hold a generation */
static bool dwl_break_open(const struct dwl *w)
{
	return READ_ONCE(w->params.depth) == 1;
}
#else
static bool dwl_break_open(const struct dwl *w) { return false; }
#endif

/* Opens a free generation. Generations with a broken medium stay unused until the table is loaded again. */
static struct dwl_gen *dwl_gen_open(struct dwl *w)
{
	struct dwl_gen *gen;
	int err;

	lockdep_assert_held(&w->gen_lock);
	while ((gen = list_first_entry_or_null(&w->free_gens, struct dwl_gen, list))) {
		if (!dwl_free_for_writers(w) && !w->aside.moving)
			break;
		err = dwl_break_open(w) ? -EIO : wl_gen_open(&w->wl, gen - w->gens, w->last_id + 1);
		if (!err || err == -EIO) {
			list_del_init(&gen->list);
			WRITE_ONCE(w->nr_free, w->nr_free - 1);
		}
		if (!err)
			return gen;
		DMERR_LIMIT("%pg: cannot begin generation %llu: error %d", w->log->bdev,
			    w->last_id + 1, err);
		if (err != -EIO)
			return ERR_PTR(-EIO);
		/* The generation's word may have the identifier, and be readable some day. */
		w->last_id++;
		dwl_gen_broken(w);
	}
	return ERR_PTR(-ENOSPC);
}

/* Opens the next generation, unless another writer has done so: @full is then not the current one. */
static int dwl_gen_next(struct dwl *w, struct dwl_gen *full)
{
	struct dwl_gen *gen;

	lockdep_assert_held(&w->gen_lock);
	if (w->current_gen != full)
		return 0;
	if (full)
		dwl_gen_close(w, full);
	gen = dwl_gen_open(w);
	if (IS_ERR(gen))
		return PTR_ERR(gen);
	gen->id = ++w->last_id;
	gen->state = DWL_GEN_CURRENT;
	gen->sealed = false;
	gen->written = false;
	gen->along = 0;
	atomic_set(&gen->seq, 0);
	atomic_set(&gen->chunks, 0);
	/* Publishes the initialized generation. Pairs with smp_load_acquire() in dwl_slot_ready(). */
	smp_store_release(&w->current_gen, gen);
	dwl_count(w, DWL_GENERATIONS, 1);
	trace_dwl_gen_open(w, gen->id, 0);
	dwl_space_update(w);
	return 0;
}

/*
 * Returns how many of @want bytes an entry of @op may have in the slot's chunk; 0: the entry doesn't
 * fit.
 */
static u32 dwl_slot_space(const struct dwl *w, const struct dwl_slot *slot, enum wl_op op, u32 want)
{
	if (op == WL_OP_WRITE)
		/* Rounded: no block is split between two entries. */
		return round_down(wl_slot_space(&w->wl, &slot->tail, want), w->params.block_size);
	return wl_slot_full(&w->wl, &slot->tail) ? 0 : want;
}

/*
 * No chunk of @gen is left. Swaps chunks with a free slot whose chunk has space. So a single writer
 * fills the generation, even if all slots took chunks of it before.
 */
static bool dwl_slot_swap(struct dwl *w, struct dwl_slot *slot, const struct dwl_gen *gen, enum wl_op op,
			  u32 want)
{
	bool found = false;
	u32 i;

	lockdep_assert_held(&slot->lock);
	for (i = 0; i < w->params.slots && !found; i++) {
		struct dwl_slot *other = &w->slots[i];

		if (other == slot || !mutex_trylock(&other->lock))
			continue;
		/* A large write doesn't take a chunk over for a few blocks. */
		found = other->tail.id == gen->id &&
			dwl_slot_space(w, other, op, want) >= min(want, DWL_MIN_SWAP);
		if (found)
			swap(slot->tail, other->tail);
		mutex_unlock(&other->lock);
	}
	return found;
}

/* Takes the generation's next chunk for the slot. False: none is left. */
static bool dwl_slot_take_chunk(struct dwl *w, struct dwl_slot *slot, struct dwl_gen *gen)
{
	u32 chunk;

	lockdep_assert_held(&slot->lock);
	if (atomic_read(&gen->chunks) >= w->wl.nr_chunks)	/* so that the count doesn't overflow */
		return false;
	chunk = atomic_inc_return(&gen->chunks) - 1;
	if (chunk >= w->wl.nr_chunks)
		return false;
	wl_slot_take(&slot->tail, gen - w->gens, gen->id, chunk);
	return true;
}

/**
 * dwl_slot_ready() - get space in the current generation
 * @w: the target
 * @slot: held by the caller
 * @op: of the entry
 * @want: bytes of data, not 0
 * @gen: out: the current generation
 * @nowait: fail instead of waiting for a lock
 *
 * Context: Under @slot->lock. Sleeps unless @nowait.
 * Return: how many bytes the entry may have; -ENOSPC: no generation is free; -EAGAIN: @nowait; -EIO.
 */
int dwl_slot_ready(struct dwl *w, struct dwl_slot *slot, enum wl_op op, u32 want,
		   struct dwl_gen **gen, bool nowait)
{
	lockdep_assert_held(&slot->lock);
	for (;;) {
		/* Pairs with smp_store_release() in dwl_gen_next(). */
		struct dwl_gen *current_gen = smp_load_acquire(&w->current_gen);
		int err;

		if (current_gen && slot->tail.id == current_gen->id) {
			u32 space = dwl_slot_space(w, slot, op, want);

			*gen = current_gen;
			if (space)
				return space;
		}
		if (current_gen && (dwl_slot_take_chunk(w, slot, current_gen) ||
				    dwl_slot_swap(w, slot, current_gen, op, want)))
			continue;
		if (nowait) {
			if (!mutex_trylock(&w->gen_lock))
				return -EAGAIN;
		} else {
			mutex_lock(&w->gen_lock);
		}
		err = dwl_gen_next(w, current_gen);
		mutex_unlock(&w->gen_lock);
		if (err)
			return err;
	}
}

/* Waits until no writer uses @gen, which is closed. NULL: waits until each slot has been free once. */
void dwl_slots_wait(struct dwl *w, const struct dwl_gen *gen)
{
	u32 i;

	for (i = 0; i < w->params.slots; i++) {
		struct dwl_slot *slot = &w->slots[i];

		mutex_lock(&slot->lock);
		if (gen && slot->tail.id == gen->id)
			memset(&slot->tail, 0, sizeof(slot->tail));
		mutex_unlock(&slot->lock);
	}
}
