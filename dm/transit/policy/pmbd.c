// SPDX-License-Identifier: GPL-2.0-only
/*
 * PMBD's write buffer, flushed as a whole: pmbd when the buffer is full, pmbd70 by a daemon when the
 * buffer is 70 percent full. A writer that finds the buffer full waits.
 */
#include <linux/slab.h>

#include "../policy.h"

#define PMBD_WATERMARK	70		/* percent */

struct pmbd {
	struct work_struct work;	/* the daemon */
	struct dtc *t;
	bool stopped;
};

static void pmbd_drain(struct work_struct *work)
{
	dtc_drain(container_of(work, struct pmbd, work)->t, false);
}

static void pmbd_kick(struct dtc *t)
{
	struct pmbd *p = t->policy_data;

	if (!READ_ONCE(p->stopped))
		queue_work(t->events, &p->work);
}

static void pmbd70_stored(struct dtc *t, struct dtc_slot *slot)
{
	lockdep_assert_held(&dtc_set_of(t, slot->block)->lock);
	/* A failed block waits for its retry. */
	if (!slot->retries && dtc_used(t) >= mult_frac(t->nr_slots, PMBD_WATERMARK, 100))
		pmbd_kick(t);
}

static int pmbd_init(struct dtc *t)
{
	struct pmbd *p = kzalloc(sizeof(*p), GFP_KERNEL);

	if (!p)
		return -ENOMEM;
	INIT_WORK(&p->work, pmbd_drain);
	p->t = t;
	t->policy_data = p;
	return 0;
}

static void pmbd_destroy(struct dtc *t)
{
	kfree(t->policy_data);
}

static void pmbd_suspend(struct dtc *t)
{
	struct pmbd *p = t->policy_data;

	WRITE_ONCE(p->stopped, true);
	cancel_work_sync(&p->work);
}

static void pmbd_resume(struct dtc *t)
{
	struct pmbd *p = t->policy_data;

	WRITE_ONCE(p->stopped, false);
}

const struct dtc_policy dtc_policy_pmbd = {
	.name = "pmbd",
	.init = pmbd_init,
	.destroy = pmbd_destroy,
	.make_space = pmbd_kick,
	.suspend = pmbd_suspend,
	.resume = pmbd_resume,
};

const struct dtc_policy dtc_policy_pmbd70 = {
	.name = "pmbd70",
	.init = pmbd_init,
	.destroy = pmbd_destroy,
	.stored = pmbd70_stored,
	.make_space = pmbd_kick,
	.suspend = pmbd_suspend,
	.resume = pmbd_resume,
};
