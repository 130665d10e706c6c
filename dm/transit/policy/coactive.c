// SPDX-License-Identifier: GPL-2.0-only
/*
 * Co-Active, as Caiti ported it (section 5). A Bloom filter separates hot data from cold data. Clean,
 * cold and hot blocks are on separate lists. While the device is idle, cold dirty blocks are written to
 * the device and stay cached as clean copies. A writer that needs a slot gets the oldest clean slot. If
 * there is none, the oldest cold block is evicted; hot blocks come last.
 *
 * A block is hot if the filter has seen an earlier write of it. The filter is cleared when it holds as
 * many blocks as it was sized for.
 */
#include <linux/bitmap.h>
#include <linux/slab.h>
#include <linux/vmalloc.h>

#include "../policy.h"

enum { COA_CLEAN, COA_COLD, COA_HOT, COA_LISTS };

#define COA_HASHES		3
#define COA_BITS_PER_SLOT	8
#define COA_MAX_BITS		25		/* clearing takes time, with interrupts off */
#define COA_TICK		1		/* jiffies without a bio: the device is idle */
#define COA_BATCH		64

struct coactive {
	spinlock_t lock;			/* protects the lists and the filter */
	struct list_head lists[COA_LISTS];	/* the oldest first */
	unsigned long *filter;
	u32 filter_bits, entered, max_entered;
	struct delayed_work work;
	struct dtc *t;
};

/* Adds the block to the filter. True: the filter had it before. */
static bool coa_written_before(struct coactive *coa, u64 block)
{
	bool before = true;
	u32 i;

	lockdep_assert_held(&coa->lock);
	for (i = 1; i <= COA_HASHES; i++)
		before &= __test_and_set_bit(hash_64(block * COA_HASHES + i, coa->filter_bits), coa->filter);
	if (!before && ++coa->entered > coa->max_entered) {
		bitmap_zero(coa->filter, 1u << coa->filter_bits);
		coa->entered = 0;
	}
	return before;
}

static void coa_move(struct dtc *t, struct dtc_slot *slot, int list)
{
	struct coactive *coa = t->policy_data;
	unsigned long flags;

	spin_lock_irqsave(&coa->lock, flags);
	list_move_tail(&slot->policy, &coa->lists[list]);
	spin_unlock_irqrestore(&coa->lock, flags);
}

static void coa_stored(struct dtc *t, struct dtc_slot *slot)
{
	struct coactive *coa = t->policy_data;
	unsigned long flags;
	int list;

	lockdep_assert_held(&dtc_set_of(t, slot->block)->lock);
	spin_lock_irqsave(&coa->lock, flags);
	list = coa_written_before(coa, slot->block) ? COA_HOT : COA_COLD;
	list_move_tail(&slot->policy, &coa->lists[list]);
	spin_unlock_irqrestore(&coa->lock, flags);
	/* A failed block has its own retries; after coa_suspend(), too, no work may be queued for it. */
	if (list == COA_COLD && !slot->retries)
		queue_delayed_work(t->events, &coa->work, COA_TICK);
}

static void coa_cleaned(struct dtc *t, struct dtc_slot *slot)
{
	lockdep_assert_held(&dtc_set_of(t, slot->block)->lock);
	coa_move(t, slot, COA_CLEAN);
}

static void coa_read(struct dtc *t, struct dtc_slot *slot)
{
	lockdep_assert_held(&dtc_set_of(t, slot->block)->lock);
	if (slot->clean)
		coa_move(t, slot, COA_CLEAN);
}

static void coa_removed(struct dtc *t, struct dtc_slot *slot)
{
	struct coactive *coa = t->policy_data;
	unsigned long flags;

	lockdep_assert_held(&dtc_set_of(t, slot->block)->lock);
	spin_lock_irqsave(&coa->lock, flags);
	list_del_init(&slot->policy);
	spin_unlock_irqrestore(&coa->lock, flags);
}

/*
 * Removes the oldest slot of the first list that isn't empty, from @first to @last, and returns its
 * block.
 */
static u64 coa_oldest(struct coactive *coa, int first, int last, int *list)
{
	u64 block = DTC_NO_BLOCK;

	spin_lock_irq(&coa->lock);
	for (*list = first; *list <= last; (*list)++) {
		struct dtc_slot *slot = list_first_entry_or_null(&coa->lists[*list], struct dtc_slot, policy);

		if (slot) {
			block = slot->block;
			list_del_init(&slot->policy);
			break;
		}
	}
	spin_unlock_irq(&coa->lock);
	return block;
}

static void coa_make_space(struct dtc *t)
{
	u64 block;
	int list;

	do {
		block = coa_oldest(t->policy_data, COA_CLEAN, COA_HOT, &list);
		if (block != DTC_NO_BLOCK && list != COA_CLEAN)
			dtc_want_block(t, block);
		/* A clean slot may have been overwritten meanwhile. */
	} while (block != DTC_NO_BLOCK && list == COA_CLEAN && !dtc_invalidate_clean(t, block));
}

/* Runs again while cold blocks are left; coa_stored() starts it again. */
static void coa_idle(struct work_struct *work)
{
	struct coactive *coa = container_of(to_delayed_work(work), struct coactive, work);
	struct dtc *t = coa->t;
	u32 i;

	if (time_after(jiffies, READ_ONCE(t->last_bio) + COA_TICK)) {
		for (i = 0; i < COA_BATCH; i++) {
			int list;
			u64 block = coa_oldest(coa, COA_COLD, COA_COLD, &list);

			if (block == DTC_NO_BLOCK)
				break;
			dtc_want_block(t, block);
		}
	}
	if (!list_empty_careful(&coa->lists[COA_COLD]))
		queue_delayed_work(t->events, &coa->work, COA_TICK);
}

static void coa_destroy(struct dtc *t)
{
	struct coactive *coa = t->policy_data;

	vfree(coa->filter);
	kfree(coa);
}

static int coa_init(struct dtc *t)
{
	struct coactive *coa = kzalloc(sizeof(*coa), GFP_KERNEL);
	int i;

	if (!coa)
		return -ENOMEM;
	spin_lock_init(&coa->lock);
	for (i = 0; i < COA_LISTS; i++)
		INIT_LIST_HEAD(&coa->lists[i]);
	coa->t = t;
	coa->max_entered = t->nr_slots;
	coa->filter_bits = clamp(order_base_2((u64)t->nr_slots * COA_BITS_PER_SLOT), 6, COA_MAX_BITS);
	coa->filter = vzalloc(BITS_TO_LONGS(1ul << coa->filter_bits) * sizeof(long));
	INIT_DELAYED_WORK(&coa->work, coa_idle);
	t->policy_data = coa;
	return coa->filter ? 0 : -ENOMEM;
}

static void coa_suspend(struct dtc *t)
{
	struct coactive *coa = t->policy_data;

	cancel_delayed_work_sync(&coa->work);
}

static void coa_resume(struct dtc *t)
{
	struct coactive *coa = t->policy_data;

	queue_delayed_work(t->events, &coa->work, COA_TICK);
}

const struct dtc_policy dtc_policy_coactive = {
	.name = "coactive",
	.keeps_clean = true,
	.init = coa_init,
	.destroy = coa_destroy,
	.stored = coa_stored,
	.cleaned = coa_cleaned,
	.read = coa_read,
	.removed = coa_removed,
	.make_space = coa_make_space,
	.suspend = coa_suspend,
	.resume = coa_resume,
};
