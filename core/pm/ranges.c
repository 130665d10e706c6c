// SPDX-License-Identifier: GPL-2.0-only
/* The list of ranges of persistent memory in use; ranges.h says what for. */
#include <linux/list.h>
#include <linux/memremap.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/slab.h>
#include <linux/string.h>

#include "../../compat/dax.h"
#include "ranges.h"

static DEFINE_MUTEX(pm_ranges_lock);
static LIST_HEAD(pm_ranges);

static bool pm_ranges_overlap(const struct pm_range *a, const struct pm_range *b)
{
	return a->start < b->start + b->size && b->start < a->start + a->size;
}

/* Returns an overlapping range of another owner. Context: Under the list's lock. */
static const struct pm_range *pm_range_conflict(const struct pm_range *range)
{
	const struct pm_range *other;

	lockdep_assert_held(&pm_ranges_lock);
	list_for_each_entry(other, &pm_ranges, list)
		if (other->owner != range->owner && pm_ranges_overlap(other, range))
			return other;
	return NULL;
}

static void pm_range_let_go(struct pm_range *range)
{
	while (range->nr_maps)
		put_dev_pagemap(range->maps[--range->nr_maps]);
	kfree(range->maps);
	range->maps = NULL;
}

/* Adds @map, with its reference, to what keeps the range mapped. */
static int pm_range_add_map(struct pm_range *range, struct dev_pagemap *map)
{
	struct dev_pagemap **maps;

	maps = krealloc_array(range->maps, range->nr_maps + 1, sizeof(*maps), GFP_KERNEL);
	if (!maps) {
		put_dev_pagemap(map);
		return -ENOMEM;
	}
	maps[range->nr_maps++] = map;
	range->maps = maps;
	return 0;
}

/*
 * Keeps the range mapped. Memory that is mapped like vmalloc()'s is no device's own, and stays by itself:
 * that of an emulated device. -ENODEV: the device is going away.
 */
static int pm_range_hold(struct pm_range *range)
{
	unsigned long pfn, end;
	struct dev_pagemap *map;
	int err = 0;

	if (!range->by_address || is_vmalloc_addr(range->start))
		return 0;
	pfn = page_to_pfn(virt_to_page(range->start));
	end = pfn + (range->size >> PAGE_SHIFT);
	for (; !err && pfn < end; pfn = PHYS_PFN(map->range.end) + 1) {
		map = compat_get_pagemap(pfn);
		if (!map)
			return -ENODEV;
		err = pm_range_add_map(range, map);
	}
	return err;
}

/**
 * pm_range_register() - reserve a range of persistent memory
 * @range: zeroed, but for start, size, owner, by_address and user; must stay valid until
 *	pm_range_unregister()
 * @other: set to the other range's user if -EBUSY is returned
 *
 * Context: Task. Sleeps.
 * Return: 0; -EBUSY: another owner uses part of the range; -ENODEV: the device is going away; -ENOMEM.
 */
int pm_range_register(struct pm_range *range, char other[PM_RANGE_USER])
{
	const struct pm_range *conflict;
	int err = pm_range_hold(range);

	if (err) {
		pm_range_let_go(range);
		return err;
	}
	mutex_lock(&pm_ranges_lock);
	conflict = pm_range_conflict(range);
	if (conflict)
		strscpy(other, conflict->user, PM_RANGE_USER);
	else
		list_add(&range->list, &pm_ranges);
	mutex_unlock(&pm_ranges_lock);
	if (conflict)
		pm_range_let_go(range);
	return conflict ? -EBUSY : 0;
}
EXPORT_SYMBOL_GPL(pm_range_register);

/**
 * pm_range_unregister() - release a range
 * @range: registered, or zeroed, or refused by pm_range_register(); its memory may go away from now on
 *
 * Context: Task. Sleeps.
 */
void pm_range_unregister(struct pm_range *range)
{
	if (!range->list.next)
		return;
	mutex_lock(&pm_ranges_lock);
	list_del(&range->list);
	mutex_unlock(&pm_ranges_lock);
	range->list.next = NULL;
	pm_range_let_go(range);
}
EXPORT_SYMBOL_GPL(pm_range_unregister);

MODULE_DESCRIPTION("Forebay: which persistent memory is in use");
MODULE_LICENSE("GPL");
