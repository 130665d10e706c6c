// SPDX-License-Identifier: GPL-2.0-only
/*
 * The slots' memory, the free set, and the writers that wait for a free slot.
 *
 * The free set is a stack whose head is changed by compare-and-swap. The head's upper half counts
 * changes, so that a head that was popped and pushed again differs from the old one (ABA). A task may
 * read ->next of a slot that was popped in the meantime; its compare-and-swap then fails.
 *
 * If the policy permits no bypass, writers wait in a FIFO. A slot that becomes free goes to the first
 * waiter: no writer overtakes.
 *
 * Uses ready.c, and the policy's make_space. Used by set.c, write.c, registry.c, retry.c.
 */
#include <linux/completion.h>
#include <linux/vmalloc.h>

#include "policy.h"

struct dtc_waiter {
	struct list_head node;
	struct completion done;
	struct dtc_slot *slot;
};

static u64 dtc_free_head(u64 old, u32 first)
{
	return ((old >> 32) + 1) << 32 | first;
}

static struct dtc_slot *dtc_free_pop(struct dtc *t)
{
	s64 head = atomic64_read(&t->free.head);
	struct dtc_slot *slot;

	do {
		if ((u32)head == DTC_NO_SLOT)
			return NULL;
		slot = &t->slots[(u32)head];
	} while (!atomic64_try_cmpxchg(&t->free.head, &head, dtc_free_head(head, READ_ONCE(slot->next))));
	atomic_dec(&t->free.nr);
	return slot;
}

static void dtc_free_push(struct dtc *t, struct dtc_slot *slot)
{
	s64 head = atomic64_read(&t->free.head);

	atomic_inc(&t->free.nr);
	do {
		WRITE_ONCE(slot->next, (u32)head);
	} while (!atomic64_try_cmpxchg(&t->free.head, &head, dtc_free_head(head, slot - t->slots)));
}

/**
 * dtc_slot_wake_waiters() - hand free slots to waiters, in order
 * @t: the target
 *
 * If the device fails, the remaining waiters are woken without a slot.
 * Context: Any.
 */
void dtc_slot_wake_waiters(struct dtc *t)
{
	unsigned long flags;

	spin_lock_irqsave(&t->free.lock, flags);
	while (!list_empty(&t->free.waiters)) {
		struct dtc_waiter *waiter = list_first_entry(&t->free.waiters, struct dtc_waiter, node);

		waiter->slot = dtc_free_pop(t);
		if (!waiter->slot && !READ_ONCE(t->failing))
			break;
		list_del(&waiter->node);
		WRITE_ONCE(t->free.waiting, t->free.waiting - 1);
		complete(&waiter->done);
	}
	spin_unlock_irqrestore(&t->free.lock, flags);
}

/* Pops a free slot for the caller. NULL if there is none, or if writers wait for one. Context: Any. */
struct dtc_slot *dtc_slot_get(struct dtc *t)
{
	return READ_ONCE(t->free.waiting) ? NULL : dtc_free_pop(t);
}

/**
 * dtc_slot_wait() - wait for a free slot
 * @t: the target
 *
 * Context: Task in map, no locks held. Sleeps.
 * Return: the slot; NULL: the device fails, so that a slot may never become free.
 */
struct dtc_slot *dtc_slot_wait(struct dtc *t)
{
	struct dtc_waiter waiter = { .done = COMPLETION_INITIALIZER_ONSTACK(waiter.done) };

	spin_lock_irq(&t->free.lock);
	list_add_tail(&waiter.node, &t->free.waiters);
	WRITE_ONCE(t->free.waiting, t->free.waiting + 1);
	spin_unlock_irq(&t->free.lock);
	/*
	 * Pairs with the cmpxchg in dtc_free_push(): either this task sees the pushed slot, or the
	 * pusher sees ->waiting.
	 */
	smp_mb();
	dtc_slot_wake_waiters(t);
	if (!completion_done(&waiter.done))
		t->policy->make_space(t);
	dtc_expedite(t);
	wait_for_completion_io(&waiter.done);
	return waiter.slot;
}

/* Frees a slot: the first waiter gets it, if there is one. Context: Any. */
void dtc_slot_put(struct dtc *t, struct dtc_slot *slot)
{
	dtc_free_push(t, slot);
	if (READ_ONCE(t->free.waiting))
		dtc_slot_wake_waiters(t);
}

int dtc_slots_init(struct dtc *t)
{
	u32 i;

	spin_lock_init(&t->free.lock);
	INIT_LIST_HEAD(&t->free.waiters);
	atomic64_set(&t->free.head, DTC_NO_SLOT);
	if (!t->nr_slots)
		return 0;
	t->data = vmalloc_huge((u64)t->nr_slots * t->params.block_size,
			       GFP_KERNEL | __GFP_RETRY_MAYFAIL | __GFP_NOWARN);
	t->slots = vcalloc(t->nr_slots, sizeof(*t->slots));
	if (!t->data || !t->slots)
		return -ENOMEM;
	for (i = t->nr_slots; i--;) {
		INIT_LIST_HEAD(&t->slots[i].queue);
		INIT_LIST_HEAD(&t->slots[i].policy);
		t->slots[i].block = DTC_NO_BLOCK;
		dtc_free_push(t, &t->slots[i]);
	}
	return 0;
}

void dtc_slots_destroy(struct dtc *t)
{
	vfree(t->slots);
	vfree(t->data);
}
