// SPDX-License-Identifier: GPL-2.0-only
/* LRU: a writer that needs a slot evicts the least recently used block. */
#include <linux/slab.h>

#include "../policy.h"

struct lru {
	spinlock_t lock;		/* protects the list */
	struct list_head slots;		/* valid or being overwritten; the least recently used first */
};

static void lru_used(struct dtc *t, struct dtc_slot *slot)
{
	struct lru *lru = t->policy_data;
	unsigned long flags;

	lockdep_assert_held(&dtc_set_of(t, slot->block)->lock);
	spin_lock_irqsave(&lru->lock, flags);
	list_move_tail(&slot->policy, &lru->slots);
	spin_unlock_irqrestore(&lru->lock, flags);
}

/*
 * A wanted slot stays out of the list: lru_make_space() has chosen it, and chooses another one for the
 * next writer.
 */
static void lru_read(struct dtc *t, struct dtc_slot *slot)
{
	if (!slot->wanted)
		lru_used(t, slot);
}

static void lru_removed(struct dtc *t, struct dtc_slot *slot)
{
	struct lru *lru = t->policy_data;
	unsigned long flags;

	lockdep_assert_held(&dtc_set_of(t, slot->block)->lock);
	spin_lock_irqsave(&lru->lock, flags);
	list_del_init(&slot->policy);
	spin_unlock_irqrestore(&lru->lock, flags);
}

static void lru_make_space(struct dtc *t)
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
	.removed = lru_removed,
	.make_space = lru_make_space,
};
