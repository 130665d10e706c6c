// SPDX-License-Identifier: GPL-2.0-only
/*
 * Sets: finding a block's slot, and waiting for the other users of a block.
 *
 * All changes of a block's state happen under its set's lock. Copying and I/O happen without the lock.
 * A task waits on set->wait with the lock released, and checks again after every change of the set.
 *
 * Uses slot.c, range.c, error.c. Used by all files that touch slots.
 */
#include <linux/log2.h>
#include <linux/random.h>
#include <linux/vmalloc.h>

#include "policy.h"

struct dtc_slot *dtc_set_find(struct dtc_set *set, u64 block)
{
	struct dtc_slot *slot;

	lockdep_assert_held(&set->lock);
	list_for_each_entry(slot, &set->queue, queue)
		if (slot->block == block)
			return slot;
	return NULL;
}

/* Wakes all waiters of the set. Callers have changed something that a task may wait for. */
void dtc_set_wake(struct dtc_set *set)
{
	lockdep_assert_held(&set->lock);
	/* No barrier: waiters enter the wait queue under set->lock. */
	if (waitqueue_active(&set->wait))
		wake_up_all(&set->wait);
}

/*
 * True if a flush waits for the slot's version. Overwriting that version again and again would starve
 * the flush.
 */
static bool dtc_slot_awaited_by_flush(const struct dtc *t, const struct dtc_slot *slot)
{
	return slot->wanted && !slot->retries && slot->stamp != atomic_read(&t->stamp);
}

/*
 * True if one of the blocks is being written, to a slot or to the device. *@readers: one of the blocks
 * is being read.
 */
static bool dtc_set_written(struct dtc *t, struct dtc_set *set, u64 first, u64 last,
			    const struct dtc_range *own, bool *readers)
{
	/* Ranges are added at the head, so those behind @own are older than @own. */
	struct hlist_node *newest = own ? own->node.next : set->ranges.first;
	struct dtc_range *range = hlist_entry_safe(newest, struct dtc_range, node);
	struct dtc_slot *slot;
	bool written = false;

	lockdep_assert_held(&set->lock);
	*readers = false;
	hlist_for_each_entry_from(range, node)
		written |= dtc_overlaps(range, first, last);
	list_for_each_entry(slot, &set->queue, queue) {
		if (!dtc_slot_in_blocks(slot, first, last))
			continue;
		written |= slot->state != DTC_VALID || dtc_slot_awaited_by_flush(t, slot);
		*readers |= slot->readers > 0;
	}
	return written;
}

/*
 * Blocks new readers of the blocks, or unblocks them. A slot may have been freed and filled again in
 * between.
 */
static void dtc_set_block_readers(struct dtc_set *set, u64 first, u64 last, bool begin)
{
	struct dtc_slot *slot;

	lockdep_assert_held(&set->lock);
	list_for_each_entry(slot, &set->queue, queue) {
		if (!dtc_slot_in_blocks(slot, first, last))
			continue;
		if (begin && slot->writers_waiting < U8_MAX)
			slot->writers_waiting++;
		else if (!begin && slot->writers_waiting)
			slot->writers_waiting--;
	}
	if (!begin)
		dtc_set_wake(set);
}

/*
 * True if the blocks have neither writers nor readers. If they have readers only, new readers are
 * blocked; if they have writers, new readers are let in.
 */
static bool dtc_set_idle(struct dtc *t, struct dtc_set *set, u64 first, u64 last,
			 const struct dtc_range *own, bool *awaiting)
{
	bool readers, written = dtc_set_written(t, set, first, last, own, &readers);
	bool await = readers && !written;

	if (unlikely(await != *awaiting)) {
		*awaiting = await;
		dtc_set_block_readers(set, first, last, await);
	}
	return !written && !readers;
}

/**
 * dtc_set_wait_idle() - wait until some blocks are neither read nor written
 * @t: the target
 * @set: the blocks' set
 * @first: the first block
 * @last: the last block
 * @own: the caller's range in @set, or NULL; ranges added after it don't count
 *
 * While only readers remain, new readers are blocked: they could starve the caller. While writers
 * remain, which may be long, readers are let in.
 *
 * Context: Under @set->lock, which is released while the task sleeps.
 */
void dtc_set_wait_idle(struct dtc *t, struct dtc_set *set, u64 first, u64 last, const struct dtc_range *own)
{
	bool awaiting = false;

	lockdep_assert_held(&set->lock);
	wait_event_lock_irq(set->wait, dtc_set_idle(t, set, first, last, own, &awaiting), set->lock);
}

/*
 * True if a discard or zeroes are in flight there. A discard that is added later waits for the set's
 * lock before it looks at the set.
 */
static bool dtc_set_discarding(struct dtc *t, u64 first, u64 last)
{
	lockdep_assert_held(&dtc_set_of(t, first)->lock);
	return unlikely(READ_ONCE(t->discards.nr)) && dtc_discards_overlap(t, first, last);
}

/**
 * dtc_set_lock_idle() - lock a set when some blocks of it are idle
 * @t: the target
 * @set: the blocks' set
 * @first: the first block
 * @last: the last block
 *
 * On return the blocks are neither read nor written, and no discard of them is in flight.
 *
 * Context: Task in map. Sleeps. Returns with @set->lock held.
 */
void dtc_set_lock_idle(struct dtc *t, struct dtc_set *set, u64 first, u64 last) __acquires(&set->lock)
{
	for (;;) {
		spin_lock_irq(&set->lock);
		dtc_set_wait_idle(t, set, first, last, NULL);
		if (!dtc_set_discarding(t, first, last))
			return;
		spin_unlock_irq(&set->lock);
		dtc_discards_wait(t, first, last);
	}
}

/**
 * dtc_set_lock_range() - lock a set and reserve a range of blocks for the caller's write
 * @t: the target
 * @set: the blocks' set
 * @range: the blocks; in @set->ranges on return
 *
 * The range is added before the wait for present writers, so that new writers can't start and starve
 * the caller. A discard adds its range first, too; so the caller waits for discards before it adds its
 * own range.
 *
 * Context: Task in map. Sleeps. Returns with @set->lock held.
 */
void dtc_set_lock_range(struct dtc *t, struct dtc_set *set, struct dtc_range *range) __acquires(&set->lock)
{
	for (;;) {
		spin_lock_irq(&set->lock);
		if (!dtc_set_discarding(t, range->first, range->last))
			break;
		spin_unlock_irq(&set->lock);
		dtc_discards_wait(t, range->first, range->last);
	}
	hlist_add_head(&range->node, &set->ranges);
	dtc_set_wait_idle(t, set, range->first, range->last, range);
}

/* Adds @by to the number of slots that are not clean. */
void dtc_set_dirty(struct dtc *t, struct dtc_set *set, int by)
{
	u32 was = set->dirty;

	lockdep_assert_held(&set->lock);
	set->dirty += by;
	if (!was && set->dirty)
		set_bit(set - t->sets, t->occupied);
	else if (was && !set->dirty)
		clear_bit(set - t->sets, t->occupied);
}

/**
 * dtc_set_remove() - take a slot out of its set
 * @t: the target
 * @set: the slot's set
 * @slot: has no users other than readers; the policy was told
 *
 * The slot becomes free at once, or when its last reader has finished. The slot is freed under the
 * lock, so that a task that sees an empty set knows that no other task still uses the set.
 *
 * Context: Under @set->lock.
 */
void dtc_set_remove(struct dtc *t, struct dtc_set *set, struct dtc_slot *slot)
{
	lockdep_assert_held(&set->lock);
	dtc_clear_retries(t, slot);
	if (!slot->clean)
		dtc_set_dirty(t, set, -1);
	list_del_init(&slot->queue);
	slot->block = DTC_NO_BLOCK;
	slot->state = DTC_FREE;
	slot->wanted = false;
	slot->writers_waiting = 0;
	slot->clean = false;
	if (!slot->readers)
		dtc_slot_put(t, slot);
}

/* A reader has finished. The last reader frees a slot that was removed meanwhile. */
void dtc_set_put_reader(struct dtc *t, struct dtc_set *set, struct dtc_slot *slot)
{
	lockdep_assert_held(&set->lock);
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
