// SPDX-License-Identifier: GPL-2.0-only
/*
 * Slots, and the chunks and generations they write to.
 *
 * A slot is held by one writer at a time, so it has its chunk for itself. There
 * are as many slots as writers may copy to PMem at once. A chunk is taken with
 * one atomic increment. Only who finds no chunk left in the current generation
 * takes gen_lock: it opens a free one, and that is current.
 *
 * A writer looks up which generation is current while it holds its slot. A
 * generation is no longer current when dwl_slots_leave() begins; when that has
 * had every slot, nobody writes to it and nobody will.
 */
#include "trace.h"

/**
 * dwl_slot_get() - become one of the writers
 * @w: the target
 * @nowait: rather not than wait
 *
 * Return: a slot, its lock held; NULL: all are taken.
 */
struct dwl_slot *dwl_slot_get(struct dwl *w, bool nowait)
{
	u32 first = raw_smp_processor_id() % w->params.slots, i = first;
	u64 began;

	do {
		if (mutex_trylock(&w->slots[i].lock))
			return &w->slots[i];
		if (++i == w->params.slots)
			i = 0;
	} while (i != first);
	if (nowait)
		return NULL;
	dwl_count(w, DWL_SLOT_WAITS, 1);
	began = dwl_now(w);
	mutex_lock(&w->slots[first].lock);
	dwl_latency(w, DWL_PHASE_SLOT, began);
	return &w->slots[first];
}

/* Caller holds gen_lock. */
static void dwl_gen_close(struct dwl *w, struct dwl_gen *gen)
{
	gen->state = DWL_GEN_CLOSED;
	list_add_tail(&gen->list, &w->closed_gens);
	WRITE_ONCE(w->nr_unsealed, w->nr_unsealed + 1);
	WRITE_ONCE(w->current_gen, NULL);
	wake_up(&w->kick);
}

/* What comes from now on goes into another generation than the one returned, or one before it. */
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

/* One of the free. Those that the medium can't hold are out of use until the table is loaded again. */
static struct dwl_gen *dwl_gen_open(struct dwl *w)
{
	struct dwl_gen *gen;
	int err;

	while ((gen = list_first_entry_or_null(&w->free_gens, struct dwl_gen, list))) {
		err = wl_gen_open(&w->wl, gen - w->gens, w->last_id + 1);
		if (!err || err == -EIO) {
			list_del_init(&gen->list);
			WRITE_ONCE(w->nr_free, w->nr_free - 1);
		}
		if (!err)
			return gen;
		DMERR_LIMIT("%pg: cannot begin generation %llu: error %d", w->cache->bdev,
			    w->last_id + 1, err);
		if (err != -EIO)
			return ERR_PTR(-EIO);
		dwl_count(w, DWL_MEDIUM_ERRORS, 1);
	}
	return ERR_PTR(-ENOSPC);
}

/* @full, if it is still the current one, is so no longer. Caller holds gen_lock. */
static int dwl_gen_next(struct dwl *w, struct dwl_gen *full)
{
	struct dwl_gen *gen;

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
	atomic_set(&gen->seq, 0);
	atomic_set(&gen->chunks, 0);
	/* Who sees it sees what it is. Pairs with dwl_slot_ready(). */
	smp_store_release(&w->current_gen, gen);
	dwl_count(w, DWL_GENERATIONS, 1);
	trace_dwl_gen_open(w, gen->id, 0);
	dwl_space_update(w);
	return 0;
}

/* May the slot's chunk take an entry of @op; of how many bytes? */
static u32 dwl_slot_room(const struct dwl *w, const struct dwl_slot *slot, enum wl_op op, u32 want)
{
	if (op == WL_OP_WRITE)
		/* Rounded: no block is in two entries. */
		return round_down(wl_slot_room(&w->wl, &slot->place, want), w->params.block_size);
	return wl_slot_full(&w->wl, &slot->place) ? 0 : want;
}

/**
 * dwl_slot_ready() - have a place in the current generation
 * @w: the target
 * @slot: held by the caller
 * @op: of the entry to be made
 * @want: bytes of data that it would like to have; not 0
 * @gen: where the place is
 * @nowait: don't wait for a lock
 *
 * Return: how many bytes the entry may have; -ENOSPC: no generation is free.
 */
int dwl_slot_ready(struct dwl *w, struct dwl_slot *slot, enum wl_op op, u32 want,
		   struct dwl_gen **gen, bool nowait)
{
	for (;;) {
		/* Pairs with dwl_gen_next(). */
		struct dwl_gen *current_gen = smp_load_acquire(&w->current_gen);
		int err;

		if (current_gen && slot->place.id == current_gen->id) {
			u32 room = dwl_slot_room(w, slot, op, want);

			*gen = current_gen;
			if (room)
				return room;
		}
		if (current_gen && atomic_read(&current_gen->chunks) < w->wl.nr_chunks) {
			u32 chunk = atomic_inc_return(&current_gen->chunks) - 1;

			if (chunk < w->wl.nr_chunks) {
				wl_slot_take(&slot->place, current_gen - w->gens, current_gen->id, chunk);
				continue;
			}
		}
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

/*
 * Returns when nobody writes to @gen, which is closed; NULL: when every slot
 * has been free for a moment.
 */
void dwl_slots_leave(struct dwl *w, const struct dwl_gen *gen)
{
	u32 i;

	for (i = 0; i < w->params.slots; i++) {
		struct dwl_slot *slot = &w->slots[i];

		mutex_lock(&slot->lock);
		if (gen && slot->place.id == gen->id)
			memset(&slot->place, 0, sizeof(slot->place));
		mutex_unlock(&slot->lock);
	}
}
