// SPDX-License-Identifier: GPL-2.0-only
/*
 * The ready list: sets that have slots to evict, and the waking of workers for them.
 *
 * dtc_ready_add() puts a set on the list without a lock: it runs in every write, and in interrupts.
 * Workers take sets from the list in the order in which the sets were added, under t->ready.lock.
 *
 * dtc_ready_add() wakes a worker only if none runs. A wakeup costs the writer more than writing a block
 * to its slot; worker.c says why an idle worker stays awake.
 *
 * A worker that goes to sleep clears its bit in t->awake and then checks the list again. A writer adds
 * its set to the list and then checks t->awake. So at least one of the two sees the other. The same
 * holds for a worker in its timed wait and a caller of dtc_expedite().
 *
 * Uses no other file. Used by set owners (write.c, want.c, evict.c), by waiters (slot.c, drain.c,
 * discard.c) and by worker.c.
 */
#include <linux/mutex.h>

#include "transit.h"

/* Backlog at which a worker wakes another one: in general, and while dtc_expedite() is in effect. */
#define DTC_MAX_BACKLOG			16
#define DTC_MAX_BACKLOG_EXPEDITED	4
/* Busy polls that idle workers do after dtc_expedite(). */
#define DTC_POLLS			2

void dtc_wake_worker(struct dtc *t)
{
	unsigned long max = READ_ONCE(t->params.workers), nr = find_first_zero_bit(&t->awake, max);

	if (nr < max && !test_and_set_bit(nr, &t->awake))
		queue_work(t->evictors, &t->workers[nr].work);
}

/**
 * dtc_ready_add() - put a set on the ready list
 * @t: the target
 * @set: has a valid slot that is wanted
 *
 * Context: Any; the set's lock may be held.
 */
void dtc_ready_add(struct dtc *t, struct dtc_set *set)
{
	if (xchg(&set->listed, 1))
		return;
	llist_add(&set->ready, &t->ready.added);
	if (!READ_ONCE(t->awake))
		dtc_wake_worker(t);
}

/**
 * dtc_expedite() - a task waits for sets of the ready list from now on
 * @t: the target
 *
 * Ends a worker's timed wait if the list has sets, and makes the next idle workers poll.
 * Context: Any; any lock may be held.
 */
void dtc_expedite(struct dtc *t)
{
	WRITE_ONCE(t->ready.polls, DTC_POLLS);
	if (wq_has_sleeper(&t->ready.timed_wait) && dtc_ready_any(t))
		wake_up(&t->ready.timed_wait);
}

/* Moves all added sets to the fifo, the oldest first. */
static void dtc_ready_refill(struct dtc *t)
{
	struct llist_node *node, *oldest = llist_reverse_order(llist_del_all(&t->ready.added));

	lockdep_assert_held(&t->ready.lock);
	llist_for_each(node, oldest)
		t->ready.nr++;
	WRITE_ONCE(t->ready.fifo, oldest);
}

/**
 * dtc_ready_next() - take the next set from the ready list
 * @t: the target
 *
 * The set may be added again as soon as this function returns.
 * Context: Worker. Sleeps.
 * Return: the set; NULL: the list is empty.
 */
struct dtc_set *dtc_ready_next(struct dtc *t)
{
	struct llist_node *node;
	struct dtc_set *set;
	bool more;

	mutex_lock(&t->ready.lock);
	if (!t->ready.fifo)
		dtc_ready_refill(t);
	node = t->ready.fifo;
	if (node) {
		WRITE_ONCE(t->ready.fifo, node->next);
		t->ready.nr--;
	}
	more = t->ready.nr > (READ_ONCE(t->ready.polls) ? DTC_MAX_BACKLOG_EXPEDITED : DTC_MAX_BACKLOG);
	mutex_unlock(&t->ready.lock);
	if (more)
		dtc_wake_worker(t);
	if (!node)
		return NULL;
	set = llist_entry(node, struct dtc_set, ready);
	/*
	 * Full barrier between reading ->next and looking at the set's slots; pairs with xchg() in
	 * dtc_ready_add().
	 */
	xchg(&set->listed, 0);
	return set;
}

void dtc_ready_init(struct dtc *t)
{
	mutex_init(&t->ready.lock);
	init_llist_head(&t->ready.added);
	init_waitqueue_head(&t->ready.timed_wait);
}
