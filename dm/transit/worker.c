// SPDX-License-Identifier: GPL-2.0-only
/*
 * Workers: taking sets from the ready list, and sleeping when the list is empty.
 *
 * A wakeup costs the writer more than writing the block to its slot. With eager eviction the next block
 * follows at once, if any does. So the last running worker doesn't sleep at once when the list is
 * empty:
 *
 * - After dtc_expedite(), when there was a flush or a writer waited for a slot, the worker polls for
 *   DTC_POLL_NS. Idle workers do so DTC_POLLS times. Where a flush follows each write, the next flush
 *   then finds nothing to wait for.
 * - Otherwise no task waits for the next block, and the worker does a timed wait of DTC_TIMED_WAIT_NS.
 *   A timer wakes the worker, not a writer, and several sets are ready then. A polling worker competes
 *   with the writer for CPU time; a sleeping worker does not. dtc_expedite() ends the timed wait if the
 *   list has sets. A set that is added after that, because its slot was still pending, waits for the
 *   timer: DTC_TIMED_WAIT_NS plus the timer's slack at most.
 *
 * A worker wakes another one when its backlog exceeds DTC_MAX_BACKLOG or DTC_MAX_BACKLOG_EXPEDITED
 * sets. ready.c says how a sleeping worker and a writer don't miss each other.
 *
 * The workqueues are not freezable: before the machine is suspended, writers that wait for a slot can be
 * frozen only after they have got one.
 *
 * Uses ready.c and evict.c.
 */
#include <linux/mutex.h>
#include <linux/sched.h>

#include "transit.h"

/* Both in nanoseconds. */
#define DTC_POLL_NS	(50 * NSEC_PER_USEC)
#define DTC_TIMED_WAIT_NS		(100 * NSEC_PER_USEC)

/*
 * Polls the ready list. Other tasks get the CPU by cond_resched(), but the worker stays runnable. If the
 * worker slept on the writer's CPU, each new block would wake it there again.
 */
static void dtc_busy_poll(struct dtc *t)
{
	u64 end = ktime_get_ns() + DTC_POLL_NS;

	while (num_online_cpus() > 1 && !dtc_ready_any(t) && ktime_get_ns() < end)
		if (!cond_resched())
			cpu_relax();
}

/* Waits a moment for more sets. Only the last running worker does so. True: the list has sets. */
static bool dtc_idle_poll(struct dtc *t)
{
	u32 polls = READ_ONCE(t->ready.polls);

	if (hweight_long(READ_ONCE(t->awake)) > 1 || dtc_ready_any(t))
		return dtc_ready_any(t);
	if (polls) {
		WRITE_ONCE(t->ready.polls, polls - 1);
		dtc_busy_poll(t);
	} else {
		wait_event_interruptible_hrtimeout(t->ready.timed_wait, READ_ONCE(t->ready.polls),
						   ns_to_ktime(DTC_TIMED_WAIT_NS));
	}
	return dtc_ready_any(t);
}

static void dtc_work(struct work_struct *work)
{
	struct dtc_worker *worker = container_of(work, struct dtc_worker, work);
	struct dtc *t = worker->t;
	u32 nr = worker - t->workers;
	struct blk_plug plug;
	struct dtc_set *set;

	do {
		blk_start_plug(&plug);
		while (nr < READ_ONCE(t->params.workers) && (set = dtc_ready_next(t))) {
			dtc_evict(t, set);
			cond_resched();
		}
		blk_finish_plug(&plug);
	} while (nr < READ_ONCE(t->params.workers) && dtc_idle_poll(t));
	clear_bit(nr, &t->awake);
	smp_mb__after_atomic();		/* pairs with llist_add() in dtc_ready_add() */
	if (dtc_ready_any(t))
		dtc_wake_worker(t);
}

int dtc_workers_init(struct dtc *t)
{
	u32 i;

	t->workers = kcalloc(DTC_MAX_WORKERS, sizeof(*t->workers), GFP_KERNEL);
	t->evictors = alloc_workqueue("transit/%s", WQ_UNBOUND | WQ_MEM_RECLAIM, 0, t->lower->name);
	t->events = alloc_workqueue("transit-events/%s", WQ_UNBOUND | WQ_MEM_RECLAIM, 0, t->lower->name);
	if (!t->workers || !t->evictors || !t->events)
		return -ENOMEM;
	for (i = 0; i < DTC_MAX_WORKERS; i++) {
		t->workers[i].t = t;
		INIT_WORK(&t->workers[i].work, dtc_work);
	}
	return 0;
}

void dtc_workers_destroy(struct dtc *t)
{
	if (t->events)		/* first: its work wakes workers */
		destroy_workqueue(t->events);
	if (t->evictors)
		destroy_workqueue(t->evictors);
	kfree(t->workers);
}
