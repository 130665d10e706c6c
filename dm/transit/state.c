// SPDX-License-Identifier: GPL-2.0-only
/*
 * Suspend, resume, and the message flush.
 *
 * A suspended target has nothing to do with the device below: its cache is empty, but
 * for what the device has refused. That stays for the time after the resume; if
 * the target goes instead, it is lost, and the kernel's log says so.
 */
#include "policy.h"

/* No bio is in flight any more. */
void dtc_postsuspend(struct dm_target *ti)
{
	struct dtc *t = ti->private;

	if (t->policy->suspend)
		t->policy->suspend(t);
	dtc_drain(t);
	/* What is left has failed. A try that is on its way is seen to its end. */
	WRITE_ONCE(t->quiet, true);
	cancel_delayed_work_sync(&t->retry);
	dtc_drain(t);
	cancel_delayed_work_sync(&t->retry);
	flush_workqueue(t->evictors);
}

void dtc_resume(struct dm_target *ti)
{
	struct dtc *t = ti->private;

	WRITE_ONCE(t->quiet, false);
	if (atomic_read(&t->troubled))
		queue_delayed_work(t->events, &t->retry, 0);
	if (t->policy->resume)
		t->policy->resume(t);
}

/* Message: flush. All that was complete, durable. */
int dtc_flush(struct dtc *t)
{
	int err;

	if (READ_ONCE(t->quiet))
		return -EBUSY;
	err = dtc_drain(t);
	return err ? err : blkdev_issue_flush(t->below->bdev);
}
