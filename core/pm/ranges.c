// SPDX-License-Identifier: GPL-2.0-only
/* The list of ranges of persistent memory in use; ranges.h says what for. */
#include <linux/list.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/string.h>

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

/**
 * pm_range_register() - reserve a range of persistent memory
 * @range: set by the caller except for its list; must stay valid until pm_range_unregister()
 * @other: set to the other range's user if -EBUSY is returned
 *
 * Context: Task. Sleeps.
 * Return: 0; -EBUSY: another owner uses part of the range.
 */
int pm_range_register(struct pm_range *range, char other[PM_RANGE_USER])
{
	const struct pm_range *conflict;

	mutex_lock(&pm_ranges_lock);
	conflict = pm_range_conflict(range);
	if (conflict)
		strscpy(other, conflict->user, PM_RANGE_USER);
	else
		list_add(&range->list, &pm_ranges);
	mutex_unlock(&pm_ranges_lock);
	return conflict ? -EBUSY : 0;
}
EXPORT_SYMBOL_GPL(pm_range_register);

/**
 * pm_range_unregister() - release a range
 * @range: registered, or zeroed, or refused by pm_range_register()
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
}
EXPORT_SYMBOL_GPL(pm_range_unregister);

MODULE_DESCRIPTION("Forebay: which persistent memory is in use");
MODULE_LICENSE("GPL");
