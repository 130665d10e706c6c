// SPDX-License-Identifier: GPL-2.0-only
/*
 * Space in the log: writers wait in order when little is left.
 *
 * Space is freed a generation at a time, which is a burst. To keep bursts from writers, the last fifth
 * of the generations is a reserve. While writers use the reserve (throttled), each writer needs credit
 * for its bytes. Credit grows with each bio of writeback. Credit spent before the generation is freed
 * uses up the reserve. Writers are served in the order of their arrival.
 *
 * If the reserve is used up nevertheless, a writer that needs a generation waits until one is freed:
 * dwl_space_wait_gen(). The last generation is never given to writers: aside.c. A full log fails writes
 * if its origin has refused them for longer than error_timeout.
 *
 * A generation that the medium can't hold is neither free nor in use. An empty log throttles no writer,
 * however few generations it has left: no writeback would give credit. If no generation will be free for
 * writers any more, writers get an error when they need one.
 *
 * Before a suspend without flush (dmsetup suspend --noflush), all writers that wait give their bios back to
 * device-mapper, which submits them again after the resume. Otherwise that suspend would wait for them, and
 * they for an origin that may have failed for good. A table with another origin could not replace it.
 */
#include "space.h"
#include "trace.h"

struct dwl_waiter {
	struct list_head list;
	struct task_struct *task;
	u64 bytes;
	bool served;
	int err;
};

/* Number of generations in the reserve. */
static u32 dwl_reserve(const struct dwl *w)
{
	return w->wl.nr_gens > 2 ? max(dwl_gens_usable(w) / 5, 1) : 0;
}

/* How full the log is, in percent. */
u32 dwl_space_level(const struct dwl *w)
{
	return dwl_gens_used(w) * 100 / max(dwl_gens_usable(w), 1);
}

/* Serves waiters in order, while there is credit. */
static void dwl_space_serve(struct dwl *w)
{
	struct dwl_space *s = &w->space;

	lockdep_assert_held(&w->space.lock);
	while (!list_empty(&s->waiters) && (!s->blocked || w->requeuing)) {
		struct dwl_waiter *first = list_first_entry(&s->waiters, struct dwl_waiter, list);
		struct task_struct *task = first->task;

		if (w->requeuing) {
			first->err = -ECANCELED;
		} else if (s->throttled) {
			if (s->credit <= 0 && !w->failed)
				return;
			first->err = s->credit <= 0 ? -EIO : 0;
			if (!first->err)
				s->credit -= first->bytes;
		}
		list_del(&first->list);
		get_task_struct(task);
		/*
		 * @first is on the waiter's stack, and may be gone after this store. Pairs with
		 * dwl_space_queue().
		 */
		smp_store_release(&first->served, true);
		wake_up_process(task);
		put_task_struct(task);
	}
}

static int dwl_space_queue(struct dwl *w, u64 bytes, bool nowait)
{
	struct dwl_space *s = &w->space;
	struct dwl_waiter me = { .task = current, .bytes = bytes };
	unsigned long flags;
	bool would_wait;

	spin_lock_irqsave(&s->lock, flags);
	list_add_tail(&me.list, &s->waiters);
	dwl_space_serve(w);
	would_wait = !me.served;
	if (would_wait && nowait)
		list_del(&me.list);
	spin_unlock_irqrestore(&s->lock, flags);
	if (!would_wait)
		return me.err;
	if (nowait)
		return -EAGAIN;
	dwl_count(w, DWL_SPACE_WAITS, 1);
	trace_dwl_wait(w, bytes);
	for (;;) {
		set_current_state(TASK_UNINTERRUPTIBLE);
		/* Pairs with smp_store_release() in dwl_space_serve(): ->err is set. */
		if (smp_load_acquire(&me.served))
			break;
		io_schedule();
	}
	__set_current_state(TASK_RUNNING);
	return me.err;
}

/**
 * dwl_space_enter() - wait until bytes may be appended
 * @w: the target
 * @bytes: of data
 * @nowait: fail instead of sleeping
 *
 * Context: Task, no locks held. Sleeps unless @nowait.
 * Return: 0; -EAGAIN: @nowait; -EIO: the log is full and the origin fails; -ECANCELED: the bio is to be
 * requeued.
 */
int dwl_space_enter(struct dwl *w, u64 bytes, bool nowait)
{
	u64 start_ns;
	int err;

	if (likely(!READ_ONCE(w->space.throttled) && !READ_ONCE(w->space.blocked)))
		return 0;
	start_ns = dwl_now(w);
	err = dwl_space_queue(w, bytes, nowait);
	dwl_latency(w, DWL_PHASE_SPACE, start_ns);
	return err;
}

/*
 * Waits until writers may open a generation. -EIO: they can't, and shall not wait. -ECANCELED: the bio is to
 * be requeued.
 */
int dwl_space_wait_gen(struct dwl *w)
{
	dwl_count(w, DWL_FULL_WAITS, 1);
	wait_event(w->gen_freed, dwl_free_for_writers(w) || READ_ONCE(w->failed) || dwl_gens_exhausted(w) ||
		   READ_ONCE(w->requeuing));
	if (dwl_free_for_writers(w))
		return 0;
	if (READ_ONCE(w->requeuing))
		return -ECANCELED;
	/* Another writer may have taken the generation that ended the wait: the caller tries again. */
	return READ_ONCE(w->failed) || dwl_gens_exhausted(w) ? -EIO : 0;
}

/* Adds credit for bytes written back. Context: Any, interrupts too. */
void dwl_space_credit(struct dwl *w, u64 bytes)
{
	struct dwl_space *s = &w->space;
	unsigned long flags;

	if (!READ_ONCE(s->throttled))
		return;
	spin_lock_irqsave(&s->lock, flags);
	s->credit = min_t(s64, s->credit + bytes, w->gen_bytes);
	dwl_space_serve(w);
	spin_unlock_irqrestore(&s->lock, flags);
}

/**
 * dwl_space_update() - adapt to a new number of free generations or regions, or to w->failed
 * @w: the target
 *
 * Context: Any.
 */
void dwl_space_update(struct dwl *w)
{
	struct dwl_space *s = &w->space;
	unsigned long flags;

	spin_lock_irqsave(&s->lock, flags);
	/*
	 * Only writeback gives credit, so an empty log must not throttle writers: neither because it has
	 * few generations, nor because of lost blocks, which have regions, too.
	 */
	WRITE_ONCE(s->throttled, dwl_gens_used(w) &&
		   (w->nr_free <= dwl_reserve(w) || atomic_long_read(&w->nr_regions) >= w->max_regions));
	if (!s->throttled)
		s->credit = 0;
	/* No credit will come for a while: writers may use the log's space, but no more DRAM. */
	else if (w->failing_since && atomic_long_read(&w->nr_regions) < w->max_regions)
		s->credit = (s64)dwl_free_for_writers(w) * w->gen_bytes;
	dwl_space_serve(w);
	spin_unlock_irqrestore(&s->lock, flags);
	if (dwl_low_on_space(w) || dwl_space_level(w) >= w->params.high_mark)
		wake_up(&w->kick);
}

/**
 * dwl_gen_broken() - the medium can't hold a generation, which is not in the list of free ones any more
 * @w: the target
 *
 * Context: Under w->gen_lock.
 */
void dwl_gen_broken(struct dwl *w)
{
	lockdep_assert_held(&w->gen_lock);
	/* After nr_free was decremented. Pairs with smp_load_acquire() in dwl_gens_usable(). */
	smp_store_release(&w->nr_broken, w->nr_broken + 1);
	dwl_count(w, DWL_MEDIUM_ERRORS, 1);
	if (dwl_gens_usable(w) == dwl_gens_kept(w)) {
		DMERR("%pg: the medium can't hold any other generation: writes fail; what is in the log is written back",
		      w->log->bdev);
		dm_table_event(w->ti->table);
		wake_up_all(&w->gen_freed);
	}
	dwl_space_update(w);
}

/* Changes one of the flags that decide which writers wait, and serves those that wait already. */
static void dwl_space_set(struct dwl *w, bool *flag, bool value)
{
	struct dwl_space *s = &w->space;
	unsigned long flags;

	spin_lock_irqsave(&s->lock, flags);
	WRITE_ONCE(*flag, value);
	dwl_space_serve(w);
	spin_unlock_irqrestore(&s->lock, flags);
}

/* Sends writers that wait, and those that would, back to device-mapper; or lets them wait again. */
void dwl_space_requeue(struct dwl *w, bool requeue)
{
	dwl_space_set(w, &w->requeuing, requeue);
	wake_up_all(&w->gen_freed);
}

/* Makes all new writers wait, or lets them pass again. */
void dwl_space_block(struct dwl *w, bool blocked)
{
	dwl_space_set(w, &w->space.blocked, blocked);
}
