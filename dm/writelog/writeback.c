// SPDX-License-Identifier: GPL-2.0-only
/*
 * The worker: writes generations back, oldest first, one at a time.
 *
 * It begins when the log is fuller than the high mark and goes on to the low
 * mark; also for `flush`, for cleaner mode, when the index has grown too large,
 * and when a writer waits. It seals generations that their writers have left.
 *
 * A generation is freed only after all that was newest in it is durable on the
 * origin. While writers wait for room, the flush for one batch goes on beside the
 * writes of the next: room comes back bio by bio, and a flush would be a pause.
 * Index entries stay until the flush of their batch has ended, and generations
 * are freed in their order. If the origin refuses, everything stays where it is, readers find it in
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
	return w->draining || dwl_short(w) || READ_ONCE(w->flush_to) > w->freed_to ||
	       READ_ONCE(w->mode) == DWL_CLEANING;
}

/* The oldest that is not sealed, or not written. */
static struct dwl_gen *dwl_closed(struct dwl *w, bool unsealed)
{
	struct dwl_gen *gen, *found = NULL;

	mutex_lock(&w->gen_lock);
	list_for_each_entry(gen, &w->closed_gens, list) {
		if (unsealed ? gen->sealed : gen->written)
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
	u32 i;

	for (i = 0; i < w->nr_pieces; i++)
		live += (u64)w->pieces[i].sectors << WL_SECTOR_SHIFT;
	w->batch_credit = div64_u64(seen << 16, max(live, 1));
	if (seen > live)
		dwl_count(w, DWL_SUPERSEDED_SECTORS, (seen - live) >> WL_SECTOR_SHIFT);
	return live ? dwl_origin_write_pieces(w) : 0;
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

/* Nothing that was written is to be relied on: all is written again. */
static void dwl_forget_written(struct dwl *w)
{
	struct dwl_gen *gen;

	mutex_lock(&w->gen_lock);
	list_for_each_entry(gen, &w->closed_gens, list)
		gen->written = false;
	mutex_unlock(&w->gen_lock);
}

/* The oldest, if it has been written. */
static struct dwl_gen *dwl_oldest_written(struct dwl *w)
{
	struct dwl_gen *gen;

	mutex_lock(&w->gen_lock);
	gen = list_first_entry_or_null(&w->closed_gens, struct dwl_gen, list);
	mutex_unlock(&w->gen_lock);
	return gen && gen->written ? gen : NULL;
}

/* Waits for the flush that is on its way, if one is: what was written before it is done with. */
static int dwl_flush_end(struct dwl *w)
{
	struct dwl_gen *gen;
	int err;
	u32 i;

	if (w->flushing) {
		w->flushing = false;
		err = dwl_origin_flush_end(w);
		if (err) {
			dwl_forget_written(w);
			return err;
		}
		for (i = 0; i < w->nr_flushed_pieces; i++) {
			dwl_index_clear(w, &w->flushed_pieces[i]);
			cond_resched();
		}
	}
	while ((gen = dwl_oldest_written(w)))
		dwl_gen_free(w, gen);
	return 0;
}

/* A batch has been written. One flush at a time. */
static int dwl_flush_begin(struct dwl *w)
{
	int err = dwl_flush_end(w);

	if (err)
		return err;
	swap(w->pieces, w->flushed_pieces);
	w->nr_flushed_pieces = w->nr_pieces;
	dwl_origin_flush_begin(w);
	w->flushing = true;
	return 0;
}

/*
 * Everything of a generation to the origin. It is free when the last flush for
 * it has ended: on return, if nobody waits for room.
 */
static int dwl_write_back(struct dwl *w, struct dwl_gen *gen)
{
	struct dwl_place place = { };
	int err = 0;

	for (;;) {
		s64 seen = dwl_pieces_collect(w, gen, &place);

		if (seen < 0) {
			DMERR_LIMIT("%pg: a header of generation %llu is damaged: it stays in the log, and what is newer",
				    w->cache->bdev, gen->id);
			return seen;
		}
		if (!seen && !w->nr_pieces)
			break;
		err = dwl_write_batch(w, seen);
		if (!err && w->nr_pieces)
			err = dwl_flush_begin(w);
		trace_dwl_gen_written(w, gen->id, err);
		if (err)
			return err;
	}
	gen->written = true;
	if (w->flushing && dwl_short(w) && !w->failing_since)
		return 0;
	return dwl_flush_end(w);
}

/* Says once that writeback fails, and once that it no longer does. */
static void dwl_health_is(struct dwl *w, int err)
{
	unsigned long since = w->failing_since;

	if (err) {
		dwl_count(w, err == -EUCLEAN ? DWL_MEDIUM_ERRORS : DWL_ORIGIN_ERRORS, 1);
		WRITE_ONCE(w->write_errors, w->write_errors + 1);
		if (!since) {
			DMERR("%pg: cannot write back to origin %pg: %s: error %d; the data stay in the log, and it is tried again",
			      w->cache->bdev, w->origin->bdev,
			      err == -EUCLEAN ? "the log is damaged" : "it refuses", err);
			WRITE_ONCE(w->failing_since, jiffies | 1);
			dm_table_event(w->ti->table);
		} else if (!w->failed && time_after(jiffies, since + w->params.error_timeout * HZ)) {
			WRITE_ONCE(w->failed, true);
			DMERR("%pg: cannot be written back for %u seconds: once it is full, writes fail",
			      w->cache->bdev, w->params.error_timeout);
			dm_table_event(w->ti->table);
		}
	} else if (since) {
		DMINFO("%pg: is written back to origin %pg again", w->cache->bdev, w->origin->bdev);
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
	if (!gen && dwl_short(w))
		dwl_gen_close_current(w);
	return gen ? gen : dwl_closed(w, false);
}

/* May dwl_seal() or dwl_next() find something? Takes no lock: called while going to sleep. */
static bool dwl_has_work(struct dwl *w)
{
	if (READ_ONCE(w->nr_unsealed))
		return true;
	return dwl_wanted(w) && (!list_empty(&w->closed_gens) ||
				 (dwl_short(w) && READ_ONCE(w->current_gen)));
}

/* Suspended, or about to go? */
bool dwl_worker_leaves(void)
{
	return kthread_should_stop() || kthread_should_park();
}

/* Until it leaves. A generation that is half written then is written again. */
static void dwl_work(struct dwl *w)
{
	unsigned long delay = DWL_RETRY_LEAST;

	while (!dwl_worker_leaves()) {
		struct dwl_gen *gen;
		int err = 0, flush_err = 0;

		dwl_seal(w);
		gen = dwl_next(w);
		if (!gen && !w->flushing) {
			wait_event_idle(w->kick, dwl_worker_leaves() || dwl_has_work(w));
			continue;
		}
		if (gen && !gen->sealed)
			continue;
		if (gen)
			err = dwl_write_back(w, gen);
		if (!gen || err)
			flush_err = dwl_flush_end(w);
		if (err == -EINTR)
			break;
		err = err ?: flush_err;
		if (err == -ESTALE) {		/* what was damaged is left out now */
			dwl_count(w, DWL_MEDIUM_ERRORS, 1);
			continue;
		}
		dwl_health_is(w, err);
		delay = err ? min(2 * delay, DWL_RETRY_MOST) : DWL_RETRY_LEAST;
		if (err)
			wait_event_idle_timeout(w->kick, dwl_worker_leaves(), delay);
	}
	dwl_flush_end(w);
}

static int dwl_worker(void *data)
{
	unsigned int noio = memalloc_noio_save();

	while (!kthread_should_stop()) {
		if (kthread_should_park())
			kthread_parkme();
		else
			dwl_work(data);
	}
	memalloc_noio_restore(noio);
	return 0;
}

/*
 * For the constructor: making a thread takes memory, which may have to be written to
 * this very device first, so it can't be done at each resume.
 */
int dwl_worker_create(struct dwl *w)
{
	struct task_struct *worker = kthread_create(dwl_worker, w, "forebay-wlog/%pg", w->cache->bdev);
	int err;

	if (IS_ERR(worker))
		return PTR_ERR(worker);
	err = kthread_park(worker);
	if (err) {
		kthread_stop(worker);
		return err;
	}
	w->worker = worker;
	return 0;
}

/* The log is loaded. */
void dwl_worker_run(struct dwl *w)
{
	WRITE_ONCE(w->running, true);
	kthread_unpark(w->worker);
}

/* Returns when it has nothing below any more. */
void dwl_worker_park(struct dwl *w)
{
	kthread_park(w->worker);
	WRITE_ONCE(w->running, false);
}

void dwl_worker_destroy(struct dwl *w)
{
	if (w->worker)
		kthread_stop(w->worker);
}
