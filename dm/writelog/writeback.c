// SPDX-License-Identifier: GPL-2.0-only
/*
 * The worker: writes generations back, one at a time, the oldest first.
 *
 * Writeback begins when the log is fuller than the high mark, and goes on to the low mark. It also runs for
 * the message flush, for cleaner mode, when the index is too large, and when a writer waits. While writeback
 * fails, it runs to notice that the origin has recovered. The worker seals generations after their writers
 * have left.
 *
 * With each batch go blocks of younger generations that lie beside its blocks (neighbours.c).
 *
 * A generation is freed only after its newest blocks are durable on the origin. While writers wait for
 * space, the flush of a batch runs concurrently with the writes of the next one. Waiting for each flush
 * would pause the credit that writers get bio by bio. Index entries stay until their batch is flushed,
 * and generations are freed in order.
 *
 * Single blocks that the origin refuses are set aside (aside.c). If the origin refuses more, all data
 * stays in the log, where readers find it. The worker retries until it succeeds or the target is
 * destroyed.
 *
 * The worker is not freezable. Before the machine is suspended the kernel freezes all tasks, and a writer
 * that waits for space can be frozen only after it has got space.
 */
#include <linux/kthread.h>
#include <linux/sched/mm.h>

#include "space.h"
#include "trace.h"
#include "writeback.h"

#define DWL_RETRY_MIN		(HZ / 4)
#define DWL_RETRY_MAX		(4 * HZ)

/* True if closed generations shall be written back. */
static bool dwl_should_write_back(struct dwl *w)
{
	u32 level = dwl_space_level(w);

	if (level >= w->params.high_mark)
		w->draining = true;
	else if (level <= w->params.low_mark)
		w->draining = false;
	return w->draining || dwl_low_on_space(w) || READ_ONCE(w->flush_to) > w->freed_to ||
	       READ_ONCE(w->mode) == DWL_CLEANING || w->failing_since;
}

/* Returns the oldest closed generation that isn't sealed (@unsealed) or isn't written. */
static struct dwl_gen *dwl_oldest_closed(struct dwl *w, bool unsealed)
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

	while ((gen = dwl_oldest_closed(w, true))) {
		dwl_slots_wait(w, gen);
		mutex_lock(&w->gen_lock);
		wl_gen_seal(&w->wl, gen - w->gens, gen->id, atomic_read(&gen->seq));
		gen->sealed = true;
		WRITE_ONCE(w->nr_unsealed, w->nr_unsealed - 1);
		mutex_unlock(&w->gen_lock);
	}
}

static u64 dwl_batch_bytes(const struct dwl *w)
{
	u64 sectors = 0;
	u32 i;

	for (i = 0; i < w->nr_extents; i++)
		sectors += w->extents[i].sectors;
	return sectors << WL_SECTOR_SHIFT;
}

/* Counts what a batch didn't write because newer versions exist: @bytes, without those written along. */
static void dwl_count_superseded(struct dwl *w, struct dwl_gen *gen, u64 bytes)
{
	u64 along = min(bytes, gen->along);

	gen->along -= along;
	dwl_count(w, DWL_SUPERSEDED_SECTORS, (bytes - along) >> WL_SECTOR_SHIFT);
}

/* Writes w->extents, found in @seen bytes of the generation, and (@along) their neighbours. */
static int dwl_write_batch(struct dwl *w, struct dwl_gen *gen, u64 seen, bool along)
{
	u64 live = dwl_batch_bytes(w);
	int err = 0;

	if (along)
		dwl_neighbours_add(w, gen);
	w->batch_credit = div64_u64(seen << 16, max(dwl_batch_bytes(w), 1));
	/* A batch that fails with neighbours is repeated without them: what is damaged shows then. */
	if (live)
		err = dwl_origin_write_extents(w, !w->nr_along);
	if (err)
		return err;
	if (seen > live)
		dwl_count_superseded(w, gen, seen - live);
	dwl_neighbours_written(w, gen);
	return 0;
}

static void dwl_gen_free(struct dwl *w, struct dwl_gen *gen)
{
	/* Readers that found a block there have copied it after this. Writers may wait for the space. */
	synchronize_srcu_expedited(&w->srcu);
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

/* A flush has failed, so no earlier write is known to be durable: all are repeated. */
static void dwl_clear_written(struct dwl *w)
{
	struct dwl_gen *gen;

	mutex_lock(&w->gen_lock);
	list_for_each_entry(gen, &w->closed_gens, list)
		gen->written = false;
	mutex_unlock(&w->gen_lock);
}

/* Returns the oldest generation if it is written: completely, or (@aside) except for blocks set aside. */
static struct dwl_gen *dwl_oldest_written(struct dwl *w, bool aside)
{
	struct dwl_gen *gen;

	mutex_lock(&w->gen_lock);
	gen = list_first_entry_or_null(&w->closed_gens, struct dwl_gen, list);
	mutex_unlock(&w->gen_lock);
	return gen && gen->written && dwl_gen_has_aside(w, gen) == aside ? gen : NULL;
}

/* Waits for the flush in flight, if there is one, and frees what the flush made durable. */
static int dwl_flush_end(struct dwl *w)
{
	struct dwl_gen *gen;
	int err;
	u32 i;

	if (w->flushing) {
		w->flushing = false;
		err = dwl_origin_flush_end(w);
		if (err) {
			dwl_clear_written(w);
			return err;
		}
		for (i = 0; i < w->nr_flushed_extents; i++) {
			dwl_index_clear(w, &w->flushed_extents[i]);
			cond_resched();
		}
	}
	while ((gen = dwl_oldest_written(w, false)))
		dwl_gen_free(w, gen);
	return 0;
}

/* Begins the flush of a written batch. Only one flush is in flight at a time. */
static int dwl_flush_begin(struct dwl *w)
{
	int err = dwl_flush_end(w);

	if (err)
		return err;
	swap(w->extents, w->flushed_extents);
	w->nr_flushed_extents = w->nr_extents;
	dwl_origin_flush_begin(w);
	w->flushing = true;
	return 0;
}

/*
 * Writes a generation to the origin. The generation is freed after its last flush: before this function
 * returns, unless writers wait for space.
 */
static int dwl_write_back(struct dwl *w, struct dwl_gen *gen)
{
	bool along = !w->failing_since && !w->aside.nr;
	struct dwl_cursor cursor = { };
	int err = 0;

	for (;;) {
		struct dwl_cursor before = cursor;
		s64 seen = dwl_extents_collect(w, gen, &cursor);

		if (seen < 0) {
			DMERR_LIMIT("%pg: a header of generation %llu is damaged: it stays in the log, and what is newer",
				    w->log->bdev, gen->id);
			return seen;
		}
		if (!seen && !w->nr_extents)
			break;
		err = dwl_write_batch(w, gen, seen, along);
		if (err && err != -EINTR && w->nr_along) {	/* again, without neighbours */
			along = false;
			cursor = before;
			continue;
		}
		if (err) {
			err = dwl_aside_find(w, err);
			if (!err) {				/* again, without refused blocks */
				cursor = before;
				continue;
			}
		}
		if (!err && w->nr_extents)
			err = dwl_flush_begin(w);
		trace_dwl_gen_written(w, gen->id, err);
		if (err)
			return err;
	}
	gen->written = true;
	if (w->flushing && dwl_low_on_space(w) && !w->failing_since)
		return 0;
	return dwl_flush_end(w);
}

static const char *dwl_why_failed(int err)
{
	switch (err) {
	case -EUCLEAN:
		return "the log is damaged";
	case -EXFULL:
		return "the log has no space for blocks that it refuses";
	default:
		return "it refuses";
	}
}

/* Reports once that writeback fails, and once that it has recovered. */
static void dwl_report_health(struct dwl *w, int err)
{
	unsigned long since = w->failing_since;

	if (err) {
		dwl_count_error(w, err);
		WRITE_ONCE(w->write_errors, w->write_errors + 1);
		if (!since) {
			DMERR("%pg: cannot write back to origin %pg: %s: error %d; the data stay in the log, and it is tried again",
			      w->log->bdev, w->origin->bdev, dwl_why_failed(err), err);
			WRITE_ONCE(w->failing_since, jiffies | 1);
			dm_table_event(w->ti->table);
		} else if (!w->failed && time_after(jiffies, since + w->params.error_timeout * HZ)) {
			WRITE_ONCE(w->failed, true);
			DMERR("%pg: cannot be written back for %u seconds: once it is full, writes fail",
			      w->log->bdev, w->params.error_timeout);
			dm_table_event(w->ti->table);
		}
	} else if (since) {
		DMINFO("%pg: is written back to origin %pg again", w->log->bdev, w->origin->bdev);
		WRITE_ONCE(w->failing_since, 0);
		WRITE_ONCE(w->failed, false);
		dm_table_event(w->ti->table);
	} else {
		return;
	}
	dwl_space_update(w);
	wake_up_all(&w->gen_freed);
}

/* Returns the next generation to write back. */
static struct dwl_gen *dwl_next_gen(struct dwl *w)
{
	struct dwl_gen *gen;

	if (!dwl_should_write_back(w))
		return NULL;
	gen = dwl_oldest_closed(w, false);
	/* The index is too large, and all its blocks are in the current generation. */
	if (!gen && dwl_low_on_space(w))
		dwl_gen_close_current(w);
	return gen ? gen : dwl_oldest_closed(w, false);
}

/* Retries or moves the blocks that are set aside. */
static int dwl_handle_aside(struct dwl *w)
{
	struct dwl_gen *gen;
	int err;

	if (!w->aside.nr)
		return 0;
	gen = dwl_oldest_written(w, true);
	/* A written generation may have kept a block that was overwritten or discarded since: it is freed. */
	if (!gen && !dwl_aside_due(w))
		return w->flushing ? 0 : dwl_flush_end(w);
	err = dwl_flush_end(w);
	if (!err)
		err = dwl_aside_retry(w, gen);
	return err ? err : dwl_flush_end(w);
}

/* True if the log has nothing that could show whether the origin still fails. */
static bool dwl_nothing_to_try(const struct dwl *w)
{
	return list_empty(&w->closed_gens) && !w->aside.nr;
}

/*
 * True if there may be a generation to seal or to write back, or a direct write to complete. Takes no
 * lock: it is the condition of a wait.
 */
static bool dwl_has_work(struct dwl *w)
{
	if (READ_ONCE(w->nr_unsealed) || !bio_list_empty(&w->direct))
		return true;
	return dwl_should_write_back(w) && (!list_empty(&w->closed_gens) ||
				 (dwl_low_on_space(w) && READ_ONCE(w->current_gen)));
}

/* True if the worker is to be parked or stopped. */
bool dwl_worker_must_stop(void)
{
	return kthread_should_stop() || kthread_should_park();
}

/* Runs until the worker must stop. A half-written generation is written again later. */
static void dwl_work(struct dwl *w)
{
	unsigned long delay = DWL_RETRY_MIN;

	while (!dwl_worker_must_stop()) {
		struct dwl_gen *gen;
		int err = 0, flush_err = 0;

		dwl_direct_complete(w);
		dwl_seal(w);
		err = dwl_handle_aside(w);
		gen = err ? NULL : dwl_next_gen(w);
		if (!err && !gen && !w->flushing) {
			if (w->failing_since && dwl_nothing_to_try(w))
				dwl_report_health(w, 0);
			wait_event_idle_timeout(w->kick, dwl_worker_must_stop() || dwl_has_work(w),
						w->aside.nr ? DWL_ASIDE_RETRY : MAX_SCHEDULE_TIMEOUT);
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
		if (err == -ESTALE) {		/* the damaged blocks are left out now */
			dwl_count_error(w, err);
			continue;
		}
		dwl_report_health(w, err);
		delay = err ? min(2 * delay, DWL_RETRY_MAX) : DWL_RETRY_MIN;
		if (err)
			wait_event_idle_timeout(w->kick, dwl_worker_must_stop(), delay);
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
 * Creates the parked worker, in the constructor. A resume can't do that: creating a thread needs
 * memory, and freeing memory may need a write to this device.
 */
int dwl_worker_create(struct dwl *w)
{
	struct task_struct *worker = kthread_create(dwl_worker, w, "forebay-wlog/%pg", w->log->bdev);
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

/* Starts the worker; the log is loaded. */
void dwl_worker_run(struct dwl *w)
{
	WRITE_ONCE(w->running, true);
	kthread_unpark(w->worker);
}

/* Stops the worker. On return it has nothing in flight. */
void dwl_worker_park(struct dwl *w)
{
	kthread_park(w->worker);
	WRITE_ONCE(w->running, false);
}

void dwl_worker_destroy(struct dwl *w)
{
	if (w->worker)
		kthread_stop(w->worker);
	if (w->aside.nr)
		DMWARN("%pg: keeps %u blocks that origin %pg has refused", w->log->bdev, w->aside.nr,
		       w->origin->bdev);
}
