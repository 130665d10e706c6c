// SPDX-License-Identifier: GPL-2.0-only
/*
 * Sets: where a block's slot is, and who must wait before he may write it.
 *
 * Everything that happens to a block happens under its set's lock, except copying
 * and I/O. Who waits does so on the set's wait queue with the lock given up, and looks
 * again at every change there.
 */
#include <linux/log2.h>
#include <linux/random.h>
#include <linux/vmalloc.h>

#include "policy.h"

struct dtc_slot *dtc_set_find(struct dtc_set *set, u64 block)
{
	struct dtc_slot *slot;

	list_for_each_entry(slot, &set->queue, queue)
		if (slot->block == block)
			return slot;
	return NULL;
}

/* With the lock held, after anything that somebody may wait for. */
void dtc_set_wake(struct dtc_set *set)
{
	/* No barrier: who waits got into the queue with the lock held. */
	if (waitqueue_active(&set->wait))
		wake_up_all(&set->wait);
}

/* Does a flush wait for the slot's version? To replace it again and again would keep the flush waiting. */
static bool dtc_slot_due(const struct dtc *t, const struct dtc_slot *slot)
{
	return slot->wanted && !slot->tries && slot->stamp != atomic_read(&t->stamp);
}

/* Is one of these blocks written anywhere? And are there @readers of one? */
static bool dtc_set_written(struct dtc *t, struct dtc_set *set, u64 first, u64 last,
			    const struct dtc_range *own, bool *readers)
{
	/* The newest first, so behind our own are those that came before us. */
	struct hlist_node *newest = own ? own->node.next : set->ranges.first;
	struct dtc_range *range = hlist_entry_safe(newest, struct dtc_range, node);
	struct dtc_slot *slot;
	bool written = false;

	*readers = false;
	hlist_for_each_entry_from(range, node)
		written |= dtc_overlaps(range, first, last);
	list_for_each_entry(slot, &set->queue, queue) {
		if (!dtc_between(slot, first, last))
			continue;
		written |= slot->state != DTC_VALID || dtc_slot_due(t, slot);
		*readers |= slot->readers > 0;
	}
	return written;
}

/* Keeps new readers of the blocks out, or no longer. A slot may have gone and come back meanwhile. */
static void dtc_set_await(struct dtc_set *set, u64 first, u64 last, bool begin)
{
	struct dtc_slot *slot;

	list_for_each_entry(slot, &set->queue, queue) {
		if (!dtc_between(slot, first, last))
			continue;
		if (begin && slot->awaited < U8_MAX)
			slot->awaited++;
		else if (!begin && slot->awaited)
			slot->awaited--;
	}
	if (!begin)
		dtc_set_wake(set);
}

/* Nobody is at work on the blocks? If only readers are, no more of them come until somebody is who writes. */
static bool dtc_set_idle(struct dtc *t, struct dtc_set *set, u64 first, u64 last,
			 const struct dtc_range *own, bool *awaiting)
{
	bool readers, written = dtc_set_written(t, set, first, last, own, &readers);
	bool await = readers && !written;

	if (unlikely(await != *awaiting)) {
		*awaiting = await;
		dtc_set_await(set, first, last, await);
	}
	return !written && !readers;
}

/**
 * dtc_set_wait_idle() - wait until nobody is at work on some blocks
 * @t: the target
 * @set: theirs, locked
 * @first: of the blocks
 * @last: of the blocks
 * @own: the caller's range, on record in the set: it and what came after it don't count; or NULL
 *
 * Readers that come while readers are at work would keep us from them for ever: so they wait, too. But not
 * while we wait for writers, which may be long.
 */
void dtc_set_wait_idle(struct dtc *t, struct dtc_set *set, u64 first, u64 last, const struct dtc_range *own)
{
	bool awaiting = false;

	wait_event_lock_irq(set->wait, dtc_set_idle(t, set, first, last, own, &awaiting), set->lock);
}

/* Are discards or zeros on their way there? With the set's lock held: those that come later wait for it. */
static bool dtc_set_wide(struct dtc *t, u64 first, u64 last)
{
	return unlikely(READ_ONCE(t->wide.nr)) && dtc_wide_covers(t, first, last);
}

/**
 * dtc_set_lock_idle() - lock a set, when nobody is at work on some blocks
 * @t: the target
 * @set: theirs
 * @first: of the blocks
 * @last: of the blocks
 */
void dtc_set_lock_idle(struct dtc *t, struct dtc_set *set, u64 first, u64 last) __acquires(&set->lock)
{
	for (;;) {
		spin_lock_irq(&set->lock);
		dtc_set_wait_idle(t, set, first, last, NULL);
		if (!dtc_set_wide(t, first, last))
			return;
		spin_unlock_irq(&set->lock);
		dtc_wide_wait(t, first, last);
	}
}

/**
 * dtc_set_lock_range() - lock a set, and have blocks of it for oneself
 * @t: the target
 * @set: theirs
 * @range: the blocks; on record in the set on return
 *
 * It is put on record first, so that nobody begins to write any of them while we wait for those who have
 * begun: they would be in turn for ever. Discards and zeros do the same, so we wait for them before that.
 */
void dtc_set_lock_range(struct dtc *t, struct dtc_set *set, struct dtc_range *range) __acquires(&set->lock)
{
	for (;;) {
		spin_lock_irq(&set->lock);
		if (!dtc_set_wide(t, range->first, range->last))
			break;
		spin_unlock_irq(&set->lock);
		dtc_wide_wait(t, range->first, range->last);
	}
	hlist_add_head(&range->node, &set->ranges);
	dtc_set_wait_idle(t, set, range->first, range->last, range);
}

/* So many of the set's slots more that are not clean. */
void dtc_set_dirty(struct dtc *t, struct dtc_set *set, int by)
{
	u32 was = set->dirty;

	set->dirty += by;
	if (!was && set->dirty)
		set_bit(set - t->sets, t->occupied);
	else if (was && !set->dirty)
		clear_bit(set - t->sets, t->occupied);
}

/**
 * dtc_set_leave() - take a slot out of its set
 * @t: the target
 * @set: locked
 * @slot: nobody's any more but its readers'; the policy knows
 *
 * It is free then, or when the last of its readers is through. That happens with the
 * lock held, so that who sees an empty set knows that nobody is on his way out of it.
 */
void dtc_set_leave(struct dtc *t, struct dtc_set *set, struct dtc_slot *slot)
{
	dtc_forgive(t, slot);
	if (!slot->clean)
		dtc_set_dirty(t, set, -1);
	list_del_init(&slot->queue);
	slot->block = DTC_NO_BLOCK;
	slot->state = DTC_FREE;
	slot->wanted = false;
	slot->awaited = 0;
	slot->clean = false;
	if (!slot->readers)
		dtc_slot_put(t, slot);
}

/* A reader is through. With the lock held. */
void dtc_set_unpin(struct dtc *t, struct dtc_set *set, struct dtc_slot *slot)
{
	if (--slot->readers)
		return;
	dtc_set_wake(set);
	if (slot->state == DTC_FREE)
		dtc_slot_put(t, slot);
}

int dtc_sets_init(struct dtc *t)
{
	u32 i;

	t->set_bits = max(1, ilog2(max(t->nr_slots / DTC_SET_SLOTS, 1u)));
	t->seed = get_random_u64();
	t->sets = vcalloc(dtc_nr_sets(t), sizeof(*t->sets));
	t->occupied = vzalloc(BITS_TO_LONGS(dtc_nr_sets(t)) * sizeof(long));
	if (!t->sets || !t->occupied)
		return -ENOMEM;
	for (i = 0; i < dtc_nr_sets(t); i++) {
		struct dtc_set *set = &t->sets[i];

		spin_lock_init(&set->lock);
		INIT_LIST_HEAD(&set->queue);
		init_waitqueue_head(&set->wait);
	}
	return 0;
}

void dtc_sets_destroy(struct dtc *t)
{
	vfree(t->occupied);
	vfree(t->sets);
}
