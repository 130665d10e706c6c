// SPDX-License-Identifier: GPL-2.0-only
/*
 * Suspend, resume, and a flush that no bio asks for.
 *
 * A suspended target leaves the device alone: its cache is empty, except for blocks that the device has
 * refused. These blocks stay until a resume of this table or of its successor (registry.c). If the
 * mapped device is removed instead, the blocks are lost, and the kernel's log says so.
 *
 * Uses drain.c, registry.c, set.c, error.c. Used by target.c and shutdown.c.
 */
#include "policy.h"

/*
 * Frees clean copies: the device's content may change before the resume. Taking the lock also waits for
 * the completion of the set's last bio. A drain skips sets without dirty slots, so it hasn't waited for
 * that completion, and the set may be freed after this.
 */
static void dtc_set_invalidate_clean(struct dtc *t, struct dtc_set *set)
{
	struct dtc_slot *slot, *next;

	spin_lock_irq(&set->lock);
	list_for_each_entry_safe(slot, next, &set->queue, queue) {
		if (!slot->clean)
			continue;
		t->policy->removed(t, slot);
		dtc_set_remove(t, set, slot);
	}
	spin_unlock_irq(&set->lock);
}

/* Context: device-mapper; no bio is in flight. */
void dtc_postsuspend(struct dm_target *ti)
{
	struct dtc *t = ti->private;
	u32 nr;

	if (t->policy->suspend)
		t->policy->suspend(t);
	dtc_drain(t, false);
	/* The remaining slots have failed. The second drain waits for a retry that already runs. */
	WRITE_ONCE(t->suspended, true);
	cancel_delayed_work_sync(&t->retry);
	dtc_drain(t, false);
	cancel_delayed_work_sync(&t->retry);
	flush_workqueue(t->evictors);
	for (nr = 0; nr < dtc_nr_sets(t); nr++) {
		dtc_set_invalidate_clean(t, &t->sets[nr]);
		cond_resched();
	}
}

int dtc_preresume(struct dm_target *ti)
{
	return dtc_inherit(ti->private);
}

void dtc_resume(struct dm_target *ti)
{
	struct dtc *t = ti->private;

	WRITE_ONCE(t->suspended, false);
	dtc_free_predecessors(t);
	/* To retry; or to report a recovery that the suspend has left unreported. */
	if (atomic_read(&t->nr_failed) || READ_ONCE(t->failing) || READ_ONCE(t->flush_failed))
		queue_delayed_work(t->evictors, &t->retry, 0);
	if (t->policy->resume)
		t->policy->resume(t);
}

/**
 * dtc_make_durable() - make all complete writes durable
 * @t: the target, not suspended
 * @interruptible: whether signals end the wait
 *
 * Context: Task or work, no locks held. Sleeps.
 * Return: 0; -ERESTARTSYS: a signal arrived; other errors are the device's.
 */
int dtc_make_durable(struct dtc *t, bool interruptible)
{
	u32 stamp = atomic_read(&t->stamp);
	int err = dtc_drain(t, interruptible);

	if (!err)
		err = blkdev_issue_flush(t->lower->bdev);
	/* An interrupted flush proves nothing. */
	if (err != -ERESTARTSYS)
		dtc_flush_ended(t, stamp, err);
	return err;
}

/* Message flush. */
int dtc_flush(struct dtc *t)
{
	return READ_ONCE(t->suspended) ? -EBUSY : dtc_make_durable(t, true);
}
