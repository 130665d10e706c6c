// SPDX-License-Identifier: GPL-2.0-only
/*
 * Two costs decide where a sync call's volatile pages go: that of a lower fsync of so many pages, and that
 * of moving so many pages into PMem. Both are measured all the time, for each mount.
 *
 * A cost has two parts: the call, whatever its size, and each page. A call with few pages says what the call
 * takes; a call with many pages says what a page takes. Neither part is left higher than a whole call was.
 *
 * A sample counts for an eighth, so a device that becomes slower or faster is known after some tens of calls.
 * A sample counts as four times the average at most: one call that was interrupted decides nothing.
 *
 * While syncs are absorbed, no lower sync is measured but those of writeback, which has batches of pages
 * (writeback/writeback.c). While syncs go below, one of FB_COST_TRY is absorbed all the same, to be measured.
 */
#include <linux/ktime.h>

#include "cost.h"

/* Calls with fewer pages are taken for the call's part, others for the page's. */
#define FB_COST_FEW	32
/* One in so many of the syncs that go below because that is faster is absorbed, to measure it again. */
#define FB_COST_TRY	32

/*
 * Of a mount that has measured nothing yet, in ns. Storage is taken for slow: a sync that is absorbed in vain
 * costs a copy, one that goes below in vain costs a wait for storage. The first writeback corrects that.
 */
static const struct fb_cost fb_lower_at_first = { .call = NSEC_PER_MSEC, .page = 50 * NSEC_PER_USEC };
static const struct fb_cost fb_absorbed_at_first = { .call = 5 * NSEC_PER_USEC, .page = 2 * NSEC_PER_USEC };

/**
 * fb_costs_init() - nothing has been measured yet
 * @fsb: the mount
 */
void fb_costs_init(struct fb_sb *fsb)
{
	fsb->lower_cost = fb_lower_at_first;
	fsb->absorbed_cost = fb_absorbed_at_first;
}

/* Takes no lock: of two samples at once, one may be lost. */
static void fb_average(u64 *average, u64 sample)
{
	u64 old = READ_ONCE(*average);

	sample = min(sample, 4 * old + NSEC_PER_USEC);
	WRITE_ONCE(*average, old - old / 8 + sample / 8);
}

static void fb_cost_sample(struct fb_cost *cost, unsigned long pages, u64 ns)
{
	u64 call = READ_ONCE(cost->call), of_pages = READ_ONCE(cost->page) * pages;

	if (!pages)
		return;
	if (pages < FB_COST_FEW) {
		fb_average(&cost->call, ns - min(ns, of_pages));
		if (of_pages > ns)
			fb_average(&cost->page, ns / pages);
	} else {
		fb_average(&cost->page, (ns - min(ns, call)) / pages);
		if (call > ns)
			fb_average(&cost->call, ns);
	}
}

/**
 * fb_cost_lower() - a lower fsync has ended well
 * @fsb: the mount
 * @pages: how many volatile pages it has made durable; it had nothing else to do
 * @start_ns: ktime_get_ns() before it
 */
void fb_cost_lower(struct fb_sb *fsb, unsigned long pages, u64 start_ns)
{
	fb_cost_sample(&fsb->lower_cost, pages, ktime_get_ns() - start_ns);
}

/**
 * fb_cost_absorbed() - a sync has been absorbed
 * @fsb: the mount
 * @pages: how many pages it has moved
 * @start_ns: ktime_get_ns() before it
 */
void fb_cost_absorbed(struct fb_sb *fsb, unsigned long pages, u64 start_ns)
{
	fb_cost_sample(&fsb->absorbed_cost, pages, ktime_get_ns() - start_ns);
}

/**
 * fb_cost_overwritten() - a write has put a page into PMem ahead of the sync
 * @fsb: the mount
 * @start_ns: ktime_get_ns() before it
 */
void fb_cost_overwritten(struct fb_sb *fsb, u64 start_ns)
{
	fb_average(&fsb->absorbed_cost.page, ktime_get_ns() - start_ns);
}

/**
 * fb_cost_limit() - up to how many pages moving them costs less than the lower fsync
 * @fsb: the mount
 *
 * Return: pages; ULONG_MAX: always.
 */
unsigned long fb_cost_limit(const struct fb_sb *fsb)
{
	u64 lower = READ_ONCE(fsb->lower_cost.call), absorbed = READ_ONCE(fsb->absorbed_cost.call);
	u64 lower_page = READ_ONCE(fsb->lower_cost.page), absorbed_page = READ_ONCE(fsb->absorbed_cost.page);

	if (lower <= absorbed)
		return 0;
	return lower_page >= absorbed_page ? ULONG_MAX : (lower - absorbed) / (absorbed_page - lower_page);
}

/**
 * fb_cost_again() - a sync has more pages than fb_cost_limit()
 * @fsb: the mount
 *
 * Return: true if it shall be absorbed all the same, to be measured.
 */
bool fb_cost_again(struct fb_sb *fsb)
{
	return !(atomic_inc_return(&fsb->syncs_too_large) % FB_COST_TRY);
}
