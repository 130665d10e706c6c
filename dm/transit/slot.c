// SPDX-License-Identifier: GPL-2.0-only
/*
 * The reservation and its free set.
 *
 * The free set is a stack whose head is changed by compare-and-swap. Its upper half
 * counts the changes: a head that was taken away and put back meanwhile is another
 * one. A slot's ->next may be read by somebody who comes too late; he finds out when
 * his swap fails.
 *
 * Writers that may not go past the cache stand in line. A slot that is put back is
 * handed to the first of them; nobody overtakes.
 */
#include <linux/completion.h>
#include <linux/vmalloc.h>

#include "policy.h"

struct dtc_waiter {
	struct list_head line;
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

/* To those in line what there is; if the device fails, nothing, but they needn't wait. */
void dtc_slot_line(struct dtc *t)
{
	unsigned long flags;

	spin_lock_irqsave(&t->free.lock, flags);
	while (!list_empty(&t->free.line)) {
		struct dtc_waiter *waiter = list_first_entry(&t->free.line, struct dtc_waiter, line);

		waiter->slot = dtc_free_pop(t);
		if (!waiter->slot && !READ_ONCE(t->failing))
			break;
		list_del(&waiter->line);
		WRITE_ONCE(t->free.waiting, t->free.waiting - 1);
		complete(&waiter->done);
	}
	spin_unlock_irqrestore(&t->free.lock, flags);
}

/* A free slot, if there is one and nobody waits for it; the caller's alone then. */
struct dtc_slot *dtc_slot_get(struct dtc *t)
{
	return READ_ONCE(t->free.waiting) ? NULL : dtc_free_pop(t);
}

/**
 * dtc_slot_wait() - wait in line for a slot
 * @t: the target
 *
 * Return: the slot; NULL: the device fails, and none may ever get free.
 */
struct dtc_slot *dtc_slot_wait(struct dtc *t)
{
	struct dtc_waiter waiter = { .done = COMPLETION_INITIALIZER_ONSTACK(waiter.done) };

	spin_lock_irq(&t->free.lock);
	list_add_tail(&waiter.line, &t->free.line);
	WRITE_ONCE(t->free.waiting, t->free.waiting + 1);
	spin_unlock_irq(&t->free.lock);
	/* Either we see the slot that is put back now, or who does so sees us. */
	smp_mb();
	dtc_slot_line(t);
	if (!completion_done(&waiter.done))
		t->policy->make_room(t);
	dtc_hurry(t);
	wait_for_completion_io(&waiter.done);
	return waiter.slot;
}

/* It is free, and goes to the first in line, if there is one. */
void dtc_slot_put(struct dtc *t, struct dtc_slot *slot)
{
	dtc_free_push(t, slot);
	if (READ_ONCE(t->free.waiting))
		dtc_slot_line(t);
}

int dtc_slots_init(struct dtc *t)
{
	u32 i;

	spin_lock_init(&t->free.lock);
	INIT_LIST_HEAD(&t->free.line);
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
