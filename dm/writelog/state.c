// SPDX-License-Identifier: GPL-2.0-only
/*
 * A target's life: resume loads the log and starts the worker, suspend stops the worker. Message flush,
 * and cleaner mode.
 *
 * The log is opened for writing and replayed at the table's first resume, not when the table is loaded.
 * Until then another table of the mapped device may be using the log. A suspended table that was replaced
 * never runs again; device-mapper destroys it.
 */
#include <linux/delay.h>
#include <linux/sched/mm.h>

#include "space.h"
#include "writeback.h"

static int dwl_alloc(struct dwl *w)
{
	u64 blocks_a_gen = w->gen_bytes >> (w->block_shift + WL_SECTOR_SHIFT);
	u32 i;

	w->gens = kvcalloc(w->wl.nr_gens, sizeof(*w->gens), GFP_KERNEL);
	w->slots = kvcalloc(w->params.slots, sizeof(*w->slots), GFP_KERNEL);
	w->max_extents = clamp(blocks_a_gen, 1024, 65536);
	w->extents = kvcalloc(2 * w->max_extents, sizeof(*w->extents), GFP_KERNEL);
	w->flushed_extents = kvcalloc(2 * w->max_extents, sizeof(*w->extents), GFP_KERNEL);
	if (!w->gens || !w->slots || !w->extents || !w->flushed_extents)
		return -ENOMEM;
	for (i = 0; i < w->params.slots; i++)
		mutex_init(&w->slots[i].lock);
	return dwl_index_init(w);
}

/* Frees what dwl_alloc() and dwl_replay() have made, also after their failure. */
void dwl_free_state(struct dwl *w)
{
	dwl_index_destroy(w);
	kvfree(w->gens);
	kvfree(w->slots);
	kvfree(w->extents);
	kvfree(w->flushed_extents);
	w->gens = NULL;
	w->slots = NULL;
	w->extents = NULL;
	w->flushed_extents = NULL;
}

static int dwl_load(struct dwl *w)
{
	int err = dwl_device_load(w);

	if (!err)
		err = dwl_alloc(w);
	if (!err)
		err = dwl_replay(w);
	if (!err)
		err = dwl_fp_check(w);
	if (err) {
		dwl_free_state(w);
		return err;
	}
	dwl_device_bind(w);
	dwl_fp_begin(w, true);
	w->loaded = true;
	dwl_space_update(w);
	return 0;
}

int dwl_preresume(struct dm_target *ti)
{
	struct dwl *w = ti->private;
	/* A task that writes pages to free memory may wait for this very device. */
	unsigned int noio = memalloc_noio_save();
	int err = 0;

	if (!w->loaded)
		err = dwl_load(w);
	else if (!w->running)
		dwl_fp_begin(w, false);
	memalloc_noio_restore(noio);
	if (err)
		return err;
	dwl_presuspend_undo(ti);
	if (!w->running)
		dwl_worker_run(w);
	return 0;
}

/*
 * Ends message flush: its task uses the table, and suspend holds up all bios until that use ends. If bios
 * may be requeued, the waits of writers end, too.
 */
void dwl_presuspend(struct dm_target *ti)
{
	struct dwl *w = ti->private;

	WRITE_ONCE(w->suspending, true);
	dwl_space_requeue(w, dm_noflush_suspending(ti));
}

void dwl_presuspend_undo(struct dm_target *ti)
{
	struct dwl *w = ti->private;

	WRITE_ONCE(w->suspending, false);
	dwl_space_requeue(w, false);
}

/* Context: device-mapper; no bio is in flight. */
void dwl_postsuspend(struct dm_target *ti)
{
	struct dwl *w = ti->private;

	if (!w->running)
		return;
	dwl_worker_park(w);
	dwl_fp_end(w);
}

/* On purpose: the cleaner's last flush ends when a test sends message latency on. */
#ifdef FB_BREAK_SLOW_STORE
static void dwl_break_slow_flush(struct dwl *w)
{
	unsigned long end = jiffies + 60 * HZ;

	while (READ_ONCE(w->space.blocked) && !READ_ONCE(w->latency) && !READ_ONCE(w->suspending) &&
	       time_before(jiffies, end))
		msleep(20);
}
#else
static void dwl_break_slow_flush(struct dwl *w) { }
#endif

/*
 * Message flush: writes everything back that is in the log now. -EIO: the origin refuses; -EBUSY:
 * suspended.
 */
int dwl_flush(struct dwl *w)
{
	u32 errors_before;
	u64 to;
	int err;

	if (!READ_ONCE(w->running) || READ_ONCE(w->suspending))
		return -EBUSY;
	to = dwl_gen_close_current(w);
	errors_before = READ_ONCE(w->write_errors);
	mutex_lock(&w->gen_lock);
	WRITE_ONCE(w->flush_to, max(w->flush_to, to));
	mutex_unlock(&w->gen_lock);
	wake_up(&w->kick);
	err = wait_event_interruptible(w->gen_freed, READ_ONCE(w->freed_to) >= to ||
				       READ_ONCE(w->suspending) ||
				       READ_ONCE(w->write_errors) != errors_before);
	if (err)
		return err;
	dwl_break_slow_flush(w);
	if (READ_ONCE(w->freed_to) >= to) {
		u32 refused = READ_ONCE(w->aside.nr);

		if (refused)
			DMERR("%pg: %u blocks that origin %pg refuses are left in the log", w->log->bdev,
			      refused, w->origin->bdev);
		return refused ? -EIO : 0;
	}
	return READ_ONCE(w->suspending) ? -EBUSY : -EIO;
}

static bool dwl_all_free(struct dwl *w)
{
	bool all_free;

	mutex_lock(&w->gen_lock);
	all_free = !w->current_gen && list_empty(&w->closed_gens);
	mutex_unlock(&w->gen_lock);
	return all_free;
}

/*
 * Writes everything back: most of it while writers go on, the rest with writers blocked. During a flush
 * the worker may append a refused block again, and write it soon after (aside.c). Such a flush succeeds,
 * and leaves the log with a generation, which the next flush frees.
 */
static int dwl_write_back_all(struct dwl *w)
{
	int err = dwl_flush(w);

	if (err)
		return err;
	dwl_space_block(w, true);
	dwl_slots_wait(w, NULL);
	err = dwl_flush(w);
	if (!err && !dwl_all_free(w))
		err = dwl_flush(w);
	return err || dwl_all_free(w) ? err : -EIO;
}

/* Lets writers in again in either case, as the new mode says. */
static int dwl_become_cleaner(struct dwl *w)
{
	int err;

	lockdep_assert_held(&w->clean_lock);
	if (w->mode == DWL_CLEANER)
		return 0;
	WRITE_ONCE(w->mode, DWL_CLEANING);
	err = dwl_write_back_all(w);
	WRITE_ONCE(w->mode, err ? DWL_CACHING : DWL_CLEANER);
	dwl_space_block(w, false);
	return err;
}

/**
 * dwl_clean() - write everything back, and stop logging
 * @w: the target
 *
 * First, writers continue. Then new writers are blocked, and present writers finish. When the rest is
 * written, the log is empty, and writes go to the origin. Loading the table again starts logging again.
 * After an error, writes are logged as before.
 *
 * Context: Task (message). Sleeps.
 * Return: 0 or a negative errno.
 */
int dwl_clean(struct dwl *w)
{
	int err = mutex_lock_interruptible(&w->clean_lock);

	if (err)
		return err;
	err = dwl_become_cleaner(w);
	mutex_unlock(&w->clean_lock);
	return err;
}
