// SPDX-License-Identifier: GPL-2.0-only
/*
 * The worker: writes generations back, oldest first, one at a time.
 *
 * It begins when the log is fuller than the high mark and goes on to the low
 * mark; also for `flush`, for cleaner mode, when the index has grown too large,
 * and when a writer waits. It seals generations that their writers have left.
 *
 * A generation is freed only after all that was newest in it is durable on the
 * origin. If the origin refuses, everything stays where it is, readers find it in
 * the log, and it is tried again until it succeeds or the target goes.
 */
#include <linux/kthread.h>
#include <linux/sched/mm.h>

#include "trace.h"

#define DWL_RETRY_LEAST		(HZ / 4)
#define DWL_RETRY_MOST		(4 * HZ)

/* Closed generations are to be written back. */
static bool dwl_wanted(struct dwl *w)
{
	u32 level = dwl_space_level(w);

	if (level >= w->params.high_mark)
		w->draining = true;
	else if (level <= w->params.low_mark)
		w->draining = false;
	return w->draining || w->space.throttled || READ_ONCE(w->flush_to) > w->freed_to ||
	       READ_ONCE(w->mode) == DWL_CLEANING;
}

static struct dwl_gen *dwl_closed(struct dwl *w, bool unsealed)
{
	struct dwl_gen *gen, *found = NULL;

	mutex_lock(&w->gen_lock);
	list_for_each_entry(gen, &w->closed_gens, list) {
		if (unsealed && gen->sealed)
			continue;
		found = gen;
		break;
	}
	mutex_unlock(&w->gen_lock);
	return found;
}

static void dwl_seal(struct dwl *w)
{
	struct dwl_gen *gen;

	while ((gen = dwl_closed(w, true))) {
		dwl_slots_leave(w, gen);
		mutex_lock(&w->gen_lock);
		wl_gen_seal(&w->wl, gen - w->gens, atomic_read(&gen->seq));
		gen->sealed = true;
		WRITE_ONCE(w->nr_unsealed, w->nr_unsealed - 1);
		mutex_unlock(&w->gen_lock);
	}
}

/* Of what was @seen for it, the pieces are what must be written. */
static int dwl_write_batch(struct dwl *w, u64 seen)
{
	u64 live = 0;
	int err;
	u32 i;

	for (i = 0; i < w->nr_pieces; i++)
		live += (u64)w->pieces[i].sectors << WL_SECTOR_SHIFT;
	w->batch_credit = div64_u64(seen << 16, max(live, 1));
	if (seen > live)
		dwl_count(w, DWL_SUPERSEDED_SECTORS, (seen - live) >> WL_SECTOR_SHIFT);
	if (!live)
		return 0;
	err = dwl_origin_write_pieces(w);
	if (err)
		return err;
	for (i = 0; i < w->nr_pieces; i++)
		dwl_index_clear(w, &w->pieces[i]);
	return 0;
}

static void dwl_gen_free(struct dwl *w, struct dwl_gen *gen)
{
	/* Who found a block there has copied it. */
	synchronize_srcu(&w->srcu);
	mutex_lock(&w->gen_lock);
	wl_gen_free(&w->wl, gen - w->gens);
	gen->state = DWL_GEN_FREE;
	list_move_tail(&gen->list, &w->free_gens);
	WRITE_ONCE(w->freed_to, gen->id);
	WRITE_ONCE(w->nr_free, w->nr_free + 1);
	mutex_unlock(&w->gen_lock);
	trace_dwl_gen_free(w, gen->id, 0);
	dwl_space_update(w);
	wake_up_all(&w->gen_freed);
}

/* Everything of a generation to the origin; then it is free. */
static int dwl_write_back(struct dwl *w, struct dwl_gen *gen)
{
	u32 chunk = 0, index = 0;
	int err = 0;

	for (;;) {
		s64 seen = dwl_pieces_collect(w, gen, &chunk, &index);

		if (seen < 0) {
			DMERR_LIMIT("%pg: a header of generation %llu is damaged: it stays in the log",
				    w->cache->bdev, gen->id);
			dwl_count(w, DWL_MEDIUM_ERRORS, 1);
			return seen;
		}
		if (!seen && !w->nr_pieces)
			break;
		err = dwl_write_batch(w, seen);
		trace_dwl_gen_written(w, gen->id, err);
		if (err)
			return err;
	}
	dwl_gen_free(w, gen);
	return 0;
}

/* Says once that the origin fails, and once that it no longer does. */
static void dwl_origin_health(struct dwl *w, int err)
{
	unsigned long since = w->failing_since;

	if (err) {
		dwl_count(w, DWL_ORIGIN_ERRORS, 1);
		if (!since) {
			DMERR("%pg: cannot write back to origin %pg: error %d; the data stay in the log, and it is tried again",
			      w->cache->bdev, w->origin->bdev, err);
			WRITE_ONCE(w->failing_since, jiffies | 1);
			dm_table_event(w->ti->table);
		} else if (!w->failed && time_after(jiffies, since + w->params.error_timeout * HZ)) {
			WRITE_ONCE(w->failed, true);
			dm_table_event(w->ti->table);
		}
	} else if (since) {
		DMINFO("%pg: origin %pg takes writes again", w->cache->bdev, w->origin->bdev);
		WRITE_ONCE(w->failing_since, 0);
		WRITE_ONCE(w->failed, false);
		dm_table_event(w->ti->table);
	} else {
		return;
	}
	dwl_space_update(w);
	wake_up_all(&w->gen_freed);
}

/* What the worker has to do, apart from sealing. */
static struct dwl_gen *dwl_next(struct dwl *w)
{
	struct dwl_gen *gen;

	if (!dwl_wanted(w))
		return NULL;
	gen = dwl_closed(w, false);
	/* The index is too large, and all of it is of the current generation. */
	if (!gen && w->space.throttled)
		dwl_gen_close_current(w);
	return gen ? gen : dwl_closed(w, false);
}

/* May dwl_seal() or dwl_next() find something? Takes no lock: called while going to sleep. */
static bool dwl_has_work(struct dwl *w)
{
	if (READ_ONCE(w->nr_unsealed))
		return true;
	return dwl_wanted(w) && (!list_empty(&w->closed_gens) ||
				 (READ_ONCE(w->space.throttled) && READ_ONCE(w->current_gen)));
}

/**
 * dwl_worker() - the thread
 * @data: the target; loaded
 *
 * May be stopped at any time. A generation that is half written then is written
 * again by the next one.
 */
int dwl_worker(void *data)
{
	unsigned int noio = memalloc_noio_save();
	unsigned long delay = DWL_RETRY_LEAST;
	struct dwl *w = data;

	while (!kthread_should_stop()) {
		struct dwl_gen *gen;
		int err;

		dwl_seal(w);
		gen = dwl_next(w);
		if (!gen) {
			wait_event_idle(w->kick, kthread_should_stop() || dwl_has_work(w));
			continue;
		}
		if (!gen->sealed)
			continue;
		err = dwl_write_back(w, gen);
		if (err == -EINTR)
			break;
		dwl_origin_health(w, err);
		delay = err ? min(2 * delay, DWL_RETRY_MOST) : DWL_RETRY_LEAST;
		if (err)
			wait_event_idle_timeout(w->kick, kthread_should_stop(), delay);
	}
	memalloc_noio_restore(noio);
	return 0;
}
