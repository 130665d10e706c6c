// SPDX-License-Identifier: GPL-2.0-only
/*
 * Room in the log: who finds little left waits in line.
 *
 * Space comes back a generation at a time, which is a burst. So that writers
 * see none, the last fifth of the generations is a reserve: while writers live
 * off it (throttled) each needs credit for its bytes, and credit comes as
 * writeback progresses, bio by bio. What is spent ahead of the generation's end
 * comes out of the reserve. Writers are served in the order they came.
 *
 * Should the reserve be used up nevertheless, who needs a generation waits for
 * one to be freed: dwl_space_wait_gen(). A full log whose origin refuses writes
 * for longer than error_timeout refuses them too.
 */
#include "trace.h"

struct dwl_waiter {
	struct list_head list;
	struct task_struct *task;
	u64 bytes;
	bool served;
	int err;
};

/* Generations that only throttled writers use. */
static u32 dwl_reserve(const struct dwl *w)
{
	return w->wl.nr_gens > 2 ? max(w->wl.nr_gens / 5, 1) : 0;
}

/* How full the log is, in percent. */
u32 dwl_space_level(const struct dwl *w)
{
	return (w->wl.nr_gens - READ_ONCE(w->nr_free)) * 100 / w->wl.nr_gens;
}

/* Caller holds space.lock. */
static void dwl_space_serve(struct dwl *w)
{
	struct dwl_space *s = &w->space;

	while (!list_empty(&s->waiters) && !s->shut) {
		struct dwl_waiter *first = list_first_entry(&s->waiters, struct dwl_waiter, list);
		struct task_struct *task = first->task;

		if (s->throttled) {
			if (s->credit <= 0 && !w->failed)
				return;
			first->err = s->credit <= 0 ? -EIO : 0;
			if (!first->err)
				s->credit -= first->bytes;
		}
		list_del(&first->list);
		get_task_struct(task);
		/* With this, @first may be gone: it is on the waiter's stack, see dwl_space_line_up(). */
		smp_store_release(&first->served, true);
		wake_up_process(task);
		put_task_struct(task);
	}
}

static int dwl_space_line_up(struct dwl *w, u64 bytes, bool nowait)
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
		/* Pairs with dwl_space_serve(): err is set. */
		if (smp_load_acquire(&me.served))
			break;
		io_schedule();
	}
	__set_current_state(TASK_RUNNING);
	return me.err;
}

/**
 * dwl_space_enter() - may so much be appended?
 * @w: the target
 * @bytes: of data
 * @nowait: don't wait
 *
 * Return: 0, when it may; -EAGAIN; -EIO: the log is full and the origin failing.
 */
int dwl_space_enter(struct dwl *w, u64 bytes, bool nowait)
{
	u64 began;
	int err;

	if (likely(!READ_ONCE(w->space.throttled) && !READ_ONCE(w->space.shut)))
		return 0;
	began = dwl_now(w);
	err = dwl_space_line_up(w, bytes, nowait);
	dwl_latency(w, DWL_PHASE_SPACE, began);
	return err;
}

/* Waits until a generation can be had. */
int dwl_space_wait_gen(struct dwl *w)
{
	dwl_count(w, DWL_FULL_WAITS, 1);
	wait_event(w->gen_freed, READ_ONCE(w->nr_free) || READ_ONCE(w->failed));
	return READ_ONCE(w->nr_free) ? 0 : -EIO;
}

/* So much has been written back. From interrupts, too. */
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

/* The number of free generations, or of regions, or w->failed has changed. */
void dwl_space_update(struct dwl *w)
{
	struct dwl_space *s = &w->space;
	unsigned long flags;

	spin_lock_irqsave(&s->lock, flags);
	/* Lost blocks have regions, too: an index that is too large for them alone is no reason to wait. */
	WRITE_ONCE(s->throttled, w->nr_free <= dwl_reserve(w) ||
		   (w->nr_free < w->wl.nr_gens && atomic_long_read(&w->nr_regions) >= w->max_regions));
	if (!s->throttled)
		s->credit = 0;
	/* Nothing comes back for a while: writers may have what there is in the log, but not in DRAM. */
	else if (w->failing_since && atomic_long_read(&w->nr_regions) < w->max_regions)
		s->credit = (s64)w->nr_free * w->gen_bytes;
	dwl_space_serve(w);
	spin_unlock_irqrestore(&s->lock, flags);
	if (dwl_short(w) || dwl_space_level(w) >= w->params.high_mark)
		wake_up(&w->kick);
}

/* Lets nobody pass, or again. */
void dwl_space_shut(struct dwl *w, bool shut)
{
	struct dwl_space *s = &w->space;
	unsigned long flags;

	spin_lock_irqsave(&s->lock, flags);
	WRITE_ONCE(s->shut, shut);
	dwl_space_serve(w);
	spin_unlock_irqrestore(&s->lock, flags);
}
