// SPDX-License-Identifier: GPL-2.0-only
/*
 * Sync absorption: a sync call that owes few volatile pages moves them into PMem
 * instead of waiting for the disk. From then on they are DAX pages and written
 * in place.
 *
 * How a page moves, with io_sem held exclusively, so that no read, write or
 * fault is between its decision where the page is and its last byte:
 *   1. direct I/O below that is still under way has ended;
 *   2. the lower folio is locked, which waits for a fault that has found it and
 *      is about to map it, and lets in none that would;
 *   3. it is unmapped, so that what was stored through page tables is in it and
 *      the next access faults;
 *   4. it is copied and unlocked; record, fence, commit and index follow for
 *      the whole batch (fb_pages_publish()).
 * The lower folio stays as it is; if it is dirty it will be written some day,
 * which is harmless: nobody reads it while the DAX page is there. That it is
 * dirty also means that the lower file system has reserved the space.
 *
 * Folios that hardware uses don't move: then the sync goes below. They are known
 * by being pinned for DMA, or by a reference that nobody here has: not everyone
 * pins (direct reads of NFS take plain references). Who stores through such a
 * reference has come by a writable mapping; so files that never had one are spared
 * the many references that mean nothing: readers, pipes, lists of the LRU. Faults,
 * which have references themselves, and two of them one each, go by pins alone.
 */
#include "cache.h"
#include "page_index.h"
#include "sync.h"
#include "trace.h"
#include "tracker.h"

/*
 * Beside the page cache and the caller, who has locked and unmapped it? Who is yet to put it on a list of
 * the LRU has a reference, too.
 */
static bool fb_folio_referenced(struct folio *folio)
{
	return folio_ref_count(folio) > folio_nr_pages(folio) + 1 + folio_test_private(folio) +
					!folio_test_lru(folio) + folio_mapcount(folio);
}

/**
 * fb_lower_folio() - the lower folio of a page, so that it can move
 * @fi: the inode; io_sem is held exclusively
 * @index: the page
 * @alone: nobody else may have a reference
 *
 * Return: the folio, referenced, locked, up to date, and this page of it unmapped; -ENOENT if there is
 * none, -EBUSY if the page can't move now.
 */
struct folio *fb_lower_folio(struct fb_inode *fi, pgoff_t index, bool alone)
{
	struct address_space *mapping = fi->lower->i_mapping;
	struct folio *folio = filemap_lock_folio(mapping, index);

	if (IS_ERR(folio))
		return folio;
	if (folio_mapped(folio))
		unmap_mapping_pages(mapping, index, 1, false);
	if (folio_test_uptodate(folio) && !folio_maybe_dma_pinned(folio) &&
	    !(alone && test_bit(FB_STORED_MAPPED, &fi->flags) && fb_folio_referenced(folio)))
		return folio;
	folio_unlock(folio);
	folio_put(folio);
	return ERR_PTR(-EBUSY);
}

/*
 * Has nobody changed the page since what it holds became durable below? A clean folio alone doesn't tell:
 * the lower file system may have written it on its own account.
 */
static bool fb_lower_is_durable(struct fb_inode *fi, struct folio *folio, pgoff_t index)
{
	return !folio_test_dirty(folio) && !folio_test_writeback(folio) &&
	       !test_bit(FB_OWES_SYNC, &fi->flags) && !fb_tracked(fi, index);
}

/**
 * fb_move_in() - copy one volatile page to PMem
 * @fi: the inode; io_sem is held exclusively
 * @index: a page that is not in PMem
 * @alone: as for fb_lower_folio()
 * @in: becomes the copy, for fb_pages_publish() or fb_page_unreserve()
 *
 * Return: 0; -ENOSPC if no page is free; -ENOENT if the lower page cache hasn't
 * the page, -EBUSY if it can't move now; -ENOMEM.
 */
int fb_move_in(struct fb_inode *fi, pgoff_t index, bool alone, struct fb_incoming *in)
{
	struct fb_sb *fsb = FB_SB(fi->vfs_inode.i_sb);
	struct folio *folio;
	void *from;
	int err;

	in->index = index;
	in->page = fb_page_alloc(fsb);
	if (!in->page)
		return -ENOSPC;
	err = fb_page_reserve(fi, index);
	if (err) {
		fb_page_put_free(fsb, in->page);
		return err;
	}
	folio = fb_lower_folio(fi, index, alone);
	if (IS_ERR(folio)) {
		fb_page_unreserve(fi, in);
		return PTR_ERR(folio);
	}
	in->clean = fb_lower_is_durable(fi, folio, index);
	from = kmap_local_folio(folio, offset_in_folio(folio, (loff_t)index << PAGE_SHIFT));
	ps_page_write(&fsb->ps, fb_page_number(fsb, in->page), 0, from, PAGE_SIZE);
	kunmap_local(from);
	folio_unlock(folio);
	folio_put(folio);
	return 0;
}

/* Moves the pages from *index on, at most a batch of them; *index becomes the next to look at. */
static int fb_absorb_batch(struct fb_inode *fi, pgoff_t *index, pgoff_t end)
{
	struct fb_incoming in[FB_MOVE_BATCH];
	struct fb_page *page;
	unsigned int nr = 0;
	int err = 0;

	for (; *index < end && nr < FB_MOVE_BATCH; ++*index) {
		page = fb_page_find(fi, *index);
		if (page) {
			/* Taken for clean, if it moved after we took the tracker: it isn't durable below. */
			fb_page_touch(fi, page);
			continue;
		}
		err = fb_move_in(fi, *index, true, &in[nr]);
		if (err)
			break;
		in[nr++].clean = false;		/* likewise */
	}
	if (nr) {
		fb_pages_publish(fi, in, nr);
		fb_count(FB_SB(fi->vfs_inode.i_sb), FB_PAGES_ABSORBED, nr);
	}
	return err;
}

static int fb_absorb_ranges(struct fb_inode *fi, const struct fb_tracker *owed)
{
	pgoff_t beyond = fb_pages_in_file(fi);
	unsigned int i;
	pgoff_t index;
	int err;

	for (i = 0; i < owed->nr_ranges; i++) {
		index = owed->range[i].start;
		while (index < min(owed->range[i].end, beyond)) {
			err = fb_absorb_batch(fi, &index, min(owed->range[i].end, beyond));
			if (err)
				return err;
		}
	}
	return 0;
}

/**
 * fb_absorb() - make the volatile pages that a file owes durable in PMem
 * @fi: the inode; sync_lock is held. Sleeps
 *
 * Return: 0 when they are; else a negative errno: the tracker has them still, and
 * the caller has to go below.
 */
int fb_absorb(struct fb_inode *fi)
{
	struct fb_sb *fsb = FB_SB(fi->vfs_inode.i_sb);
	struct fb_tracker owed = fb_track_take(fi);
	int err;

	if (owed.overflow || owed.nr_pages > fsb->absorb_pages) {
		fb_track_again(fi, &owed);
		trace_fb_absorb(fi, owed.nr_pages, -E2BIG);
		return -E2BIG;
	}
	down_write(&fi->io_sem);
	inode_dio_wait(fi->lower);
	err = fb_record_for_pages(fi);
	if (!err)
		err = fb_absorb_ranges(fi, &owed);
	if (err)
		fb_track_again(fi, &owed);
	up_write(&fi->io_sem);
	if (err == -ENOSPC)
		fb_count(fsb, FB_CACHE_FULL, 1);
	trace_fb_absorb(fi, owed.nr_pages, err);
	return err;
}
