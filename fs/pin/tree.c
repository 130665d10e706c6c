// SPDX-License-Identifier: GPL-2.0-only
/*
 * Pins and their pages. A pin is a range of a file that belongs in PMem without a MAP_SYNC mapping, for an
 * owner. Its kind says how: attached; or never reclaimed, which fb_is_pinned() asks for: pinned by a call,
 * or locked by mlock() in a MAP_SYNC mapping. pin.c makes and ends pins; lock.c has those of mlock().
 *
 * Each owner has a set of pages of each file. A page that is pinned twice is in the set once, and is
 * charged once (limit.c). Sets of different owners overlap freely; a page is pinned as long as one of
 * them has it. The sets of an inode are in interval trees, one for each kind. A tree is needed because
 * attaching is free, so there may be any number of attached ranges, and each page that enters the index is
 * looked up. There are no more pinned ranges than pages that are charged.
 *
 * The trees change under io_sem held exclusively. A tree may be large, and so may a pin. No task should
 * wait for all of it, so io_sem is given back after every FB_PIN_LOOK pins or pages:
 *   - a new pin is in the tree, and charged, before its pages are marked (fb_page->resident). A page that
 *     is reclaimed in between comes back like one that was not in PMem;
 *   - a pin that is given up loses some pages at a time, and their charge with them.
 */
#include <linux/slab.h>

#include "../../compat/interval_tree.h"
#include "../page/index.h"
#include "limit.h"
#include "tree.h"

#define FB_PIN_FIRST(pin)	((pin)->first)
#define FB_PIN_LAST(pin)	((pin)->last)
COMPAT_INTERVAL_TREE(struct fb_pin, unsigned long, fb_pins)
INTERVAL_TREE_DEFINE(struct fb_pin, rb, unsigned long, subtree_last, FB_PIN_FIRST, FB_PIN_LAST,
		     , fb_pins)

/* Of the same kind. */
static bool fb_same_owner(const struct fb_pin_owner *a, const struct fb_pin_owner *b)
{
	return a->file == b->file && (a->kind != FB_LOCKED || uid_eq(a->uid, b->uid));
}

/**
 * fb_owner_has() - whether a pin of an owner has a page
 * @fi: the inode; io_sem is held, in either way
 * @owner: the owner
 * @index: the page
 */
bool fb_owner_has(struct fb_inode *fi, const struct fb_pin_owner *owner, pgoff_t index)
{
	struct fb_pin *pin = fb_pins_iter_first(&fi->pins[owner->kind], index, index);

	lockdep_assert_held(&fi->io_sem);
	while (pin && !fb_same_owner(&pin->owner, owner))
		pin = fb_pins_iter_next(pin, index, index);
	return pin;
}

/**
 * fb_is_pinned() - whether a page stays in PMem
 * @fi: the inode; io_sem is held, in either way, or the inode is being evicted
 * @index: the page
 */
bool fb_is_pinned(struct fb_inode *fi, pgoff_t index)
{
	return fb_pins_iter_first(&fi->pins[FB_PINNED_RANGE], index, index) ||
	       fb_pins_iter_first(&fi->pins[FB_LOCKED], index, index);
}

/**
 * fb_is_in_a_pin() - whether any page of a range belongs in PMem by a pin, of any kind
 * @fi: the inode; io_sem is held, in either way
 * @first: first page
 * @last: last page
 */
bool fb_is_in_a_pin(struct fb_inode *fi, pgoff_t first, pgoff_t last)
{
	lockdep_assert_held(&fi->io_sem);
	for (unsigned int kind = 0; kind < FB_NR_PIN_KINDS; kind++) {
		if (fb_pins_iter_first(&fi->pins[kind], first, last))
			return true;
	}
	return false;
}

/**
 * fb_pin_next() - the next stretch that is in a pin
 * @fi: the inode; io_sem is held, in either way
 * @kind: how
 * @first: where to begin; becomes the first page of the stretch
 * @last: where to end; becomes its last page. The next stretch may follow at once
 *
 * Return: whether there is one.
 */
bool fb_pin_next(struct fb_inode *fi, enum fb_pin_kind kind, pgoff_t *first, pgoff_t *last)
{
	struct fb_pin *pin = fb_pins_iter_first(&fi->pins[kind], *first, *last);

	lockdep_assert_held(&fi->io_sem);
	if (!pin)
		return false;
	*first = max(*first, pin->first);
	*last = min(*last, pin->last);
	return true;
}

/**
 * fb_pins_apply_some() - the pages of a range that are in PMem learn whether they are pinned
 * @fi: the inode; io_sem is held exclusively, or the inode is being evicted
 * @first: first page; becomes the next if there are more
 * @last: last page
 * @whole: all of them, not only FB_PIN_LOOK
 *
 * Return: whether there are more.
 */
bool fb_pins_apply_some(struct fb_inode *fi, unsigned long *first, pgoff_t last, bool whole)
{
	unsigned int looked = 0;
	struct fb_page *page;

	xa_for_each_range(&fi->index, *first, page, *first, last) {
		if (!whole && looked++ == FB_PIN_LOOK)
			return true;
		fb_page_set_resident(fi, page, fb_is_pinned(fi, *first));
	}
	return false;
}

static bool fb_pin_is_file_owned(const struct fb_pin *pin)
{
	return !pin->owner.file && pin->owner.kind != FB_LOCKED;
}

/* Files with locks, whether they have records or not, are where fb_pins_refresh_all() finds them. */
static void fb_pins_list(struct fb_inode *fi)
{
	struct fb_sb *fsb = FB_SB(fi->vfs_inode.i_sb);

	spin_lock(&fsb->inodes_lock);
	if (RB_EMPTY_ROOT(&fi->pins[FB_LOCKED].rb_root))
		list_del_init(&fi->lock_link.list);
	else if (list_empty(&fi->lock_link.list))
		list_add_tail(&fi->lock_link.list, &fsb->locked);
	spin_unlock(&fsb->inodes_lock);
}

static void fb_pin_insert(struct fb_inode *fi, struct fb_pin *pin)
{
	fb_pins_insert(pin, &fi->pins[pin->owner.kind]);
	fi->nr_file_owned += fb_pin_is_file_owned(pin);
	if (pin->owner.kind == FB_LOCKED)
		fb_pins_list(fi);
}

static void fb_pin_remove(struct fb_inode *fi, struct fb_pin *pin)
{
	fb_pins_remove(pin, &fi->pins[pin->owner.kind]);
	fi->nr_file_owned -= fb_pin_is_file_owned(pin);
}

/* Pages are not in a pin any more; nor is this in the tree with them. */
static void fb_pin_gave_up(struct fb_inode *fi, const struct fb_pin *pin, pgoff_t first, pgoff_t last)
{
	if (!pin->account)
		return;
	fb_pin_uncharge(fi, pin->account, last - first + 1);
	fb_pins_apply_some(fi, &first, last, true);
}

/**
 * fb_pin_free() - a pin ends
 * @fi: the inode; io_sem is held exclusively, or the inode is being evicted
 * @pin: the pin
 */
void fb_pin_free(struct fb_inode *fi, struct fb_pin *pin)
{
	fb_pin_remove(fi, pin);
	if (pin->owner.kind == FB_LOCKED)
		fb_pins_list(fi);
	fb_pin_gave_up(fi, pin, pin->first, pin->last);
	kfree(pin);
}

/**
 * fb_pin_shrink() - take the pages of a range out of a pin
 * @fi: the inode; io_sem is held exclusively
 * @pin: the pin, which is freed if no page is left
 * @first: first page
 * @last: last page
 */
void fb_pin_shrink(struct fb_inode *fi, struct fb_pin *pin, pgoff_t first, pgoff_t last)
{
	struct fb_pin *rest;

	lockdep_assert_held_write(&fi->io_sem);
	first = max(first, pin->first);
	last = min(last, pin->last);
	if (first == pin->first && last == pin->last) {
		fb_pin_free(fi, pin);
		return;
	}
	fb_pin_remove(fi, pin);
	if (first > pin->first && last < pin->last) {
		rest = kmalloc(sizeof(*rest), GFP_NOFS | __GFP_NOFAIL | __GFP_ACCOUNT);
		*rest = *pin;
		rest->first = last + 1;
		fb_pin_insert(fi, rest);
	}
	if (first > pin->first)
		pin->last = first - 1;
	else
		pin->first = last + 1;
	fb_pin_insert(fi, pin);
	fb_pin_gave_up(fi, pin, first, last);
}

static int fb_pin_new(struct list_head *fresh, const struct fb_pin_owner *owner, pgoff_t first,
		      pgoff_t last)
{
	struct fb_pin *pin = kzalloc(sizeof(*pin), GFP_NOFS | __GFP_ACCOUNT);

	if (!pin)
		return -ENOMEM;
	pin->first = first;
	pin->last = last;
	pin->owner = *owner;
	list_add(&pin->list, fresh);
	return 0;
}

/*
 * Pins for the stretches of a range that @owner lacks; returns how many pages these have, or an error.
 * *@last comes down to the end of the pin of @owner that is one of FB_PIN_LOOK.
 */
static long fb_pin_gaps(struct fb_inode *fi, const struct fb_pin_owner *owner, pgoff_t first,
			pgoff_t *last, struct list_head *fresh)
{
	struct fb_pin *pin = fb_pins_iter_first(&fi->pins[owner->kind], first, *last);
	const pgoff_t begin = first;
	unsigned int looked = 0;
	long pages = 0;
	pgoff_t end;

	while (first <= *last) {
		if (pin && !fb_same_owner(&pin->owner, owner)) {
			pin = fb_pins_iter_next(pin, begin, *last);
			continue;
		}
		if (looked++ == FB_PIN_LOOK) {
			*last = first - 1;
			break;
		}
		end = pin ? pin->first : *last + 1;
		if (first < end) {
			if (fb_pin_new(fresh, owner, first, end - 1))
				return -ENOMEM;
			pages += end - first;
		}
		first = pin ? pin->last + 1 : end;
		if (pin)
			pin = fb_pins_iter_next(pin, begin, *last);
	}
	return pages;
}

/**
 * __fb_pin_range() - pin a range, as far as that is done in one hold of io_sem
 * @fi: the inode; io_sem is held exclusively
 * @owner: whose pin it is
 * @first: first page
 * @last: last page, which may come down
 * @mark: of the call, for fb_pin_undo()
 *
 * Up to *@last, or nothing: the pages are pinned and accounted, and have to be told
 * (fb_pins_apply_some()).
 *
 * Return: 0 or -ENOMEM.
 */
int __fb_pin_range(struct fb_inode *fi, const struct fb_pin_owner *owner, pgoff_t first, pgoff_t *last,
		   u64 mark)
{
	struct fb_account *account = NULL;
	struct fb_pin *pin, *next;
	LIST_HEAD(fresh);
	long pages;

	lockdep_assert_held_write(&fi->io_sem);
	pages = fb_pin_gaps(fi, owner, first, last, &fresh);
	if (pages > 0 && owner->kind != FB_ATTACHED)
		account = fb_pin_charge(fi, owner->uid, owner->privileged, pages);
	if (IS_ERR(account))
		pages = PTR_ERR(account);
	list_for_each_entry_safe(pin, next, &fresh, list) {
		if (pages < 0) {
			kfree(pin);
			continue;
		}
		pin->account = account;
		pin->mark = mark;
		fb_pin_insert(fi, pin);
	}
	return pages < 0 ? pages : 0;
}

/**
 * fb_pins_hold_inode() - file-owned pins hold a reference on the inode
 * @fi: the inode; io_sem is held exclusively
 *
 * Return: whether the caller has a reference to put when it has given io_sem back.
 */
bool fb_pins_hold_inode(struct fb_inode *fi)
{
	struct fb_sb *fsb = FB_SB(fi->vfs_inode.i_sb);
	bool hold = fi->nr_file_owned, held;

	lockdep_assert_held_write(&fi->io_sem);
	spin_lock(&fsb->inodes_lock);
	held = !list_empty(&fi->file_owned);
	if (hold && !held) {
		ihold(&fi->vfs_inode);
		list_add(&fi->file_owned, &fsb->file_owned);
	} else if (!hold) {
		list_del_init(&fi->file_owned);
	}
	spin_unlock(&fsb->inodes_lock);
	return held && !hold;
}

/* The first pin, in the order of their first pages, of those that begin at @from or behind it. */
static struct fb_pin *fb_pin_from(struct rb_root_cached *pins, pgoff_t from)
{
	struct rb_node *node = pins->rb_root.rb_node;
	struct fb_pin *pin, *found = NULL;

	while (node) {
		pin = rb_entry(node, struct fb_pin, rb);
		if (pin->first >= from) {
			found = pin;
			node = node->rb_left;
		} else {
			node = node->rb_right;
		}
	}
	return found;
}

/**
 * fb_pins_give_up() - give up what pins of a kind that a filter wants have of a range
 * @fi: the inode; io_sem is held exclusively
 * @kind: the kind
 * @from: 0 at the start; moves on
 * @first: first page
 * @last: last page
 * @filter: which pins
 *
 * As far as that is done in one hold of io_sem.
 *
 * Return: whether there is more, of pins that begin at *@from or behind it.
 */
bool fb_pins_give_up(struct fb_inode *fi, enum fb_pin_kind kind, pgoff_t *from, pgoff_t first,
		     pgoff_t last, const struct fb_pin_filter *filter)
{
	struct rb_root_cached *pins = &fi->pins[kind];
	struct fb_pin *pin, *next;
	unsigned long looked = 0;
	pgoff_t pos, end;

	lockdep_assert_held_write(&fi->io_sem);
	pin = *from ? fb_pin_from(pins, *from) : fb_pins_iter_first(pins, first, last);
	for (; pin && pin->first <= last; pin = next) {
		if (looked++ >= FB_PIN_LOOK && pin->first > *from) {
			*from = pin->first;
			return true;
		}
		next = fb_pins_iter_next(pin, first, last);
		if (pin->last < first || !filter->unwanted(pin, filter->arg))
			continue;
		pos = max(first, pin->first);
		end = min(last, pin->last);
		if (pin->account && end - pos >= FB_PIN_LOOK) {
			*from = pin->first;
			fb_pin_shrink(fi, pin, pos, pos + FB_PIN_LOOK - 1);
			return true;
		}
		looked += pin->account ? end - pos : 0;
		fb_pin_shrink(fi, pin, pos, end);
	}
	return false;
}

/**
 * fb_pin_is_of_owner() - whether a pin is an owner's; for a struct fb_pin_filter
 * @pin: the pin
 * @owner: a struct fb_pin_owner, of the same kind
 */
bool fb_pin_is_of_owner(const struct fb_pin *pin, const void *owner)
{
	return fb_same_owner(&pin->owner, owner);
}
