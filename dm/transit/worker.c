// SPDX-License-Identifier: GPL-2.0-only
/*
 * Workers: who evicts, and when he sleeps.
 *
 * A set with slots that are wanted is put on a list, without a lock (dtc_ready()), and
 * whoever does so wakes a worker only if none is awake: to wake him costs the writer more
 * than to write the block to its slot, and with eager eviction the next block comes at once
 * if any does. So a worker who finds the list empty does not sleep yet, if he is the last one
 * that is awake:
 *
 * - If there was a flush, or somebody has waited for a slot (dtc_hurry()), he looks around for
 *   more (DTC_LOOK), the next DTC_LOOKS times: where one flush comes after each write, the
 *   next one will find nothing to wait for.
 * - If not, nobody waits for what comes next either: he takes a nap (DTC_NAP), and finds
 *   several sets when a timer wakes him, not a writer. Who looks around takes from the writer
 *   what their processors share, who naps doesn't. Who is in a hurry ends it, if anything
 *   is on the list then. What gets there later (a slot that was pending still) waits for
 *   the end of one nap at most, which is DTC_NAP and the timer's slack.
 *
 * A worker takes sets in the order in which they came, and calls another one when more of those
 * he has lined up are left than one sees to soon (DTC_ALONE, DTC_HURRIED).
 *
 * Who goes to sleep says so first and looks again afterwards; who has put a set on the
 * list looks for somebody awake afterwards. So one of them sees the other. It is the same
 * with who takes a nap, and who is in a hurry.
 */
#include <linux/mutex.h>
#include <linux/sched.h>

#include "transit.h"

/* The first two in nanoseconds. */
#define DTC_LOOK	(50 * NSEC_PER_USEC)
#define DTC_NAP		(100 * NSEC_PER_USEC)
#define DTC_LOOKS	2
/* So many sets one worker sees to by himself; and so many if somebody may wait. */
#define DTC_ALONE	16
#define DTC_HURRIED	4

static void dtc_call(struct dtc *t)
{
	unsigned long most = READ_ONCE(t->params.workers), nr = find_first_zero_bit(&t->awake, most);

	if (nr < most && !test_and_set_bit(nr, &t->awake))
		queue_work(t->evictors, &t->workers[nr].work);
}

/**
 * dtc_ready() - a set has slots that are wanted, and valid
 * @t: the target
 * @set: its lock may be held
 */
void dtc_ready(struct dtc *t, struct dtc_set *set)
{
	if (xchg(&set->listed, 1))
		return;
	llist_add(&set->ready, &t->ready.added);
	if (!READ_ONCE(t->awake))
		dtc_call(t);
}

static bool dtc_any_ready(const struct dtc *t)
{
	return READ_ONCE(t->ready.fifo) || !llist_empty(&t->ready.added);
}

/**
 * dtc_hurry() - somebody waits from now on for what is on the list, if anything is
 * @t: the target; any lock may be held
 */
void dtc_hurry(struct dtc *t)
{
	WRITE_ONCE(t->ready.looks, DTC_LOOKS);
	if (wq_has_sleeper(&t->ready.nap) && dtc_any_ready(t))
		wake_up(&t->ready.nap);
}

/* Those that were added since, the oldest first. */
static void dtc_line_up(struct dtc *t)
{
	struct llist_node *node, *oldest = llist_reverse_order(llist_del_all(&t->ready.added));

	llist_for_each(node, oldest)
		t->ready.nr++;
	WRITE_ONCE(t->ready.fifo, oldest);
}

/* The next set; it may be put on the list again from now on. */
static struct dtc_set *dtc_next(struct dtc *t)
{
	struct llist_node *node;
	struct dtc_set *set;
	bool more;

	mutex_lock(&t->ready.lock);
	if (!t->ready.fifo)
		dtc_line_up(t);
	node = t->ready.fifo;
	if (node) {
		WRITE_ONCE(t->ready.fifo, node->next);
		t->ready.nr--;
	}
	more = t->ready.nr > (READ_ONCE(t->ready.looks) ? DTC_HURRIED : DTC_ALONE);
	mutex_unlock(&t->ready.lock);
	if (more)
		dtc_call(t);
	if (!node)
		return NULL;
	set = llist_entry(node, struct dtc_set, ready);
	/* A full barrier: after ->next was read, before its slots are looked at. */
	xchg(&set->listed, 0);
	return set;
}

/*
 * Looks around for a moment. Who else wants the processor gets it, but the worker stays runnable:
 * had he the writer's processor and slept, he would be woken there again for the next block, and so on.
 */
static void dtc_look(struct dtc *t)
{
	u64 end = ktime_get_ns() + DTC_LOOK;

	while (num_online_cpus() > 1 && !dtc_any_ready(t) && ktime_get_ns() < end)
		if (!cond_resched())
			cpu_relax();
}

/* Comes more soon? Only one worker stays to see. */
static bool dtc_linger(struct dtc *t)
{
	u32 looks = READ_ONCE(t->ready.looks);

	if (hweight_long(READ_ONCE(t->awake)) > 1 || dtc_any_ready(t))
		return dtc_any_ready(t);
	if (looks) {
		WRITE_ONCE(t->ready.looks, looks - 1);
		dtc_look(t);
	} else {
		wait_event_interruptible_hrtimeout(t->ready.nap, READ_ONCE(t->ready.looks),
						   ns_to_ktime(DTC_NAP));
	}
	return dtc_any_ready(t);
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
		while (nr < READ_ONCE(t->params.workers) && (set = dtc_next(t))) {
			dtc_evict(t, set);
			cond_resched();
		}
		blk_finish_plug(&plug);
	} while (nr < READ_ONCE(t->params.workers) && dtc_linger(t));
	clear_bit(nr, &t->awake);
	smp_mb__after_atomic();		/* pairs with llist_add() in dtc_ready() */
	if (dtc_any_ready(t))
		dtc_call(t);
}

int dtc_workers_init(struct dtc *t)
{
	u32 i;

	mutex_init(&t->ready.lock);
	init_llist_head(&t->ready.added);
	init_waitqueue_head(&t->ready.nap);
	t->workers = kcalloc(DTC_MOST_WORKERS, sizeof(*t->workers), GFP_KERNEL);
	t->evictors = alloc_workqueue("transit/%s", WQ_UNBOUND | WQ_MEM_RECLAIM, 0, t->below->name);
	t->events = alloc_workqueue("transit-events/%s", WQ_UNBOUND | WQ_MEM_RECLAIM, 0, t->below->name);
	if (!t->workers || !t->evictors || !t->events)
		return -ENOMEM;
	for (i = 0; i < DTC_MOST_WORKERS; i++) {
		t->workers[i].t = t;
		INIT_WORK(&t->workers[i].work, dtc_work);
	}
	return 0;
}

void dtc_workers_destroy(struct dtc *t)
{
	if (t->events)		/* first: its work calls workers */
		destroy_workqueue(t->events);
	if (t->evictors)
		destroy_workqueue(t->evictors);
	kfree(t->workers);
}
