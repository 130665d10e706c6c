// SPDX-License-Identifier: GPL-2.0-only
/*
 * Claims: ranges of a file that belong in PMem though nobody has a MAP_SYNC mapping of them (attached), and
 * ranges whose pages are never reclaimed (pinned by a call; locked by mlock() in such a mapping).
 *
 * Each claimant has a set of pages of each file, whatever the number of calls that made it: to claim a
 * page twice is to claim it once, and costs once (pin_limit.c). Sets of different claimants overlap
 * freely; a page is pinned as long as one of them has it. The sets of an inode are in interval trees, one for
 * each kind: anybody may attach any number of ranges, for nothing, and whether a page is pinned is asked for
 * every page. Pinned ranges are as few as the pages that they cost.
 *
 * Whose:
 *   - of an open file description: end with its last close;
 *   - of nobody's (FOREBAY_KEEP): end when they are undone, with the file's last name, and at unmount. They
 *     hold a reference on the inode, which is on fb_sb->kept;
 *   - of a user: what mlock() has locked. The kernel tells nobody of mlock() or munlock(). So a lock is
 *     noticed when a page of it is faulted in, or about to be reclaimed, and then counts if the user's
 *     limit allows it; that it is gone is noticed when the limit is hit, when somebody looks, and by the
 *     worker when pages are short. In between it counts too much, never too little.
 *
 * A cut takes the pinned pages beyond the new end out of every set; attached ranges stay.
 *
 * The trees change under io_sem held exclusively, and every fb_page->resident with them. Walks over a tree
 * let others run: it may be large.
 */
#include <linux/capability.h>
#include <linux/interval_tree_generic.h>
#include <linux/mm.h>
#include <linux/slab.h>

#include "claim.h"
#include "mapped.h"
#include "page_index.h"

struct fb_claim {
	struct rb_node rb;
	unsigned long first, last, subtree_last;
	struct fb_claimant who;
	struct fb_payer *payer;		/* NULL: costs nothing */
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

/* The next claim of @who that has a page of the range, in file order; the first if @claim is NULL. */
static struct fb_claim *fb_claim_next(struct fb_inode *fi, struct fb_claim *claim,
				      const struct fb_claimant *who, pgoff_t first, pgoff_t last)
{
	do {
		claim = claim ? fb_claims_iter_next(claim, first, last) :
				fb_claims_iter_first(&fi->claims[who->kind], first, last);
		cond_resched();
	} while (claim && !fb_same_claimant(&claim->who, who));
	return claim;
}

/**
 * fb_is_pinned() - shall this page stay in PMem?
 * @fi: the inode; io_sem is held, in either way
 * @index: the page
 */
bool fb_is_pinned(struct fb_inode *fi, pgoff_t index)
{
	return fb_claims_iter_first(&fi->claims[FB_PINNED_RANGE], index, index) ||
	       fb_claims_iter_first(&fi->claims[FB_LOCKED], index, index);
}

/**
 * fb_is_claimed() - does any page of a range belong in PMem by a claim?
 * @fi: the inode; io_sem is held, in either way
 * @first: first page
 * @last: last page
 */
bool fb_is_claimed(struct fb_inode *fi, pgoff_t first, pgoff_t last)
{
	for (unsigned int kind = 0; kind < FB_NR_CLAIM_KINDS; kind++) {
		if (fb_claims_iter_first(&fi->claims[kind], first, last))
			return true;
	}
	return false;
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

/* The pages of a range that are in PMem learn whether they are pinned. */
static void fb_claims_apply(struct fb_inode *fi, pgoff_t first, pgoff_t last)
{
	struct fb_page *page;
	unsigned long index;

	xa_for_each_range(&fi->index, index, page, first, last) {
		fb_page_set_resident(fi, page, fb_is_pinned(fi, index));
		cond_resched();
	}
}

static bool fb_claim_is_kept(const struct fb_claim *claim)
{
	return !claim->who.file && claim->who.kind != FB_LOCKED;
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
	fb_claims_insert(claim, &fi->claims[claim->who.kind]);
	fi->nr_kept += fb_claim_is_kept(claim);
	if (claim->who.kind == FB_LOCKED)
		fb_claims_list(fi);
}

static void fb_claim_remove(struct fb_inode *fi, struct fb_claim *claim)
{
	fb_claims_remove(claim, &fi->claims[claim->who.kind]);
	fi->nr_kept -= fb_claim_is_kept(claim);
}

/* Pages are not in a claim any more; nor is this in the tree with them. */
static void fb_claim_gave_up(struct fb_inode *fi, const struct fb_claim *claim, pgoff_t first, pgoff_t last)
{
	if (!claim->payer)
		return;
	fb_pin_uncharge(FB_SB(fi->vfs_inode.i_sb), claim->payer, last - first + 1);
	fb_claims_apply(fi, first, last);
}

static void fb_claim_free(struct fb_inode *fi, struct fb_claim *claim)
{
	fb_claim_remove(fi, claim);
	if (claim->who.kind == FB_LOCKED)
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

static int fb_claim_new(struct list_head *fresh, const struct fb_claimant *who, pgoff_t first, pgoff_t last)
{
	struct fb_claim *claim = kzalloc(sizeof(*claim), GFP_NOFS | __GFP_ACCOUNT);

	if (!claim)
		return -ENOMEM;
	claim->first = first;
	claim->last = last;
	claim->who = *who;
	list_add(&claim->list, fresh);
	return 0;
}

/* Claims for the stretches of a range that @who has not; returns how many pages these have, or an error. */
static long fb_claim_gaps(struct fb_inode *fi, const struct fb_claimant *who, pgoff_t first, pgoff_t last,
			  struct list_head *fresh)
{
	struct fb_claim *claim = NULL;
	long pages = 0;
	pgoff_t end;

	while (first <= last) {
		claim = fb_claim_next(fi, claim, who, first, last);
		end = claim ? claim->first : last + 1;
		if (first < end) {
			if (fb_claim_new(fresh, who, first, end - 1))
				return -ENOMEM;
			pages += end - first;
		}
		first = claim ? claim->last + 1 : end;
	}
	return pages;
}

/* All of the range, or nothing. io_sem is held exclusively. */
static int __fb_claim(struct fb_inode *fi, const struct fb_claimant *who, pgoff_t first, pgoff_t last,
		      u64 mark)
{
	struct fb_payer *payer = NULL;
	struct fb_claim *claim, *next;
	LIST_HEAD(fresh);
	long pages;

	pages = fb_claim_gaps(fi, who, first, last, &fresh);
	if (pages > 0 && who->kind != FB_ATTACHED)
		payer = fb_pin_charge(FB_SB(fi->vfs_inode.i_sb), who->uid, who->privileged, pages);
	if (IS_ERR(payer))
		pages = PTR_ERR(payer);
	list_for_each_entry_safe(claim, next, &fresh, list) {
		if (pages < 0) {
			kfree(claim);
			continue;
		}
		claim->payer = payer;
		claim->mark = mark;
		fb_claim_insert(fi, claim);
	}
	if (pages > 0 && who->kind != FB_ATTACHED)
		fb_claims_apply(fi, first, last);
	return pages < 0 ? pages : 0;
}

/*
 * Claims of nobody's keep the inode in memory; io_sem is held exclusively. Returns whether the caller has
 * a reference to put when it has given io_sem back.
 */
static bool fb_claims_keep(struct fb_inode *fi)
{
	struct fb_sb *fsb = FB_SB(fi->vfs_inode.i_sb);
	bool keep = fi->nr_kept, kept;

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

static void __fb_unclaim(struct fb_inode *fi, const struct fb_claimant *who, pgoff_t first, pgoff_t last)
{
	struct fb_claim *claim, *next;

	if (first > last)
		return;
	for (claim = fb_claim_next(fi, NULL, who, first, last); claim; claim = next) {
		next = fb_claim_next(fi, claim, who, first, last);
		fb_claim_shrink(fi, claim, first, last);
	}
}

/* What of one claimant's lock isn't locked any more doesn't count. */
static void fb_claim_refresh(struct fb_inode *fi, struct fb_claimant who, pgoff_t pos, pgoff_t end)
{
	pgoff_t first = pos, last = end;

	while (pos <= end && fb_mapped_next(fi, &first, &last, VM_LOCKED, &who.uid)) {
		if (first > pos)
			__fb_unclaim(fi, &who, pos, first - 1);
		pos = last + 1;
		first = pos;
		last = end;
		cond_resched();
	}
	__fb_unclaim(fi, &who, pos, end);
}

/**
 * fb_claims_refresh() - let locks that are gone go
 * @fi: the inode; takes io_sem
 */
void fb_claims_refresh(struct fb_inode *fi)
{
	struct rb_root_cached *locked = &fi->claims[FB_LOCKED];
	struct fb_claim *claim, *next;

	if (RB_EMPTY_ROOT(&locked->rb_root))
		return;
	down_write(&fi->io_sem);
	for (claim = fb_claims_iter_first(locked, 0, FB_LAST_PAGE); claim; claim = next) {
		next = fb_claims_iter_next(claim, 0, FB_LAST_PAGE);
		fb_claim_refresh(fi, claim->who, claim->first, claim->last);
		cond_resched();
	}
	up_write(&fi->io_sem);
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

/**
 * fb_claim() - claim a range
 * @fi: the inode
 * @who: for whom
 * @first: first page
 * @last: last page
 * @mark: becomes what fb_claim_undo() wants
 *
 * Return: 0; -ENOMEM over a limit, -EINTR if the task is killed, -ENOENT if the claim is to stay with a
 * file that has no name left: then nothing has changed.
 */
int fb_claim(struct fb_inode *fi, const struct fb_claimant *who, pgoff_t first, pgoff_t last, u64 *mark)
{
	static atomic64_t marks;
	bool again = true;
	int err;

	*mark = atomic64_inc_return(&marks);
	for (;;) {
		if (down_write_killable(&fi->io_sem))
			return -EINTR;
		if (!who->file && who->kind != FB_LOCKED && !fi->vfs_inode.i_nlink)
			err = -ENOENT;	/* its last name would have ended it: nobody else will */
		else
			err = __fb_claim(fi, who, first, last, *mark);
		if (!err)
			fb_claims_keep(fi);
		up_write(&fi->io_sem);
		if (err != -ENOMEM || who->kind == FB_ATTACHED || !again)
			return err;
		fb_claims_refresh_all(FB_SB(fi->vfs_inode.i_sb));
		again = false;
	}
}

/*
 * Gives io_sem back after claims were given up. The caller has a reference, or the file had claims
 * of nobody's.
 */
static void fb_claims_changed(struct fb_inode *fi)
{
	bool put = fb_claims_keep(fi);

	up_write(&fi->io_sem);
	if (put)
		iput(&fi->vfs_inode);
}

/**
 * fb_unclaim() - give claims on a range up
 * @fi: the inode; the caller has a reference
 * @who: whose
 * @first: first page
 * @last: last page
 */
void fb_unclaim(struct fb_inode *fi, const struct fb_claimant *who, pgoff_t first, pgoff_t last)
{
	down_write(&fi->io_sem);
	__fb_unclaim(fi, who, first, last);
	fb_claims_changed(fi);
}

/* Frees all claims that @unwanted says. io_sem is held exclusively, and given back. */
static void fb_claims_filter(struct fb_inode *fi, bool (*unwanted)(const struct fb_claim *, const void *),
			     const void *arg)
{
	struct fb_claim *claim, *next;

	for (unsigned int kind = 0; kind < FB_NR_CLAIM_KINDS; kind++) {
		claim = fb_claims_iter_first(&fi->claims[kind], 0, FB_LAST_PAGE);
		for (; claim; claim = next) {
			next = fb_claims_iter_next(claim, 0, FB_LAST_PAGE);
			if (unwanted(claim, arg))
				fb_claim_free(fi, claim);
			cond_resched();
		}
	}
	fb_claims_changed(fi);
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
	down_write(&fi->io_sem);
	fb_claims_filter(fi, fb_claim_has_mark, &mark);
}

static bool fb_claim_is_of(const struct fb_claim *claim, const void *file)
{
	return claim->who.kind != FB_LOCKED && claim->who.file == file;
}

/**
 * fb_claims_closed() - an open file description is closed for the last time
 * @fi: its inode
 * @file: the file; NULL: give up what is nobody's
 */
void fb_claims_closed(struct fb_inode *fi, const struct file *file)
{
	if (!fb_has_claims(fi))
		return;
	down_write(&fi->io_sem);
	fb_claims_filter(fi, fb_claim_is_of, file);
}

/**
 * fb_claims_cut() - a file has become shorter
 * @fi: the inode, of which the caller has a reference; io_sem is held exclusively, the pages are gone
 * @beyond: the first page that is not in the file any more
 */
void fb_claims_cut(struct fb_inode *fi, pgoff_t beyond)
{
	struct fb_claim *claim;

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

/* Somebody else may fault it in: process_vm_writev(), or a kernel thread that has all capabilities. */
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
	struct fb_claimant who = { .kind = FB_LOCKED, .uid = fb_vma_user(vma),
				   .privileged = fb_vma_is_privileged(vma) };
	pgoff_t beyond = fb_pages_in_file(fi);
	pgoff_t last = min(vma->vm_pgoff + vma_pages(vma), beyond) - 1;
	bool claimed;
	u64 mark;

	if (index >= beyond)	/* the fault will say so */
		return 0;
	if (down_read_killable(&fi->io_sem))
		return -EINTR;
	claimed = fb_claim_next(fi, NULL, &who, index, index);
	up_read(&fi->io_sem);
	return claimed ? 0 : fb_claim(fi, &who, vma->vm_pgoff, last, &mark);
}

/**
 * fb_claim_locked_page() - is a page locked that is about to be reclaimed?
 * @fi: the inode; io_sem is held exclusively
 * @index: the page
 *
 * Return: true if it is, and one of those who have locked it may have so many: then it is pinned now.
 * Whether he has CAP_IPC_LOCK isn't known here; with it he pins the page again when it is faulted in.
 */
bool fb_claim_locked_page(struct fb_inode *fi, pgoff_t index)
{
	struct fb_claimant who = { .kind = FB_LOCKED, .uid = INVALID_UID };

	while (fb_locker_next(fi, index, &who.uid)) {
		if (!__fb_claim(fi, &who, index, index, 0))
			return true;
	}
	return false;
}

/**
 * fb_claims_end() - the inode goes away: nothing of it is claimed any more
 * @fi: the inode, being evicted: nobody else has it
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
 * fb_claims_end_all() - unmount: claims of nobody's must not keep inodes
 * @fsb: the mount
 */
void fb_claims_end_all(struct fb_sb *fsb)
{
	struct fb_inode *fi;

	for (;;) {
		spin_lock(&fsb->inodes_lock);
		fi = list_first_entry_or_null(&fsb->kept, struct fb_inode, kept);
		spin_unlock(&fsb->inodes_lock);
		if (!fi)
			return;
		fb_claims_closed(fi, NULL);
	}
}
