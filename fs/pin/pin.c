// SPDX-License-Identifier: GPL-2.0-only
/*
 * Claims: ranges of a file that belong in PMem without a MAP_SYNC mapping (attached), and ranges whose
 * pages are never reclaimed (pinned by a call, or locked by mlock() in a MAP_SYNC mapping).
 *
 * Each claimant has a set of pages of each file. A page that is claimed twice is in the set once, and is
 * charged once (limit.c). Sets of different claimants overlap freely; a page is pinned as long as one of
 * them has it. The sets of an inode are in interval trees, one for each kind. A tree is needed because
 * attaching is free, so there may be any number of attached ranges, and each page that enters the index is
 * looked up. There are no more pinned ranges than pages that are charged.
 *
 * A claim has one of three owners, which decides when the claim ends:
 *   - an open file description: its claims end with its last close;
 *   - the file itself (FOREBAY_KEEP): its claims end when they are undone, with the file's last name, and
 *     at unmount. They hold a reference on the inode, which is on fb_sb->kept;
 *   - a user: its claims are what mlock() has locked.
 *
 * The kernel calls no file system at mlock() or munlock(). So Forebay finds a lock when a page of it is
 * faulted in, or about to be reclaimed; the lock then counts if the user's limit allows it. The end of a
 * lock is found when the limit is hit, when a program asks for the state, and by the worker when pages are
 * short. Until then the count is too high, never too low.
 *
 * A truncation takes the pinned pages beyond the new end out of every set; attached ranges stay.
 *
 * The trees change under io_sem held exclusively. A tree may be large, and so may a claim. No task should
 * wait for all of it, so io_sem is given back after every FB_CLAIM_LOOK claims or pages:
 *   - a new claim is in the tree, and charged, before its pages are marked (fb_page->resident). A page that
 *     is reclaimed in between comes back like one that was not in PMem;
 *   - a claim that is given up loses some pages at a time, and their charge with them.
 */
#include <linux/capability.h>
#include <linux/interval_tree_generic.h>
#include <linux/mm.h>
#include <linux/slab.h>

#include "../page/index.h"
#include "../page/walk.h"
#include "limit.h"
#include "pin.h"
#include "vma.h"

/* Claims, or pages, looked at under one hold of io_sem. */
#define FB_CLAIM_LOOK	256

struct fb_claim {
	struct rb_node rb;
	unsigned long first, last, subtree_last;
	struct fb_claimant owner;
	struct fb_account *account;	/* NULL: costs nothing */
	u64 mark;			/* of the call that made it */
	struct list_head list;
};

#define FB_CLAIM_FIRST(claim)	((claim)->first)
#define FB_CLAIM_LAST(claim)	((claim)->last)
INTERVAL_TREE_DEFINE(struct fb_claim, rb, unsigned long, subtree_last, FB_CLAIM_FIRST, FB_CLAIM_LAST,
		     static inline, fb_claims)

/* Of the same kind. */
static bool fb_same_claimant(const struct fb_claimant *a, const struct fb_claimant *b)
{
	return a->file == b->file && (a->kind != FB_LOCKED || uid_eq(a->uid, b->uid));
}

/* True if a claim of this claimant has the page. */
static bool fb_has_claimed(struct fb_inode *fi, const struct fb_claimant *owner, pgoff_t index)
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

/*
 * The pages of a range that are in PMem learn whether they are pinned; up to FB_CLAIM_LOOK of them, if that
 * is not @whole. io_sem is held exclusively, or the inode is being evicted. Returns whether there are more,
 * and *@first is the next.
 */
static bool fb_claims_apply_some(struct fb_inode *fi, unsigned long *first, pgoff_t last, bool whole)
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

/* The same for all of them; takes io_sem. */
static void fb_claims_apply(struct fb_inode *fi, pgoff_t first, pgoff_t last)
{
	bool more;

	do {
		down_write(&fi->io_sem);
		more = fb_claims_apply_some(fi, &first, last, false);
		up_write(&fi->io_sem);
		cond_resched();
	} while (more);
}

static bool fb_claim_is_kept(const struct fb_claim *claim)
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
	fi->nr_kept += fb_claim_is_kept(claim);
	if (claim->owner.kind == FB_LOCKED)
		fb_claims_list(fi);
}

static void fb_claim_remove(struct fb_inode *fi, struct fb_claim *claim)
{
	fb_claims_remove(claim, &fi->claims[claim->owner.kind]);
	fi->nr_kept -= fb_claim_is_kept(claim);
}

/* Pages are not in a claim any more; nor is this in the tree with them. */
static void fb_claim_gave_up(struct fb_inode *fi, const struct fb_claim *claim, pgoff_t first, pgoff_t last)
{
	if (!claim->account)
		return;
	fb_pin_uncharge(fi, claim->account, last - first + 1);
	fb_claims_apply_some(fi, &first, last, true);
}

static void fb_claim_free(struct fb_inode *fi, struct fb_claim *claim)
{
	fb_claim_remove(fi, claim);
	if (claim->owner.kind == FB_LOCKED)
		fb_claims_list(fi);
	fb_claim_gave_up(fi, claim, claim->first, claim->last);
	kfree(claim);
}

/* Takes the pages of a range out of a claim. */
static void fb_claim_shrink(struct fb_inode *fi, struct fb_claim *claim, pgoff_t first, pgoff_t last)
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

/*
 * Up to *@last, which may come down, or nothing: the pages are claimed and paid for, and have to be told
 * (fb_claims_apply()). io_sem is held exclusively.
 */
static int __fb_claim(struct fb_inode *fi, const struct fb_claimant *owner, pgoff_t first, pgoff_t *last,
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

/*
 * Claims of the file's own keep the inode in memory; io_sem is held exclusively. Returns whether the
 * caller has a reference to put when it has given io_sem back.
 */
static bool fb_claims_keep(struct fb_inode *fi)
{
	struct fb_sb *fsb = FB_SB(fi->vfs_inode.i_sb);
	bool keep = fi->nr_kept, kept;

	lockdep_assert_held_write(&fi->io_sem);
	spin_lock(&fsb->inodes_lock);
	kept = !list_empty(&fi->kept);
	if (keep && !kept) {
		ihold(&fi->vfs_inode);
		list_add(&fi->kept, &fsb->kept);
	} else if (!keep) {
		list_del_init(&fi->kept);
	}
	spin_unlock(&fsb->inodes_lock);
	return kept && !keep;
}

/* Which claims are to be given up. */
struct fb_claim_filter {
	bool (*unwanted)(const struct fb_claim *claim, const void *arg);
	const void *arg;
};

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

/*
 * Gives up what claims of a kind that the filter wants have of a range, as far as that is done in one hold
 * of io_sem, which is exclusive. Returns whether there is more, of claims that begin at *@from, which is 0
 * at the start, or behind it.
 */
static bool fb_claims_give_up(struct fb_inode *fi, enum fb_claim_kind kind, pgoff_t *from, pgoff_t first,
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

/* The same for the whole range; takes io_sem. The caller has a reference. */
static void fb_claims_give_up_all(struct fb_inode *fi, enum fb_claim_kind kind, pgoff_t first, pgoff_t last,
				  const struct fb_claim_filter *filter)
{
	unsigned int puts = 0;
	pgoff_t from = 0;
	bool more;

	if (first > last)
		return;
	do {
		down_write(&fi->io_sem);
		more = fb_claims_give_up(fi, kind, &from, first, last, filter);
		puts += fb_claims_keep(fi);
		up_write(&fi->io_sem);
		cond_resched();
	} while (more);
	while (puts--)
		iput(&fi->vfs_inode);
}

static bool fb_claim_is_of_owner(const struct fb_claim *claim, const void *owner)
{
	return fb_same_claimant(&claim->owner, owner);
}

/* What of a part of one claimant's lock isn't locked any more doesn't count; io_sem is held exclusively. */
static void fb_claim_refresh(struct fb_inode *fi, struct fb_claimant owner, pgoff_t pos, pgoff_t end)
{
	struct fb_claim_filter filter = { .unwanted = fb_claim_is_of_owner, .arg = &owner };
	pgoff_t first = pos, last = end, from;

	while (pos <= end) {
		if (!fb_mapped_next(fi, &first, &last, VM_LOCKED, &owner.uid)) {
			first = end + 1;
			last = end;
		}
		from = 0;
		while (first > pos && fb_claims_give_up(fi, FB_LOCKED, &from, pos, first - 1, &filter))
			;
		pos = last + 1;
		first = pos;
		last = end;
	}
}

/* Some pages of the locks of all users; returns whether there are more, from *@first on. */
static bool fb_claims_refresh_some(struct fb_inode *fi, pgoff_t *first)
{
	struct rb_root_cached *locked = &fi->claims[FB_LOCKED];
	struct fb_claim *claim, *next;
	pgoff_t last;

	lockdep_assert_held_write(&fi->io_sem);
	claim = fb_claims_iter_first(locked, *first, FB_LAST_PAGE);
	if (!claim)
		return false;
	*first = max(*first, claim->first);
	last = min(*first + FB_CLAIM_LOOK - 1, FB_LAST_PAGE);
	for (; claim; claim = next) {
		next = fb_claims_iter_next(claim, *first, last);
		fb_claim_refresh(fi, claim->owner, max(*first, claim->first), min(last, claim->last));
	}
	*first = last + 1;
	return last < FB_LAST_PAGE;
}

/**
 * fb_claims_refresh() - let locks that are gone go
 * @fi: the inode; takes io_sem
 */
void fb_claims_refresh(struct fb_inode *fi)
{
	pgoff_t first = 0;
	bool more;

	if (RB_EMPTY_ROOT(&fi->claims[FB_LOCKED].rb_root))
		return;
	do {
		down_write(&fi->io_sem);
		more = fb_claims_refresh_some(fi, &first);
		up_write(&fi->io_sem);
		cond_resched();
	} while (more);
}

/**
 * fb_claims_refresh_all() - let locks that are gone go, of all files
 * @fsb: the mount
 */
void fb_claims_refresh_all(struct fb_sb *fsb)
{
	struct fb_walk walk;
	struct fb_inode *fi;

	fb_walk_begin(fsb, &fsb->locked, &walk);
	while ((fi = fb_walk_next(fsb, &walk))) {
		fb_claims_refresh(fi);
		iput(&fi->vfs_inode);
	}
}

/* One hold of io_sem; *@first becomes the next page to be claimed. */
static int fb_claim_some(struct fb_inode *fi, const struct fb_claimant *owner, pgoff_t *first, pgoff_t last,
			 u64 mark)
{
	int err;

	if (down_write_killable(&fi->io_sem))
		return -EINTR;
	if (!owner->file && owner->kind != FB_LOCKED && !fi->vfs_inode.i_nlink)
		err = -ENOENT;	/* the claim would never end: the last name has gone */
	else
		err = __fb_claim(fi, owner, *first, &last, mark);
	if (!err)
		fb_claims_keep(fi);
	up_write(&fi->io_sem);
	*first = last + 1;
	return err;
}

/**
 * fb_claim() - claim a range
 * @fi: the inode
 * @owner: whose claim it is
 * @first: first page
 * @last: last page
 * @mark: becomes what fb_claim_undo() wants
 *
 * Return: 0; -ENOMEM over a limit, -EINTR if the task is killed, -ENOENT if the claim is to stay with a
 * file that has no name left: then nothing has changed.
 */
int fb_claim(struct fb_inode *fi, const struct fb_claimant *owner, pgoff_t first, pgoff_t last, u64 *mark)
{
	static atomic64_t marks;
	bool again = true;
	pgoff_t next;
	int err;

	*mark = atomic64_inc_return(&marks);
	for (;;) {
		for (next = first, err = 0; !err && next <= last; cond_resched())
			err = fb_claim_some(fi, owner, &next, last, *mark);
		if (!err)
			break;
		fb_claim_undo(fi, *mark);
		if (err != -ENOMEM || owner->kind == FB_ATTACHED || !again)
			return err;
		fb_claims_refresh_all(FB_SB(fi->vfs_inode.i_sb));
		again = false;
	}
	if (owner->kind != FB_ATTACHED)
		fb_claims_apply(fi, first, last);
	return 0;
}

/**
 * fb_unclaim() - give claims on a range up
 * @fi: the inode; the caller has a reference
 * @owner: whose
 * @first: first page
 * @last: last page
 */
void fb_unclaim(struct fb_inode *fi, const struct fb_claimant *owner, pgoff_t first, pgoff_t last)
{
	struct fb_claim_filter filter = { .unwanted = fb_claim_is_of_owner, .arg = owner };

	fb_claims_give_up_all(fi, owner->kind, first, last, &filter);
}

static bool fb_claim_has_mark(const struct fb_claim *claim, const void *mark)
{
	return claim->mark == *(const u64 *)mark;
}

/**
 * fb_claim_undo() - give up what one call has claimed
 * @fi: the inode; the caller has a reference
 * @mark: from fb_claim()
 */
void fb_claim_undo(struct fb_inode *fi, u64 mark)
{
	struct fb_claim_filter filter = { .unwanted = fb_claim_has_mark, .arg = &mark };

	for (unsigned int kind = 0; kind < FB_NR_CLAIM_KINDS; kind++)
		fb_claims_give_up_all(fi, kind, 0, FB_LAST_PAGE, &filter);
}

static bool fb_claim_is_of(const struct fb_claim *claim, const void *file)
{
	return claim->owner.kind != FB_LOCKED && claim->owner.file == file;
}

/**
 * fb_claims_closed() - an open file description is closed for the last time
 * @fi: its inode; the caller has a reference
 * @file: the file; NULL: give up the file's own claims (FOREBAY_KEEP)
 */
void fb_claims_closed(struct fb_inode *fi, const struct file *file)
{
	struct fb_claim_filter filter = { .unwanted = fb_claim_is_of, .arg = file };

	if (!fb_has_claims(fi))
		return;
	for (unsigned int kind = 0; kind < FB_NR_CLAIM_KINDS; kind++)
		fb_claims_give_up_all(fi, kind, 0, FB_LAST_PAGE, &filter);
}

/**
 * fb_claims_cut() - a file has become shorter
 * @fi: the inode, of which the caller has a reference; io_sem is held exclusively, the pages are gone
 * @beyond: the first page that is not in the file any more
 */
void fb_claims_cut(struct fb_inode *fi, pgoff_t beyond)
{
	struct fb_claim *claim;

	lockdep_assert_held_write(&fi->io_sem);
	for (unsigned int kind = 0; kind < FB_NR_CLAIM_KINDS; kind++) {
		while (kind != FB_ATTACHED &&
		       (claim = fb_claims_iter_first(&fi->claims[kind], beyond, FB_LAST_PAGE))) {
			fb_claim_shrink(fi, claim, beyond, FB_LAST_PAGE);
			cond_resched();
		}
	}
	if (fb_claims_keep(fi))
		iput(&fi->vfs_inode);
}

/* Another task may fault it in: process_vm_writev(), or a kernel thread that has all capabilities. */
static bool fb_vma_is_privileged(const struct vm_area_struct *vma)
{
	return current->mm == vma->vm_mm && !(current->flags & PF_KTHREAD) &&
	       has_capability_noaudit(current, CAP_IPC_LOCK);
}

/**
 * fb_claim_locked_vma() - a page of a locked MAP_SYNC mapping is faulted in
 * @fi: the inode; takes io_sem
 * @vma: the mapping, all of which is claimed for its user
 * @index: the page
 *
 * Return: 0; -ENOMEM: the user has too much pinned, and this mapping is not.
 */
int fb_claim_locked_vma(struct fb_inode *fi, struct vm_area_struct *vma, pgoff_t index)
{
	struct fb_claimant owner = { .kind = FB_LOCKED, .uid = fb_vma_user(vma),
				     .privileged = fb_vma_is_privileged(vma) };
	pgoff_t beyond = fb_pages_in_file(fi);
	pgoff_t last = min(vma->vm_pgoff + vma_pages(vma), beyond) - 1;
	bool claimed;
	u64 mark;

	if (index >= beyond)	/* the fault will say so */
		return 0;
	if (down_read_killable(&fi->io_sem))
		return -EINTR;
	claimed = fb_has_claimed(fi, &owner, index);
	up_read(&fi->io_sem);
	return claimed ? 0 : fb_claim(fi, &owner, vma->vm_pgoff, last, &mark);
}

/**
 * fb_claim_locked_page() - whether a page that is about to be reclaimed is locked
 * @fi: the inode; io_sem is held exclusively
 * @index: the page
 *
 * Return: true if it is, and the limit of a user that has locked it allows it: then it is pinned now.
 * Whether that user has CAP_IPC_LOCK isn't known here; a user with it pins the page again at the next
 * fault.
 */
bool fb_claim_locked_page(struct fb_inode *fi, pgoff_t index)
{
	struct fb_claimant owner = { .kind = FB_LOCKED, .uid = INVALID_UID };
	pgoff_t last = index;

	lockdep_assert_held_write(&fi->io_sem);
	while (fb_locker_next(fi, index, &owner.uid)) {
		if (__fb_claim(fi, &owner, index, &last, 0))
			continue;
		fb_claims_apply_some(fi, &last, index, true);
		return true;
	}
	return false;
}

/**
 * fb_claims_end() - the inode goes away: nothing of it is claimed any more
 * @fi: the inode, being evicted: no other task has it
 */
void fb_claims_end(struct fb_inode *fi)
{
	struct fb_claim *claim;

	for (unsigned int kind = 0; kind < FB_NR_CLAIM_KINDS; kind++) {
		while ((claim = fb_claims_iter_first(&fi->claims[kind], 0, FB_LAST_PAGE))) {
			fb_claim_free(fi, claim);
			cond_resched();
		}
	}
}

/**
 * fb_claims_end_all() - unmount: the files' own claims must not keep inodes
 * @fsb: the mount
 */
void fb_claims_end_all(struct fb_sb *fsb)
{
	struct fb_inode *fi;

	for (;;) {
		spin_lock(&fsb->inodes_lock);
		fi = list_first_entry_or_null(&fsb->kept, struct fb_inode, kept);
		if (fi)
			ihold(&fi->vfs_inode);
		spin_unlock(&fsb->inodes_lock);
		if (!fi)
			return;
		fb_claims_closed(fi, NULL);
		iput(&fi->vfs_inode);
	}
}
