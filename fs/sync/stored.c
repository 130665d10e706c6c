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
 */
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
