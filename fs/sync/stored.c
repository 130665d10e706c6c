// SPDX-License-Identifier: GPL-2.0-only
/*
 * Busy pages: a task or a device holds them by reference, for get_user_pages(), direct I/O or vmsplice().
 *
 * A reference doesn't say what it is for. But a task that may store through one took it while the page was
 * writable in a mapping; a reference from a read-only mapping only reads. So two marks decide:
 *
 *   - struct fb_page, "stored": a DAX page was made writable in a mapping, and was not seen unmapped
 *     and without references since;
 *   - fb_inode, "stored_below": the same of a volatile page.
 *
 * A page that is busy and not stored has readers alone. It is written back, becomes clean, is evicted and
 * moved like any other. The readers keep a snapshot: the old struct page, which waits in busy_pages
 * (page/alloc.c) or is the lower folio.
 *
 * A DAX page that is busy and stored may change at any time without a trace. It is copied by each writeback
 * and never becomes clean, so a sync keeps it, and drain fails with EBUSY. A call that takes a range out of
 * the file doesn't wait. The last copy below counts, and the page leaves the file, as a pinned folio leaves
 * a file of the lower file system. Unmount doesn't wait either: no later store can be acknowledged.
 *
 * A volatile page that is busy and stored doesn't move.
 *
 * An inode may leave memory while a task holds such pages of it: for direct I/O into a mapping that is gone
 * since, of a file that is closed. (One with DAX pages stays in memory.) Its marks are kept until it comes
 * back, or until no task holds the pages (struct fb_left). When it comes back, its syncs go below as long as
 * a page is pinned.
 */
#include "../pin/tree.h"
#include "stored.h"
#include "tracker.h"

/* Pages for each entry of fb_inode->stored_below, a bitmap. */
#define FB_STORED_BITS	32

/**
 * fb_was_stored() - whether a volatile page has the mark "stored_below"
 * @fi: the inode
 * @index: the page; its range is locked exclusively
 */
bool fb_was_stored(struct fb_inode *fi, pgoff_t index)
{
	void *entry = xa_load(&fi->stored_below, index / FB_STORED_BITS);

	return test_bit(FB_STORED_MAPPED, &fi->flags) ||
	       (entry && xa_to_value(entry) & BIT(index % FB_STORED_BITS));
}

/* Notes whether a volatile page is stored. Without memory for that, all pages of the file count as stored. */
static void fb_note_stored(struct fb_inode *fi, pgoff_t index, bool stored)
{
	unsigned long at = index / FB_STORED_BITS, bit = BIT(index % FB_STORED_BITS), bits;
	void *entry = xa_load(&fi->stored_below, at), *seen;

	for (;;) {
		bits = entry ? xa_to_value(entry) : 0;
		if (!(bits & bit) == !stored)
			return;
		bits ^= bit;
		seen = xa_cmpxchg(&fi->stored_below, at, entry, bits ? xa_mk_value(bits) : NULL, GFP_NOFS);
		if (seen == entry)
			return;
		if (xa_is_err(seen)) {
			set_bit(FB_STORED_MAPPED, &fi->flags);
			return;
		}
		entry = seen;
	}
}

/**
 * fb_stored_below() - volatile pages are about to be writable in a mapping
 * @fi: the inode
 * @vmf: the fault, after the lower file system's page_mkwrite(), with the folio locked and the page's range
 *	locked, shared
 *
 * Where there is no page table yet, the kernel makes all of a huge folio writable at once.
 */
void fb_stored_below(struct fb_inode *fi, const struct vm_fault *vmf)
{
	struct folio *folio = page_folio(vmf->page);
	pgoff_t first = vmf->pgoff, beyond = first + 1;

	if (folio_test_pmd_mappable(folio) && pmd_none(READ_ONCE(*vmf->pmd))) {
		first = folio->index;
		beyond = first + folio_nr_pages(folio);
	}
	for (pgoff_t index = first; index < beyond; index++)
		fb_note_stored(fi, index, true);
	fb_track_stored(fi, first, beyond);
	fb_track(fi, (loff_t)first << PAGE_SHIFT, (loff_t)beyond << PAGE_SHIFT);
}

/*
 * True if a task has a reference, beside the page cache and the caller. The caller has locked and unmapped
 * the folio. A folio that is yet to be put on a list of the LRU has a reference for that.
 */
static bool fb_folio_referenced(struct folio *folio)
{
	return folio_ref_count(folio) > folio_nr_pages(folio) + 1 + folio_test_private(folio) +
					!folio_test_lru(folio) + folio_mapcount(folio);
}

/**
 * fb_lower_is_stored() - whether a task may store to a volatile page by a reference
 * @fi: the inode
 * @folio: the lower folio, locked
 * @index: the page, in no mapping; its range is locked exclusively
 * @alone: any reference counts; else only what looks like a pin, for the caller's task and others that
 *	fault on the page have references themselves
 */
bool fb_lower_is_stored(struct fb_inode *fi, struct folio *folio, pgoff_t index, bool alone)
{
	VM_WARN_ON_ONCE(!folio_test_locked(folio));
	if (!fb_was_stored(fi, index))
		return false;
	if (fb_folio_referenced(folio))
		return alone || folio_maybe_dma_pinned(folio);
	fb_note_stored(fi, index, false);
	return false;
}

/* The marks of an inode that left memory while tasks held pages that they may store to. */
struct fb_left {
	struct list_head list;		/* fb_sb->left, under inodes_lock */
	struct inode *lower;		/* referenced */
	struct xarray stored;		/* of fb_inode->stored_below, pages that were held */
	bool all;			/* FB_STORED_MAPPED */
};

/* Which of these pages, an entry of a bitmap, a task may hold. */
static unsigned long fb_held_of(const struct inode *lower, unsigned long at, unsigned long bits)
{
	unsigned long bit, held = 0;
	struct folio *folio;

	for_each_set_bit(bit, &bits, FB_STORED_BITS) {
		folio = filemap_get_folio(lower->i_mapping, at * FB_STORED_BITS + bit);
		if (IS_ERR(folio))
			continue;
		if (fb_folio_referenced(folio))
			held |= BIT(bit);
		folio_put(folio);
	}
	return held;
}

static bool fb_left_is_held(struct fb_left *left)
{
	bool held = left->all && !mapping_empty(left->lower->i_mapping);
	unsigned long at;
	void *entry;

	xa_for_each(&left->stored, at, entry)
		held = held || fb_held_of(left->lower, at, xa_to_value(entry));
	return held;
}

static void fb_left_free(struct fb_left *left)
{
	xa_destroy(&left->stored);
	iput(left->lower);
	kfree(left);
}

/**
 * fb_left_forget() - let the marks of all inodes that left memory go
 * @fsb: the mount, at its end: no other task uses it
 */
void fb_left_forget(struct fb_sb *fsb)
{
	struct fb_left *left, *next;

	list_for_each_entry_safe(left, next, &fsb->left, list)
		fb_left_free(left);
}

/*
 * Keeps marks. Each time two others are looked at, in turn, and freed if no task holds their pages any more.
 * So the list can't grow by those, and no call looks at all of it.
 */
static void fb_left_keep(struct fb_sb *fsb, struct fb_left *left)
{
	struct fb_left *next;
	LIST_HEAD(gone);

	spin_lock(&fsb->inodes_lock);
	for (int i = 0; i < 2; i++) {
		struct fb_left *other = list_first_entry_or_null(&fsb->left, struct fb_left, list);

		if (other)
			list_move_tail(&other->list, fb_left_is_held(other) ? &fsb->left : &gone);
	}
	list_add_tail(&left->list, &fsb->left);
	spin_unlock(&fsb->inodes_lock);
	list_for_each_entry_safe(left, next, &gone, list)
		fb_left_free(left);
}

/* The inode's marks, of pages that are held. Some may be missing if @left->all. */
static void fb_left_fill(struct fb_left *left, struct fb_inode *fi)
{
	unsigned long at, bits;
	void *entry;

	xa_for_each(&fi->stored_below, at, entry) {
		bits = fb_held_of(left->lower, at, xa_to_value(entry));
		if (bits && xa_is_err(xa_store(&left->stored, at, xa_mk_value(bits), GFP_NOFS)))
			left->all = true;
		cond_resched();
	}
}

/**
 * fb_stored_leave() - an inode leaves memory, and its marks may be needed
 * @fi: the inode, which no other task has
 *
 * Not those of a file without a name, and at unmount. Without memory for them, each inode that comes counts
 * as one with FB_STORED_MAPPED.
 */
void fb_stored_leave(struct fb_inode *fi)
{
	struct fb_sb *fsb = FB_SB(fi->vfs_inode.i_sb);
	bool all = test_bit(FB_STORED_MAPPED, &fi->flags);
	struct fb_left *left;

	if ((xa_empty(&fi->stored_below) && !all) || mapping_empty(fi->lower->i_mapping) ||
	    !fi->vfs_inode.i_nlink || !(fi->vfs_inode.i_sb->s_flags & SB_ACTIVE))
		return;
	left = kzalloc(sizeof(*left), GFP_NOFS);
	if (!left) {
		WRITE_ONCE(fsb->left_unknown, true);
		return;
	}
	xa_init(&left->stored);
	left->all = all;
	left->lower = fi->lower;
	ihold(left->lower);
	fb_left_fill(left, fi);
	if (left->all || !xa_empty(&left->stored))
		fb_left_keep(fsb, left);
	else
		fb_left_free(left);
}

static struct fb_left *fb_left_take(struct fb_sb *fsb, const struct inode *lower)
{
	struct fb_left *left, *found = NULL;

	spin_lock(&fsb->inodes_lock);
	list_for_each_entry(left, &fsb->left, list) {
		if (left->lower == lower)
			found = left;
	}
	if (found)
		list_del(&found->list);
	spin_unlock(&fsb->inodes_lock);
	return found;
}

/**
 * fb_stored_come() - an inode comes into memory: it has the marks with which it left, if it did
 * @fi: the inode, which no other task has yet
 */
void fb_stored_come(struct fb_inode *fi)
{
	struct fb_sb *fsb = FB_SB(fi->vfs_inode.i_sb);
	struct fb_left *left = list_empty_careful(&fsb->left) ? NULL : fb_left_take(fsb, fi->lower);
	bool all = READ_ONCE(fsb->left_unknown) || (left && left->all);
	unsigned long at;
	void *entry;

	if (left) {
		xa_for_each(&left->stored, at, entry) {
			all = all || xa_is_err(xa_store(&fi->stored_below, at, entry, GFP_NOFS));
			fb_track_stored(fi, at * FB_STORED_BITS, (at + 1) * FB_STORED_BITS);
		}
		fb_left_free(left);
	}
	if (all) {
		set_bit(FB_STORED_MAPPED, &fi->flags);
		fb_track_stored(fi, 0, FB_LAST_PAGE + 1);
	}
	if (left || all)
		fb_track_overflow(fi);
}
