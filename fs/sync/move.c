// SPDX-License-Identifier: GPL-2.0-only
/*
 * A page's way into PMem: from the lower page cache, or with bytes that the caller has.
 *
 * A page moves with its range locked exclusively (range_lock.c). So no write, fault or direct I/O is between
 * its decision where the page is and its last byte. The steps:
 *   1. the lower folio is locked: that waits for a fault that has found the folio and is about to map it,
 *      and keeps a fault-around from mapping it;
 *   2. it is unmapped, so that what was stored through page tables is in it and the next access faults;
 *   3. it is copied; record, fence, commit and index follow for the whole batch (fb_pages_move_in()), and
 *      only then is it unlocked.
 * The lower folio stays as it is. If it is dirty, the lower file system will write it at some time. That is
 * harmless: no call reads the folio while the DAX page is there. A dirty folio also shows that the lower
 * file system has reserved space for it, if no block is smaller than a page. Otherwise a part of the page may
 * be a hole, and there is space for the page as a whole when a write or store has seen to it (reserve.c).
 *
 * A page that a task may store to by a reference doesn't move (stored.c): then the
 * sync goes below. Not all such tasks pin: direct reads of NFS take plain references. But a fault has a
 * reference itself, and so has another fault on the page. So a fault looks for pins alone.
 */
#include <linux/highmem.h>

#include "../page/alloc.h"
#include "../page/copies.h"
#include "../page/entry.h"
#include "../page/index.h"
#include "../page/page.h"
#include "../page/size.h"
#include "../pin/tree.h"
#include "move.h"
#include "stored.h"
#include "tracker.h"

static void fb_put_folio(struct folio *folio)
{
	folio_unlock(folio);
	folio_put(folio);
}

/**
 * fb_lower_folio() - the lower folio of a page, so that it can move
 * @fi: the inode
 * @index: the page, in a range that is locked exclusively
 * @alone: as for fb_lower_is_stored()
 * @locked: a folio that the caller has locked already, or NULL
 *
 * Context: process; sleeps, perhaps until storage has answered.
 * Return: the folio, referenced, locked, up to date, and this page of it unmapped, or @locked, if the page
 * is in that; -ENOENT if there is none, -EBUSY if the page can't move now.
 */
struct folio *fb_lower_folio(struct fb_inode *fi, pgoff_t index, bool alone, struct folio *locked)
{
	struct address_space *mapping = fi->lower->i_mapping;
	bool again = locked && folio_contains(locked, index);
	struct folio *folio = again ? locked : filemap_lock_folio(mapping, index);

	if (IS_ERR(folio))
		return folio;
	if (folio_mapped(folio))
		unmap_mapping_pages(mapping, index, 1, false);
	if (folio_test_uptodate(folio) && !fb_lower_is_stored(fi, folio, index, alone))
		return folio;
	if (!again)
		fb_put_folio(folio);
	return ERR_PTR(-EBUSY);
}

/*
 * True if the page was not changed since its bytes became durable below. A clean folio alone doesn't show
 * that: the lower file system may have written it on its own account.
 */
static bool fb_lower_is_durable(struct fb_inode *fi, struct folio *folio, pgoff_t index)
{
	return !folio_test_dirty(folio) && !folio_test_writeback(folio) &&
	       !test_bit(FB_NEEDS_SYNC, &fi->flags) && !fb_is_truncated(fi) && !fb_tracked(fi, index);
}

/**
 * fb_move_begin() - take a free page for a page that is to move, and reserve its place in the index
 * @fi: the inode
 * @index: the page
 * @in: becomes the two, without a folio; fb_page_unreserve() gives them back
 *
 * Return: 0; -ENOSPC if no page is free; -ENOMEM.
 */
int fb_move_begin(struct fb_inode *fi, pgoff_t index, struct fb_incoming *in)
{
	struct fb_sb *fsb = FB_SB(fi->vfs_inode.i_sb);
	int err;

	in->index = index;
	in->folio = NULL;
	in->page = fb_page_alloc(fi);
	if (!in->page)
		return -ENOSPC;
	err = fb_page_reserve(fi, index);
	if (err)
		fb_page_put_free(fsb, in->page);
	return err;
}

/**
 * fb_move_in() - copy one volatile page to PMem
 * @fi: the inode
 * @index: a page that is not in PMem, in a range that is locked exclusively
 * @alone: as for fb_lower_folio()
 * @locked: likewise
 * @in: becomes the copy, for fb_pages_move_in() or fb_page_unreserve(); its folio is locked
 *
 * Context: process; sleeps.
 * Return: 0; -ENOSPC if no page is free; -ENOENT if the lower page cache hasn't
 * the page, -EBUSY if it can't move now; -ENOMEM.
 */
int fb_move_in(struct fb_inode *fi, pgoff_t index, bool alone, struct folio *locked, struct fb_incoming *in)
{
	struct fb_sb *fsb = FB_SB(fi->vfs_inode.i_sb);
	int err = fb_move_begin(fi, index, in);
	struct folio *folio;
	void *from;

	if (err)
		return err;
	folio = fb_lower_folio(fi, index, alone, locked);
	if (IS_ERR(folio)) {
		fb_page_unreserve(fi, in);
		return PTR_ERR(folio);
	}
	in->folio = folio == locked ? NULL : folio;
	in->clean = fb_lower_is_durable(fi, folio, index);
	in->has_space = i_blocksize(fi->lower) >= PAGE_SIZE &&
			(folio_test_dirty(folio) || folio_test_writeback(folio));
	from = kmap_local_folio(folio, offset_in_folio(folio, (loff_t)index << PAGE_SHIFT));
	ps_page_write(&fsb->ps, fb_page_number(fsb, in->page), 0, from, PAGE_SIZE);
	kunmap_local(from);
	fb_copied(fsb, FB_COPIED_IN, PAGE_SIZE);
	return 0;
}

/**
 * fb_pages_stay_out() - give back pages that can't be committed, and their folios
 * @fi: the inode
 * @in: from fb_move_in()
 * @nr: how many
 */
void fb_pages_stay_out(struct fb_inode *fi, struct fb_incoming *in, unsigned int nr)
{
	for (unsigned int i = 0; i < nr; i++) {
		fb_page_unreserve(fi, &in[i]);
		if (in[i].folio)
			fb_put_folio(in[i].folio);
	}
}

/**
 * fb_pages_move_in() - commit copied pages and insert them into the index
 * @fi: the inode; has a file record: from fb_record_lock()
 * @in: from fb_move_in(), or with a folio or none; in the order of the file
 * @nr: how many, at most FB_MOVE_BATCH
 * @size: the file is at least so long then, in bytes; 0: as long as it was
 *
 * Releases io_sem, and unlocks and puts the folios.
 *
 * Return: 0; -EBUSY: the device has lost a record that is needed, and the pages stay out. A record of a page
 * is not used again, so another try may succeed.
 */
int fb_pages_move_in(struct fb_inode *fi, struct fb_incoming *in, unsigned int nr, loff_t size)
{
	struct address_space *mapping = fi->lower->i_mapping;

	lockdep_assert_held_write(&fi->io_sem);
	/* A fault-around may have mapped what was not locked. From now on io_sem keeps it out. */
	if (mapping_mapped(mapping))
		unmap_mapping_pages(mapping, in[0].index, in[nr - 1].index - in[0].index + 1, false);
	for (unsigned int i = 0; i < nr; i++)
		in[i].pinned = fb_is_pinned(fi, in[i].index);
	if (fb_pages_commit_and_insert(fi, in, nr)) {
		up_write(&fi->io_sem);
		fb_pages_stay_out(fi, in, nr);
		return -EBUSY;
	}
	fb_size_grew(&fi->vfs_inode, size);	/* after the insertion, and before writeback */
	up_write(&fi->io_sem);
	for (unsigned int i = 0; i < nr; i++) {
		if (in[i].folio)
			fb_put_folio(in[i].folio);
	}
	return 0;
}
