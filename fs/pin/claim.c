// SPDX-License-Identifier: GPL-2.0-only
/*
 * The sets of claimed pages: ranges of a file that belong in PMem without a MAP_SYNC mapping (attached), and
 * ranges whose pages are never reclaimed (pinned by a call, or locked by mlock() in a MAP_SYNC mapping).
 * pin.c makes and ends claims; lock.c has those of mlock().
 *
 * Each claimant has a set of pages of each file. A page that is claimed twice is in the set once, and is
 * charged once (limit.c). Sets of different claimants overlap freely; a page is pinned as long as one of
 * them has it. The sets of an inode are in interval trees, one for each kind. A tree is needed because
 * attaching is free, so there may be any number of attached ranges, and each page that enters the index is
 * looked up. There are no more pinned ranges than pages that are charged.
 *
 * The trees change under io_sem held exclusively. A tree may be large, and so may a claim. No task should
 * wait for all of it, so io_sem is given back after every FB_CLAIM_LOOK claims or pages:
 *   - a new claim is in the tree, and charged, before its pages are marked (fb_page->resident). A page that
 *     is reclaimed in between comes back like one that was not in PMem;
 *   - a claim that is given up loses some pages at a time, and their charge with them.
 */
#include <linux/interval_tree_generic.h>
#include <linux/slab.h>

#include "../page/index.h"
#include "claim.h"
#include "limit.h"
#include "vma.h"

#define FB_CLAIM_FIRST(claim)	((claim)->first)
#define FB_CLAIM_LAST(claim)	((claim)->last)
INTERVAL_TREE_DEFINE(struct fb_claim, rb, unsigned long, subtree_last, FB_CLAIM_FIRST, FB_CLAIM_LAST,
		     , fb_claims)

/* Of the same kind. */
static bool fb_same_claimant(const struct fb_claimant *a, const struct fb_claimant *b)
{
	return a->file == b->file && (a->kind != FB_LOCKED || uid_eq(a->uid, b->uid));
}

/**
 * fb_has_claimed() - whether a claim of a claimant has a page
 * @fi: the inode; io_sem is held, in either way
 * @owner: the claimant
 * @index: the page
 */
bool fb_has_claimed(struct fb_inode *fi, const struct fb_claimant *owner, pgoff_t index)
{
	struct fb_claim *claim = fb_claims_iter_first(&fi->claims[owner->kind], index, index);

	while (claim && !fb_same_claimant(&claim->owner, owner))
		claim = fb_claims_iter_next(claim, index, index);
	return claim;
}

/**
 * fb_is_pinned() - whether a page stays in PMem
 * @fi: the inode; io_sem is held, in either way
 * @index: the page
 */
bool fb_is_pinned(struct fb_inode *fi, pgoff_t index)
{
	return fb_claims_iter_first(&fi->claims[FB_PINNED_RANGE], index, index) ||
	       fb_claims_iter_first(&fi->claims[FB_LOCKED], index, index);
}

/**
 * fb_is_claimed() - whether any page of a range belongs in PMem by a claim
 * @fi: the inode; io_sem is held, in either way
 * @first: first page
 * @last: last page
 */
static bool fb_is_claimed(struct fb_inode *fi, pgoff_t first, pgoff_t last)
{
	for (unsigned int kind = 0; kind < FB_NR_CLAIM_KINDS; kind++) {
		if (fb_claims_iter_first(&fi->claims[kind], first, last))
			return true;
	}
	return false;
}

/**
 * fb_belongs_in_pmem() - whether any page of a range is claimed, or in a MAP_SYNC mapping
 * @fi: the inode; io_sem is held, in either way
 * @first: first page
 * @last: last page
 */
bool fb_belongs_in_pmem(struct fb_inode *fi, pgoff_t first, pgoff_t last)
{
	lockdep_assert_held(&fi->io_sem);
	return fb_is_claimed(fi, first, last) || fb_mapped_next(fi, &first, &last, 0, NULL);
}

/**
 * fb_belongs_in_pmem_nowait() - the same where sleeping is not allowed
 * @fi: the inode; io_sem is held
 * @first: first page
 * @last: last page
 *
 * Return: true also if that can't be known now.
 */
bool fb_belongs_in_pmem_nowait(struct fb_inode *fi, pgoff_t first, pgoff_t last)
{
	lockdep_assert_held(&fi->io_sem);
	return fb_is_claimed(fi, first, last) || fb_mapped_nowait(fi, first, last);
}

/**
 * fb_claimed_next() - the next stretch that is claimed
 * @fi: the inode; io_sem is held, in either way
 * @kind: how
 * @first: where to begin; becomes the first page of the stretch
 * @last: where to end; becomes its last page. The next stretch may follow at once
 *
 * Return: whether there is one.
 */
bool fb_claimed_next(struct fb_inode *fi, enum fb_claim_kind kind, pgoff_t *first, pgoff_t *last)
{
	struct fb_claim *claim = fb_claims_iter_first(&fi->claims[kind], *first, *last);

	if (!claim)
		return false;
	*first = max(*first, claim->first);
	*last = min(*last, claim->last);
	return true;
}

/**
 * fb_claims_apply_some() - the pages of a range that are in PMem learn whether they are pinned
 * @fi: the inode; io_sem is held exclusively, or the inode is being evicted
 * @first: first page; becomes the next if there are more
 * @last: last page
 * @whole: all of them, not only FB_CLAIM_LOOK
 *
 * Return: whether there are more.
 */
bool fb_claims_apply_some(struct fb_inode *fi, unsigned long *first, pgoff_t last, bool whole)
{
	unsigned int looked = 0;
	struct fb_page *page;

	xa_for_each_range(&fi->index, *first, page, *first, last) {
		if (!whole && looked++ == FB_CLAIM_LOOK)
			return true;
		fb_page_set_resident(fi, page, fb_is_pinned(fi, *first));
	}
	return false;
}

static bool fb_claim_is_file_owned(const struct fb_claim *claim)
{
	return !claim->owner.file && claim->owner.kind != FB_LOCKED;
}

/* Files with locks, whether they have records or not, are where fb_claims_refresh_all() finds them. */
static void fb_claims_list(struct fb_inode *fi)
{
	struct fb_sb *fsb = FB_SB(fi->vfs_inode.i_sb);

	spin_lock(&fsb->inodes_lock);
	if (RB_EMPTY_ROOT(&fi->claims[FB_LOCKED].rb_root))
		list_del_init(&fi->lock_link.list);
	else if (list_empty(&fi->lock_link.list))
		list_add_tail(&fi->lock_link.list, &fsb->locked);
	spin_unlock(&fsb->inodes_lock);
}

static void fb_claim_insert(struct fb_inode *fi, struct fb_claim *claim)
{
	fb_claims_insert(claim, &fi->claims[claim->owner.kind]);
	fi->nr_file_owned += fb_claim_is_file_owned(claim);
	if (claim->owner.kind == FB_LOCKED)
		fb_claims_list(fi);
}

static void fb_claim_remove(struct fb_inode *fi, struct fb_claim *claim)
{
	fb_claims_remove(claim, &fi->claims[claim->owner.kind]);
	fi->nr_file_owned -= fb_claim_is_file_owned(claim);
}

/* Pages are not in a claim any more; nor is this in the tree with them. */
static void fb_claim_gave_up(struct fb_inode *fi, const struct fb_claim *claim, pgoff_t first, pgoff_t last)
{
	if (!claim->account)
		return;
	fb_pin_uncharge(fi, claim->account, last - first + 1);
	fb_claims_apply_some(fi, &first, last, true);
}

/**
 * fb_claim_free() - a claim ends
 * @fi: the inode; io_sem is held exclusively, or the inode is being evicted
 * @claim: the claim
 */
void fb_claim_free(struct fb_inode *fi, struct fb_claim *claim)
{
	fb_claim_remove(fi, claim);
	if (claim->owner.kind == FB_LOCKED)
		fb_claims_list(fi);
	fb_claim_gave_up(fi, claim, claim->first, claim->last);
	kfree(claim);
}

/**
 * fb_claim_shrink() - take the pages of a range out of a claim
 * @fi: the inode; io_sem is held exclusively
 * @claim: the claim, which is freed if no page is left
 * @first: first page
 * @last: last page
 */
void fb_claim_shrink(struct fb_inode *fi, struct fb_claim *claim, pgoff_t first, pgoff_t last)
{
	struct fb_claim *rest;

	first = max(first, claim->first);
	last = min(last, claim->last);
	if (first == claim->first && last == claim->last) {
		fb_claim_free(fi, claim);
		return;
	}
	fb_claim_remove(fi, claim);
	if (first > claim->first && last < claim->last) {
		rest = kmalloc(sizeof(*rest), GFP_NOFS | __GFP_NOFAIL | __GFP_ACCOUNT);
		*rest = *claim;
		rest->first = last + 1;
		fb_claim_insert(fi, rest);
	}
	if (first > claim->first)
		claim->last = first - 1;
	else
		claim->first = last + 1;
	fb_claim_insert(fi, claim);
	fb_claim_gave_up(fi, claim, first, last);
}

static int fb_claim_new(struct list_head *fresh, const struct fb_claimant *owner, pgoff_t first,
			pgoff_t last)
{
	struct fb_claim *claim = kzalloc(sizeof(*claim), GFP_NOFS | __GFP_ACCOUNT);

	if (!claim)
		return -ENOMEM;
	claim->first = first;
	claim->last = last;
	claim->owner = *owner;
	list_add(&claim->list, fresh);
	return 0;
}

/*
 * Claims for the stretches of a range that @owner lacks; returns how many pages these have, or an error.
 * *@last comes down to the end of the claim of @owner that is one of FB_CLAIM_LOOK.
 */
static long fb_claim_gaps(struct fb_inode *fi, const struct fb_claimant *owner, pgoff_t first,
			  pgoff_t *last, struct list_head *fresh)
{
	struct fb_claim *claim = fb_claims_iter_first(&fi->claims[owner->kind], first, *last);
	const pgoff_t begin = first;
	unsigned int looked = 0;
	long pages = 0;
	pgoff_t end;

	while (first <= *last) {
		if (claim && !fb_same_claimant(&claim->owner, owner)) {
			claim = fb_claims_iter_next(claim, begin, *last);
			continue;
		}
		if (looked++ == FB_CLAIM_LOOK) {
			*last = first - 1;
			break;
		}
		end = claim ? claim->first : *last + 1;
		if (first < end) {
			if (fb_claim_new(fresh, owner, first, end - 1))
				return -ENOMEM;
			pages += end - first;
		}
		first = claim ? claim->last + 1 : end;
		if (claim)
			claim = fb_claims_iter_next(claim, begin, *last);
	}
	return pages;
}

/**
 * __fb_claim() - claim a range, as far as that is done in one hold of io_sem
 * @fi: the inode; io_sem is held exclusively
 * @owner: whose claim it is
 * @first: first page
 * @last: last page, which may come down
 * @mark: of the call, for fb_claim_undo()
 *
 * Up to *@last, or nothing: the pages are claimed and paid for, and have to be told
 * (fb_claims_apply_some()).
 *
 * Return: 0 or -ENOMEM.
 */
int __fb_claim(struct fb_inode *fi, const struct fb_claimant *owner, pgoff_t first, pgoff_t *last,
	       u64 mark)
{
	struct fb_account *account = NULL;
	struct fb_claim *claim, *next;
	LIST_HEAD(fresh);
	long pages;

	lockdep_assert_held_write(&fi->io_sem);
	pages = fb_claim_gaps(fi, owner, first, last, &fresh);
	if (pages > 0 && owner->kind != FB_ATTACHED)
		account = fb_pin_charge(fi, owner->uid, owner->privileged, pages);
	if (IS_ERR(account))
		pages = PTR_ERR(account);
	list_for_each_entry_safe(claim, next, &fresh, list) {
		if (pages < 0) {
			kfree(claim);
			continue;
		}
		claim->account = account;
		claim->mark = mark;
		fb_claim_insert(fi, claim);
	}
	return pages < 0 ? pages : 0;
}

/**
 * fb_claims_hold_inode() - file-owned claims hold a reference on the inode
 * @fi: the inode; io_sem is held exclusively
 *
 * Return: whether the caller has a reference to put when it has given io_sem back.
 */
bool fb_claims_hold_inode(struct fb_inode *fi)
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

/* The first claim, in the order of their first pages, of those that begin at @from or behind it. */
static struct fb_claim *fb_claim_from(struct rb_root_cached *claims, pgoff_t from)
{
	struct rb_node *node = claims->rb_root.rb_node;
	struct fb_claim *claim, *found = NULL;

	while (node) {
		claim = rb_entry(node, struct fb_claim, rb);
		if (claim->first >= from) {
			found = claim;
			node = node->rb_left;
		} else {
			node = node->rb_right;
		}
	}
	return found;
}

/**
 * fb_claims_give_up() - give up what claims of a kind that a filter wants have of a range
 * @fi: the inode; io_sem is held exclusively
 * @kind: the kind
 * @from: 0 at the start; moves on
 * @first: first page
 * @last: last page
 * @filter: which claims
 *
 * As far as that is done in one hold of io_sem.
 *
 * Return: whether there is more, of claims that begin at *@from or behind it.
 */
bool fb_claims_give_up(struct fb_inode *fi, enum fb_claim_kind kind, pgoff_t *from, pgoff_t first,
		       pgoff_t last, const struct fb_claim_filter *filter)
{
	struct rb_root_cached *claims = &fi->claims[kind];
	struct fb_claim *claim, *next;
	unsigned long looked = 0;
	pgoff_t pos, end;

	lockdep_assert_held_write(&fi->io_sem);
	claim = *from ? fb_claim_from(claims, *from) : fb_claims_iter_first(claims, first, last);
	for (; claim && claim->first <= last; claim = next) {
		if (looked++ >= FB_CLAIM_LOOK && claim->first > *from) {
			*from = claim->first;
			return true;
		}
		next = fb_claims_iter_next(claim, first, last);
		if (claim->last < first || !filter->unwanted(claim, filter->arg))
			continue;
		pos = max(first, claim->first);
		end = min(last, claim->last);
		if (claim->account && end - pos >= FB_CLAIM_LOOK) {
			*from = claim->first;
			fb_claim_shrink(fi, claim, pos, pos + FB_CLAIM_LOOK - 1);
			return true;
		}
		looked += claim->account ? end - pos : 0;
		fb_claim_shrink(fi, claim, pos, end);
	}
	return false;
}

/**
 * fb_claim_is_of_owner() - whether a claim is a claimant's; for a struct fb_claim_filter
 * @claim: the claim
 * @owner: a struct fb_claimant, of the same kind
 */
bool fb_claim_is_of_owner(const struct fb_claim *claim, const void *owner)
{
	return fb_same_claimant(&claim->owner, owner);
}
