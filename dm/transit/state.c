// SPDX-License-Identifier: GPL-2.0-only
/*
 * Suspend, resume, and the message flush.
 *
 * A suspended target has nothing to do with the device below: its cache is empty, but
 * for what the device has refused. That stays for the time after the resume; if
 * the target goes instead, it is lost, and the kernel's log says so.
 */
#include "policy.h"

/*
 * Copies of what the device has go: it may have something else when we go on. And whose bio was the
 * set's last is through with it, though the drain, which looks only where something is left, has
 * not waited for him: the set may be freed now.
 */
static void dtc_settle(struct dtc *t, struct dtc_set *set)
{
	struct dtc_slot *slot, *next;

	spin_lock_irq(&set->lock);
	list_for_each_entry_safe(slot, next, &set->queue, queue) {
		if (!slot->clean)
			continue;
		t->policy->left(t, slot);
		dtc_set_leave(t, set, slot);
	}
	spin_unlock_irq(&set->lock);
}

/* No bio is in flight any more. */
void dtc_postsuspend(struct dm_target *ti)
{
	struct dtc *t = ti->private;
	u32 nr;

	if (t->policy->suspend)
		t->policy->suspend(t);
	dtc_drain(t, false);
	/* What is left has failed. A try that is on its way is seen to its end. */
	WRITE_ONCE(t->quiet, true);
	cancel_delayed_work_sync(&t->retry);
	dtc_drain(t, false);
	cancel_delayed_work_sync(&t->retry);
	flush_workqueue(t->evictors);
	for (nr = 0; nr < dtc_nr_sets(t); nr++) {
		dtc_settle(t, &t->sets[nr]);
		cond_resched();
	}
}

void dtc_resume(struct dm_target *ti)
{
	struct dtc *t = ti->private;

	WRITE_ONCE(t->quiet, false);
	/* To try again; or to say that all is well again, if suspending has come before that. */
	if (atomic_read(&t->troubled) || READ_ONCE(t->failing) || READ_ONCE(t->flush_failed))
		queue_delayed_work(t->evictors, &t->retry, 0);
	if (t->policy->resume)
		t->policy->resume(t);
}

/* Message: flush. All that was complete, durable. */
int dtc_flush(struct dtc *t)
{
	u32 stamp = atomic_read(&t->stamp);
	int err;

	if (READ_ONCE(t->quiet))
		return -EBUSY;
	err = dtc_drain(t, true);
	if (!err)
		err = blkdev_issue_flush(t->below->bdev);
	/* Whoever was interrupted knows nothing. */
	if (err != -ERESTARTSYS)
		dtc_flush_ended(t, stamp, err);
	return err;
}
