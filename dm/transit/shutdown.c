// SPDX-License-Identifier: GPL-2.0-only
/*
 * The machine stops or restarts: all caches are flushed, as drivers flush the caches of disks. A mapped
 * device that is in use until the end, as below the root file system, isn't removed before.
 *
 * Each cache is flushed by a work of its own. A device that doesn't answer delays the machine's end by
 * DTC_SHUTDOWN_WAIT at most.
 *
 * Uses state.c and registry.c. Used by target.c.
 */
#include <linux/reboot.h>

#include "transit.h"

#define DTC_SHUTDOWN_WAIT	(60 * HZ)

static atomic_t dtc_flushes_left;
static DECLARE_WAIT_QUEUE_HEAD(dtc_flush_ends);

static void dtc_shutdown_work(struct work_struct *work)
{
	struct dtc *t = container_of(work, struct dtc, shutdown);
	int err = dtc_make_durable(t, false);

	if (err)
		DMERR("%s: the machine stops, and not all that was written is on %pg: error %d",
		      dm_table_device_name(t->ti->table), t->lower->bdev, err);
	if (atomic_dec_and_test(&dtc_flushes_left))
		wake_up_all(&dtc_flush_ends);
}

void dtc_shutdown_init(struct dtc *t)
{
	INIT_WORK(&t->shutdown, dtc_shutdown_work);
}

/* A suspended target has nothing to write. */
static void dtc_shutdown_begin(struct dtc *t)
{
	if (!t->nr_slots || READ_ONCE(t->suspended))
		return;
	atomic_inc(&dtc_flushes_left);
	if (!queue_work(t->events, &t->shutdown))
		atomic_dec(&dtc_flushes_left);
}

static int dtc_shutdown(struct notifier_block *block, unsigned long code, void *data)
{
	dtc_for_each(dtc_shutdown_begin);
	if (!wait_event_timeout(dtc_flush_ends, !atomic_read(&dtc_flushes_left), DTC_SHUTDOWN_WAIT))
		DMERR("the machine stops, and a device below hasn't written its blocks in %d seconds",
		      DTC_SHUTDOWN_WAIT / HZ);
	return NOTIFY_DONE;
}

static struct notifier_block dtc_shutdown_block = {
	.notifier_call = dtc_shutdown,
	.priority = INT_MAX - 1,	/* after md, which may be above, and before drivers of disks */
};

int dtc_shutdown_register(void)
{
	return register_reboot_notifier(&dtc_shutdown_block);
}

void dtc_shutdown_unregister(void)
{
	unregister_reboot_notifier(&dtc_shutdown_block);
}
