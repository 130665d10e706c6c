// SPDX-License-Identifier: GPL-2.0-only
/*
 * Blocks that the device has refused belong to the mapped device, not to one of its tables.
 *
 * A reload creates a second target. device-mapper destroys the first target after the second runs, or after
 * the second fails to resume. So all targets are registered here. A target that is about to resume takes
 * over what earlier targets of its mapped device kept at their suspend. That is the failed blocks, and the
 * fact that a flush has failed. If a block doesn't fit into the new cache, the new target isn't resumed.
 *
 * The earlier target is destroyed in any case. Its struct dtc then stays here as an orphan, without a
 * table (->ti is NULL). An orphan is freed when another table has taken its blocks, or with the mapped
 * device.
 *
 * Two targets can't have one device below, unless they are tables of one mapped device, of which one
 * runs at a time: each would read blocks that the other has newer.
 *
 * Uses instance.c, set.c, slot.c, error.c. Used by target.c, state.c and shutdown.c.
 */
#include "policy.h"

static DEFINE_MUTEX(dtc_registry_lock);
static LIST_HEAD(dtc_registry);		/* all targets, and the orphans of destroyed ones */

/* True if both belong to the same mapped device, but to different tables. */
static bool dtc_other_table(const struct dtc *t, const struct dtc *other)
{
	return other->md == t->md && (!other->ti || other->ti->table != t->ti->table);
}

/*
 * True if the new cache has space for the failed blocks known now. More may fail until the table is
 * resumed.
 */
static bool dtc_fits(const struct dtc *t, const struct dtc *other)
{
	int refused = atomic_read(&other->nr_failed);

	if (other->begin >= t->begin + t->ti->len || t->begin >= other->begin + other->len)
		return true;
	return !refused || (t->params.block_size == other->params.block_size && refused <= t->nr_slots);
}

/**
 * dtc_register() - register a target of a mapped device, in the constructor
 * @t: the target
 *
 * Context: Task, no locks held. Sleeps.
 * Return: 0; -EBUSY with ti->error set: an earlier table has failed blocks that don't fit into this
 * one, or another target has the same device below.
 */
int dtc_register(struct dtc *t)
{
	struct dtc *other;
	int err = 0;

	t->md = dm_table_get_md(t->ti->table);
	t->begin = t->ti->begin;
	t->len = t->ti->len;
	mutex_lock(&dtc_registry_lock);
	list_for_each_entry(other, &dtc_registry, registered) {
		if (!dtc_other_table(t, other)) {
			if (!other->lower || other->lower->bdev != t->lower->bdev)
				continue;
			t->ti->error = "The device has a transit cache already";
			err = -EBUSY;
			continue;
		}
		if (dtc_fits(t, other))
			continue;
		DMERR("%s: %d blocks that the device below has refused don't fit into this table: keep block_size %u and a cache that holds them until they are written",
		      dm_device_name(t->md), atomic_read(&other->nr_failed), other->params.block_size);
		t->ti->error = "Blocks that the device below has refused don't fit into this table";
		err = -EBUSY;
	}
	if (!err)
		list_add(&t->registered, &dtc_registry);
	mutex_unlock(&dtc_registry_lock);
	return err;
}

/* Moves a failed block to @slot, a free slot of @t, as if its write had failed here. */
static void dtc_take_over(struct dtc *t, struct dtc_slot *slot, u64 block, const void *data, u8 retries)
{
	struct dtc_set *set = dtc_set_of(t, block);

	memcpy(dtc_slot_data(t, slot), data, t->params.block_size);
	spin_lock_irq(&set->lock);
	dtc_set_dirty(t, set, 1);
	slot->stamp = atomic_read(&t->stamp);
	slot->block = block;
	slot->state = DTC_VALID;
	slot->retries = retries;
	atomic_inc(&t->nr_failed);
	list_add_tail(&slot->queue, &set->queue);
	if (t->policy->stored)
		t->policy->stored(t, slot);
	spin_unlock_irq(&set->lock);
}

/* Neither target runs. The set's lock is taken only because the functions called assert it. */
static int dtc_inherit_set(struct dtc *t, struct dtc *from, struct dtc_set *set)
{
	struct dtc_slot *slot, *next, *own;

	list_for_each_entry_safe(slot, next, &set->queue, queue) {
		u64 sector = from->begin + (slot->block << from->block_shift);

		if (sector >= dm_table_get_size(t->ti->table))
			return -ENOSPC;
		if (sector < t->begin || sector >= t->begin + t->len)
			continue;	/* belongs to another target of the table */
		own = from->params.block_size == t->params.block_size ? dtc_slot_get(t) : NULL;
		if (!own)
			return -ENOSPC;
		dtc_take_over(t, own, (sector - t->begin) >> t->block_shift, dtc_slot_data(from, slot),
			      slot->retries);
		if (READ_ONCE(from->failing))
			WRITE_ONCE(t->failing, true);
		spin_lock_irq(&set->lock);
		if (from->policy->removed)
			from->policy->removed(from, slot);
		dtc_set_remove(from, set, slot);
		spin_unlock_irq(&set->lock);
	}
	return 0;
}

static int dtc_inherit_from(struct dtc *t, struct dtc *from)
{
	u32 nr;
	int err;

	lockdep_assert_held(&dtc_registry_lock);
	if (READ_ONCE(from->flush_failed))
		dtc_flush_ended(t, 0, true);
	for_each_set_bit(nr, from->occupied, dtc_nr_sets(from)) {
		err = dtc_inherit_set(t, from, &from->sets[nr]);
		if (err)
			return err;
		cond_resched();
	}
	return 0;
}

/**
 * dtc_inherit() - take over what earlier tables kept
 * @t: the target; about to be resumed, so no target of the mapped device runs
 *
 * Context: Task, no locks held. Sleeps.
 * Return: 0; -ENOSPC: a block doesn't fit, and the kernel's log says so.
 */
int dtc_inherit(struct dtc *t)
{
	int err = 0, before = atomic_read(&t->nr_failed);
	struct dtc *other;

	mutex_lock(&dtc_registry_lock);
	list_for_each_entry(other, &dtc_registry, registered)
		if (!err && dtc_other_table(t, other))
			err = dtc_inherit_from(t, other);
	mutex_unlock(&dtc_registry_lock);
	if (err)
		DMERR("%s: blocks that the device below has refused don't fit into this table: load one with the block_size, the length and the cache size of before",
		      dm_device_name(t->md));
	else if (atomic_read(&t->nr_failed) != before)
		DMWARN("%s: has taken over %d blocks that the device below has refused",
		       dm_device_name(t->md), atomic_read(&t->nr_failed) - before);
	return err;
}

/* True if a table that hasn't run yet may still take over from @t. */
static bool dtc_has_successor(const struct dtc *t)
{
	struct dtc *other;

	lockdep_assert_held(&dtc_registry_lock);
	list_for_each_entry(other, &dtc_registry, registered)
		if (other->ti && dtc_other_table(t, other) && READ_ONCE(other->suspended))
			return true;
	return false;
}

/* Moves the mapped device's orphans to a list. */
static void dtc_collect_orphans(const struct mapped_device *md, struct list_head *orphans)
{
	struct dtc *other, *next;

	lockdep_assert_held(&dtc_registry_lock);
	list_for_each_entry_safe(other, next, &dtc_registry, registered)
		if (other->md == md && !other->ti)
			list_move(&other->registered, orphans);
}

static void dtc_free_orphans(struct list_head *orphans)
{
	struct dtc *t, *next;

	list_for_each_entry_safe(t, next, orphans, registered) {
		int lost = atomic_read(&t->nr_failed);

		if (lost)
			DMERR("%s: %d blocks that the device below has refused are lost",
			      dm_device_name(t->md), lost);
		dtc_destroy(t);
	}
}

/* Frees the orphans: the target runs, and has taken over their blocks. */
void dtc_free_predecessors(struct dtc *t)
{
	LIST_HEAD(orphans);

	mutex_lock(&dtc_registry_lock);
	dtc_collect_orphans(t->md, &orphans);
	mutex_unlock(&dtc_registry_lock);
	dtc_free_orphans(&orphans);
}

/* Calls @fn for each target that has a table, under the lock of the registry. @fn waits for no I/O. */
void dtc_for_each(void (*fn)(struct dtc *t))
{
	struct dtc *t;

	mutex_lock(&dtc_registry_lock);
	list_for_each_entry(t, &dtc_registry, registered)
		if (t->ti)
			fn(t);
	mutex_unlock(&dtc_registry_lock);
}

/**
 * dtc_retire() - destroy a target: its table goes away
 * @t: the target
 *
 * Keeps the struct as an orphan if it has something to hand over and another table may take it.
 * Context: Task, no locks held. Sleeps.
 */
void dtc_retire(struct dtc *t)
{
	bool keeps = atomic_read(&t->nr_failed) || READ_ONCE(t->flush_failed), last = true;
	struct dm_target *ti = t->ti;
	struct dm_dev *lower = t->lower;
	struct dtc *other;
	LIST_HEAD(orphans);

	/* Message flush may have requested a retry while the target was being suspended. */
	cancel_delayed_work_sync(&t->retry);
	flush_work(&t->shutdown);
	mutex_lock(&dtc_registry_lock);
	keeps = keeps && dtc_has_successor(t);
	t->ti = NULL;
	t->lower = NULL;
	list_for_each_entry(other, &dtc_registry, registered)
		if (other->md == t->md && other->ti)
			last = false;
	if (last)
		dtc_collect_orphans(t->md, &orphans);
	else if (!keeps)
		list_move(&t->registered, &orphans);
	mutex_unlock(&dtc_registry_lock);
	dm_put_device(ti, lower);
	dtc_free_orphans(&orphans);
}
