// SPDX-License-Identifier: GPL-2.0-only
/*
 * Pages that mlock() has locked in a MAP_SYNC mapping are pinned for the user that made the mapping.
 *
 * The kernel calls no file system at mlock() or munlock(). So Forebay finds a lock when a page of it is
 * faulted in (fb_pin_locked_vma() in pin.c), or about to be reclaimed; the lock then counts if the user's
 * limit allows it. The end of a lock is found when the limit is hit, when a program asks for the state, and
 * by the worker when pages are short. Until then the count is too high, never too low.
 *
 * Locks change under io_sem held exclusively; vma.c says what the mappings are, under the kernel's lock.
 */
#include <linux/mm.h>

#include "../page/index.h"
#include "../page/walk.h"
#include "lock.h"
#include "tree.h"
#include "vma.h"

/* Gives up the pins of those pages from @pos to @end that the owner's mappings don't lock any more. */
static void fb_pin_refresh(struct fb_inode *fi, struct fb_pin_owner owner, pgoff_t pos, pgoff_t end)
{
	struct fb_pin_filter filter = { .unwanted = fb_pin_is_of_owner, .arg = &owner };
	pgoff_t first = pos, last = end, from;

	lockdep_assert_held_write(&fi->io_sem);
	while (pos <= end) {
		if (!fb_mapped_next(fi, &first, &last, VM_LOCKED, &owner.uid)) {
			first = end + 1;
			last = end;
		}
		from = 0;
		while (first > pos && fb_pins_give_up(fi, FB_LOCKED, &from, pos, first - 1, &filter))
			;
		pos = last + 1;
		first = pos;
		last = end;
	}
}

/* Some pages of the locks of all users; returns whether there are more, from *@first on. */
static bool fb_pins_refresh_some(struct fb_inode *fi, pgoff_t *first)
{
	struct rb_root_cached *locked = &fi->pins[FB_LOCKED];
	struct fb_pin *pin, *next;
	pgoff_t last;

	lockdep_assert_held_write(&fi->io_sem);
	pin = fb_pins_iter_first(locked, *first, FB_LAST_PAGE);
	if (!pin)
		return false;
	*first = max(*first, pin->first);
	last = min(*first + FB_PIN_LOOK - 1, FB_LAST_PAGE);
	for (; pin; pin = next) {
		next = fb_pins_iter_next(pin, *first, last);
		fb_pin_refresh(fi, pin->owner, max(*first, pin->first), min(last, pin->last));
	}
	*first = last + 1;
	return last < FB_LAST_PAGE;
}

/**
 * fb_pins_refresh() - let locks that are gone go
 * @fi: the inode; takes io_sem
 */
void fb_pins_refresh(struct fb_inode *fi)
{
	pgoff_t first = 0;
	bool more;

	if (RB_EMPTY_ROOT(&fi->pins[FB_LOCKED].rb_root))
		return;
	do {
		down_write(&fi->io_sem);
		more = fb_pins_refresh_some(fi, &first);
		up_write(&fi->io_sem);
		cond_resched();
	} while (more);
}

/**
 * fb_pins_refresh_all() - let locks that are gone go, of all files
 * @fsb: the mount
 */
void fb_pins_refresh_all(struct fb_sb *fsb)
{
	struct fb_walk walk;
	struct fb_inode *fi;

	fb_walk_begin(fsb, &fsb->locked, &walk);
	while ((fi = fb_walk_next(fsb, &walk))) {
		fb_pins_refresh(fi);
		iput(&fi->vfs_inode);
	}
}

/**
 * fb_pin_locked_page() - whether a page that is about to be reclaimed is locked
 * @fi: the inode; io_sem is held exclusively
 * @index: the page
 *
 * Return: true if it is, and the limit of a user that has locked it allows it: then it is pinned now.
 * Whether that user has CAP_IPC_LOCK isn't known here; a user with it pins the page again at the next
 * fault.
 */
bool fb_pin_locked_page(struct fb_inode *fi, pgoff_t index)
{
	struct fb_pin_owner owner = { .kind = FB_LOCKED, .uid = INVALID_UID };
	pgoff_t last = index;

	lockdep_assert_held_write(&fi->io_sem);
	while (fb_locker_next(fi, index, &owner.uid)) {
		if (__fb_pin_range(fi, &owner, index, &last, 0))
			continue;
		fb_pins_apply_some(fi, &last, index, true);
		return true;
	}
	return false;
}
