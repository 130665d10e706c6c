// SPDX-License-Identifier: GPL-2.0-only
/* The least recently used block is evicted when a writer needs a slot. */
#include <linux/slab.h>

#include "policy.h"

struct lru {
	spinlock_t lock;		/* of the list */
	struct list_head slots;		/* valid or being overwritten; the least recently used first */
};

static void lru_used(struct dtc *t, struct dtc_slot *slot)
{
	struct lru *lru = t->policy_data;
	unsigned long flags;

	spin_lock_irqsave(&lru->lock, flags);
	list_move_tail(&slot->policy, &lru->slots);
	spin_unlock_irqrestore(&lru->lock, flags);
}

/* Not one that is wanted: make_room has taken it out, and chooses another one for the next writer. */
static void lru_read(struct dtc *t, struct dtc_slot *slot)
{
	if (!slot->wanted)
		lru_used(t, slot);
}

static void lru_left(struct dtc *t, struct dtc_slot *slot)
{
	struct lru *lru = t->policy_data;
	unsigned long flags;

	spin_lock_irqsave(&lru->lock, flags);
	list_del_init(&slot->policy);
	spin_unlock_irqrestore(&lru->lock, flags);
}

static void lru_make_room(struct dtc *t)
{
	struct lru *lru = t->policy_data;
	struct dtc_slot *slot;
	u64 block = DTC_NO_BLOCK;

	spin_lock_irq(&lru->lock);
	slot = list_first_entry_or_null(&lru->slots, struct dtc_slot, policy);
	if (slot) {
		block = slot->block;
		list_del_init(&slot->policy);
	}
	spin_unlock_irq(&lru->lock);
	if (slot)
		dtc_want_block(t, block);
}

static int lru_init(struct dtc *t)
{
	struct lru *lru = kzalloc(sizeof(*lru), GFP_KERNEL);

	if (!lru)
		return -ENOMEM;
	spin_lock_init(&lru->lock);
	INIT_LIST_HEAD(&lru->slots);
	t->policy_data = lru;
	return 0;
}

static void lru_destroy(struct dtc *t)
{
	kfree(t->policy_data);
}

const struct dtc_policy dtc_policy_lru = {
	.name = "lru",
	.init = lru_init,
	.destroy = lru_destroy,
	.stored = lru_used,
	.read = lru_read,
	.left = lru_left,
	.make_room = lru_make_room,
};
