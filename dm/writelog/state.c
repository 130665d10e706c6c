// SPDX-License-Identifier: GPL-2.0-only
/*
 * Life of a target: resume loads the log and starts the worker, suspend stops
 * it; flush; cleaner mode.
 *
 * The log itself is opened for writing, and replayed, when the table is resumed
 * for the first time and not when it is loaded: until then another table of the
 * same device may be at work on it. Once suspended, a table whose place was
 * taken never runs again (device-mapper destroys it).
 */
#include <linux/sched/mm.h>

#include "writelog.h"

static int dwl_alloc(struct dwl *w)
{
	u64 blocks_a_gen = w->gen_bytes >> (w->block_shift + WL_SECTOR_SHIFT);
	u32 i;

	w->gens = kvcalloc(w->wl.nr_gens, sizeof(*w->gens), GFP_KERNEL);
	w->slots = kvcalloc(w->params.slots, sizeof(*w->slots), GFP_KERNEL);
	w->max_pieces = clamp(blocks_a_gen, 1024, 65536);
	w->pieces = kvcalloc(w->max_pieces, sizeof(*w->pieces), GFP_KERNEL);
	w->flushed_pieces = kvcalloc(w->max_pieces, sizeof(*w->pieces), GFP_KERNEL);
	if (!w->gens || !w->slots || !w->pieces || !w->flushed_pieces)
		return -ENOMEM;
	for (i = 0; i < w->params.slots; i++)
		mutex_init(&w->slots[i].lock);
	return dwl_index_init(w);
}

/* What dwl_alloc() and dwl_replay() have made; also if they failed. */
void dwl_free_state(struct dwl *w)
{
	dwl_index_destroy(w);
	kvfree(w->gens);
	kvfree(w->slots);
	kvfree(w->pieces);
	kvfree(w->flushed_pieces);
	w->gens = NULL;
	w->slots = NULL;
	w->pieces = NULL;
	w->flushed_pieces = NULL;
}

static int dwl_load(struct dwl *w)
{
	int err = dwl_device_load(w);

	if (!err)
		err = dwl_alloc(w);
	if (!err)
		err = dwl_replay(w);
	if (err) {
		dwl_free_state(w);
		return err;
	}
	dwl_device_bind(w);
	w->loaded = true;
	dwl_space_update(w);
	return 0;
}

int dwl_preresume(struct dm_target *ti)
{
	struct dwl *w = ti->private;
	unsigned int noio;
	int err;

	if (!w->loaded) {
		/* Who writes to free memory for us may wait for this very device. */
		noio = memalloc_noio_save();
		err = dwl_load(w);
		memalloc_noio_restore(noio);
		if (err)
			return err;
	}
	dwl_presuspend_undo(ti);
	if (!w->running)
		dwl_worker_run(w);
	return 0;
}

/* Whoever flushes has the table, and the suspend holds all bios up until he has it no longer. */
void dwl_presuspend(struct dm_target *ti)
{
	struct dwl *w = ti->private;

	WRITE_ONCE(w->leaving, true);
	wake_up_all(&w->gen_freed);
}

void dwl_presuspend_undo(struct dm_target *ti)
{
	struct dwl *w = ti->private;

	WRITE_ONCE(w->leaving, false);
}

/* No bio is in flight any more. */
void dwl_postsuspend(struct dm_target *ti)
{
	struct dwl *w = ti->private;

	if (w->running)
		dwl_worker_park(w);
}

/* Everything that is in the log now; -EIO if the origin refuses, -EBUSY if suspended meanwhile. */
int dwl_flush(struct dwl *w)
{
	u32 errors_before;
	u64 to;
	int err;

	if (!READ_ONCE(w->running) || READ_ONCE(w->leaving))
		return -EBUSY;
	to = dwl_gen_close_current(w);
	errors_before = READ_ONCE(w->write_errors);
	mutex_lock(&w->gen_lock);
	WRITE_ONCE(w->flush_to, max(w->flush_to, to));
	mutex_unlock(&w->gen_lock);
	wake_up(&w->kick);
	err = wait_event_interruptible(w->gen_freed, READ_ONCE(w->freed_to) >= to || READ_ONCE(w->leaving) ||
				       READ_ONCE(w->write_errors) != errors_before);
	if (err || READ_ONCE(w->freed_to) >= to)
		return err;
	return READ_ONCE(w->leaving) ? -EBUSY : -EIO;
}

/* All that is in the log, and when that is nearly all, what comes meanwhile: writers are held up for it. */
static int dwl_empty(struct dwl *w)
{
	int err = dwl_flush(w);

	if (err)
		return err;
	dwl_space_shut(w, true);
	dwl_slots_leave(w, NULL);
	return dwl_flush(w);
}

/*
 * Writers are let in again in either case, as the mode says. Caller holds clean_lock: nobody else
 * may believe that they are out.
 */
static int dwl_become_cleaner(struct dwl *w)
{
	int err;

	if (w->mode == DWL_CLEANER)
		return 0;
	WRITE_ONCE(w->mode, DWL_CLEANING);
	err = dwl_empty(w);
	WRITE_ONCE(w->mode, err ? DWL_CACHING : DWL_CLEANER);
	dwl_space_shut(w, false);
	return err;
}

/**
 * dwl_clean() - write everything back, and log nothing any more
 * @w: the target
 *
 * Most is written while writers go on. Then they are held up, those that are in
 * the log are waited for, the rest is written; from then on the log is empty, and
 * writes go to the origin. To log a block again, load the table again. If it fails,
 * writes are logged as before.
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
