// SPDX-License-Identifier: GPL-2.0-only
/*
 * The page index of a file, and the life of a DAX page.
 *
 * A file's index maps page index -> struct fb_page for the pages that are
 * primary in PMem; all other pages are the lower file's. Looking up and then
 * using a page is safe under io_sem held shared; pages enter and leave the
 * index under io_sem held exclusively, or while no other task has the inode.
 *
 * States, with the list a page is on and what is true of its bytes:
 *
 *   free		free_pages	nothing; owner is NULL, no record
 *   out-of-sync	out_of_sync_pages	durable here, the lower file is older
 *     + dirty		the same list	stores through mappings may not have left
 *					the CPU caches; only where these are volatile
 *     + hot		the same list	dirty, flushed by the last sync calls, and still
 *					mapped writable: no fault tells of the next
 *					store (sync/mapped.c)
 *     + writeback	the same list	a copy is on its way below; a task that changes
 *					the page clears this flag, and then the copy
 *					doesn't count
 *   clean		clean_pages	durable here and below
 *
 *	      commit, insert		   end_writeback(ok)
 *	free ------------> out-of-sync --------------------> clean
 *	 ^		    |    ^  ^_______________________ |
 *	 |	 invalidate |	 | touch: record first,	    ||
 *	 |<-----------------+	 | then the bytes	    ||
 *	 |_______________________|_____ invalidate _________|'
 *				 '-------- touch -----------'
 *
 * A page of a pinned range (pin/tree.c) is resident. It changes its state like other pages, but is on a list
 * of its own, where reclaim doesn't look.
 *
 * A page enters as clean if the lower file has it durably: it was not changed since the last sync
 * (fb_move_in()). entry.c has how pages enter and leave the index.
 *
 * Before a byte of a page changes, the lower file system has set space aside for the page (page->has_space).
 * The space is charged to the task that changes the page. A dirty folio has space, if no block is smaller
 * than a page; a clean one may be a hole. So the first write or store to any other page sees to space
 * (vfs/write.c, vfs/mkwrite.c). Until then the lower file has the same bytes, in memory or on storage, and
 * writeback writes none, unless storage has refused some of the file (writeback/writeback.c).
 *
 * The record on PMem knows the three states; the flags are DRAM's. Every change of the status word is made
 * by fb_page_set(): status word, list, counts and marks together, under the index's lock. The exceptions:
 *   - fb_page_set_bad() takes the writeback flag away, and fb_page_set_resident() changes the list, under
 *     the same two locks;
 *   - fb_page_alloc() and fb_page_put_free() (alloc.c) take a page from the free list and put it there.
 *     The page is in no index then, and no other task can see it.
 *
 * Orders that keep an acknowledged byte from getting lost:
 *   - commit, insert: bytes and record fields durable, commit durable, then the index;
 *   - touch: the record says out-of-sync, durably, before a byte of a clean
 *     page changes; otherwise a crash would take the page for a copy of the
 *     lower file and free it;
 *   - clean: only after the lower fsync has returned, and only if the page
 *     was not touched since before it was copied;
 *   - invalidate: the record is durably free before the page can be used again,
 *     and before the lower file may be written in its place.
 */
#include "../trace.h"
#include "alloc.h"
#include "index.h"
#include "mapping.h"
#include "page.h"
#include "record.h"
#include "share.h"

#define FB_HOT_MAX	64	/* sync calls for which a page stays mapped, at most */

#ifdef FB_BREAK_HOT	/* a fault on purpose: tests/vm/test_cuts.py must find it */
#define FB_BREAK_HOT_PAGE	1
#else
#define FB_BREAK_HOT_PAGE	0
#endif

static void fb_page_count(struct fb_sb *fsb, const struct fb_page *page, u32 status, int n)
{
	lockdep_assert_held(&fsb->lru_lock);
	status &= FB_STATUS_STATE;
	if (status == FB_STATUS_OUT_OF_SYNC)
		fsb->nr_out_of_sync += n;
	else if (status == FB_STATUS_CLEAN)
		fsb->nr_clean += n;
	if (page->resident && status != FB_STATUS_FREE)
		fsb->nr_resident += n;
	if (page->resident && status == FB_STATUS_CLEAN)
		fsb->nr_resident_clean += n;
	if (page->bad && status != FB_STATUS_FREE)
		fsb->nr_lost += n;
}

/* A page that is not resident enters or leaves a file, or neither. */
static void fb_page_share(struct fb_inode *fi, u32 old, u32 status)
{
	bool was_free = (old & FB_STATUS_STATE) == FB_STATUS_FREE;
	bool is_free = (status & FB_STATUS_STATE) == FB_STATUS_FREE;

	if (was_free != is_free)
		fb_share_count(fi, was_free ? 1 : -1);
}

static void fb_page_enlist(struct fb_sb *fsb, struct fb_page *page, u32 status)
{
	lockdep_assert_held(&fsb->lru_lock);
	if (page->resident)
		list_move_tail(&page->lru, &fsb->resident_pages);
	else if ((status & FB_STATUS_STATE) == FB_STATUS_CLEAN)
		list_move_tail(&page->lru, &fsb->clean_pages);
	else
		list_move_tail(&page->lru, &fsb->out_of_sync_pages);
}

static void fb_mark(struct fb_inode *fi, const struct fb_page *page, xa_mark_t mark, bool set)
{
	if (set)
		__xa_set_mark(&fi->index, page->index, mark);
	else
		__xa_clear_mark(&fi->index, page->index, mark);
}

/**
 * fb_page_set() - set the status word of a page, with list, counts and marks
 * @fi: the inode that has it in its index; the index's lock is held
 * @page: the page
 * @status: the new word. Where the order above has the record first, the caller has written it.
 */
void fb_page_set(struct fb_inode *fi, struct fb_page *page, u32 status)
{
	struct fb_sb *fsb = FB_SB(fi->vfs_inode.i_sb);
	u32 old = page->status;
	bool out_of_sync = (status & FB_STATUS_STATE) == FB_STATUS_OUT_OF_SYNC;

	lockdep_assert_held(&fi->index.xa_lock);
	if ((old ^ status) & FB_STATUS_DIRTY)
		atomic_long_add(status & FB_STATUS_DIRTY ? 1 : -1, &fsb->nr_dirty);
	if ((old ^ status) & FB_STATUS_HOT)
		WRITE_ONCE(fi->nr_hot, fi->nr_hot + (status & FB_STATUS_HOT ? 1 : -1));
	if ((old ^ status) & FB_STATUS_STATE) {
		spin_lock(&fsb->lru_lock);
		fb_page_count(fsb, page, old, -1);
		fb_page_count(fsb, page, status, 1);
		if (!page->resident)
			fb_page_share(fi, old, status);
		if ((status & FB_STATUS_STATE) == FB_STATUS_FREE) {
			list_del_init(&page->lru);
			page->owner = NULL;
			page->resident = false;
		} else {
			fb_page_enlist(fsb, page, status);
		}
		spin_unlock(&fsb->lru_lock);
	}
	WRITE_ONCE(page->status, status);
	if ((status & FB_STATUS_STATE) == FB_STATUS_FREE)
		return;
	if (out_of_sync && !xa_marked(&fi->index, FB_MARK_OUT_OF_SYNC))
		fb_age_begin(fi);
	/* Setting a mark walks the index, so only if something has changed. */
	if ((old ^ status) & FB_STATUS_DIRTY)
		fb_mark(fi, page, FB_MARK_DIRTY, status & FB_STATUS_DIRTY);
	if ((old ^ status) & FB_STATUS_STATE) {
		fb_mark(fi, page, FB_MARK_OUT_OF_SYNC, out_of_sync);
		fb_mark(fi, page, FB_MARK_RECLAIM, out_of_sync && !page->resident && !page->bad);
	}
}

/**
 * fb_page_set_bad() - a page of a file can't be read
 * @fi: its inode
 * @page: the page, which stays in the index
 */
void fb_page_set_bad(struct fb_inode *fi, struct fb_page *page)
{
	struct fb_sb *fsb = FB_SB(fi->vfs_inode.i_sb);

	xa_lock(&fi->index);
	spin_lock(&fsb->lru_lock);
	fb_page_count(fsb, page, page->status, -1);
	WRITE_ONCE(page->bad, true);
	WRITE_ONCE(page->status, page->status & ~FB_STATUS_WRITEBACK);
	fb_page_count(fsb, page, page->status, 1);
	spin_unlock(&fsb->lru_lock);
	fb_mark(fi, page, FB_MARK_RECLAIM, false);
	xa_unlock(&fi->index);
}

/**
 * fb_page_set_resident() - a page is, or is not any more, in a pinned range
 * @fi: its inode; io_sem is held exclusively, or the inode is being evicted
 * @page: the page
 * @resident: which
 */
void fb_page_set_resident(struct fb_inode *fi, struct fb_page *page, bool resident)
{
	struct fb_sb *fsb = FB_SB(fi->vfs_inode.i_sb);

	if (page->resident == resident)
		return;
	xa_lock(&fi->index);
	spin_lock(&fsb->lru_lock);
	fb_page_count(fsb, page, page->status, -1);
	fb_share_count(fi, resident ? -1 : 1);
	page->resident = resident;
	fb_page_count(fsb, page, page->status, 1);
	fb_page_enlist(fsb, page, page->status);
	spin_unlock(&fsb->lru_lock);
	fb_mark(fi, page, FB_MARK_RECLAIM,
		!resident && !page->bad && (page->status & FB_STATUS_STATE) == FB_STATUS_OUT_OF_SYNC);
	xa_unlock(&fi->index);
}

/*
 * A page that was not dirty is about to be mapped writable. If it was mapped so until a few sync calls ago,
 * it stays mapped for twice as many as the last time.
 */
static void fb_page_heat(struct fb_inode *fi, struct fb_page *page)
{
	if (READ_ONCE(fi->flushes) - page->unmapped_in > FB_HOT_WITHIN)
		page->heat = 0;
	else
		page->heat = clamp(2 * page->heat, 1, FB_HOT_MAX);
	page->syncs_left = page->heat;
}

static void fb_say_record_lost(const struct fb_inode *fi, const struct fb_page *page)
{
	pr_err_ratelimited("%s: the page of inode %llu at %llu can't be changed: the device has lost its record\n",
			   FB_SB(fi->vfs_inode.i_sb)->cache_name, (u64)fi->vfs_inode.i_ino,
			   (u64)page->index << PAGE_SHIFT);
}

/**
 * __fb_page_touch() - a page is about to be changed
 * @fi: its inode; io_sem is held, in either way, or no other task has the inode
 * @page: the page
 * @mapped: through a writable mapping, so that only a flush shows when it ends
 *
 * Return: 0; -EIO: the page is clean and must stay so. The device has lost its record, so that a crash would
 * lose the change. Reads go on, and the page can leave PMem: the lower file has the same.
 */
int __fb_page_touch(struct fb_inode *fi, struct fb_page *page, bool mapped)
{
	struct fb_sb *fsb = FB_SB(fi->vfs_inode.i_sb);
	u32 status;

	xa_lock(&fi->index);
	status = page->status;
	if ((status & FB_STATUS_STATE) == FB_STATUS_CLEAN) {
		if (ps_page_set_state(&fsb->ps, fb_page_number(fsb, page), PS_PAGE_OUT_OF_SYNC)) {
			xa_unlock(&fi->index);
			fb_say_record_lost(fi, page);
			return -EIO;
		}
		ps_fence(&fsb->ps);
	}
	status = FB_STATUS_OUT_OF_SYNC | (status & (FB_STATUS_DIRTY | FB_STATUS_HOT));
	if (mapped && fsb->ps.flush_caches) {
		if (!(status & FB_STATUS_DIRTY))
			fb_page_heat(fi, page);
		status |= FB_STATUS_DIRTY;
	}
	if (mapped)
		page->stored = true;
	fb_page_set(fi, page, status);
	xa_unlock(&fi->index);
	page->referenced = true;
	fb_record_use(fi);
	return 0;
}

/**
 * fb_page_flush() - write back the CPU caches of a page that was stored to through mappings
 * @fi: its inode; io_sem is held exclusively
 * @page: a page that no mapping has
 *
 * The stores are durable after ps_fence(). A page that a task may be storing to by a reference stays dirty
 * (sync/stored.c).
 *
 * Return: false for such a page, and for one that is bad.
 */
bool fb_page_flush(struct fb_inode *fi, struct fb_page *page)
{
	struct fb_sb *fsb = FB_SB(fi->vfs_inode.i_sb);
	bool busy;

	lockdep_assert_held_write(&fi->io_sem);
	if (page->bad)
		return false;
	if (!page->stored)
		return true;
	/* Looked at before the flush: a task that drops its reference later may store after the flush. */
	busy = fb_page_is_busy(fsb, page);
	if (page->status & FB_STATUS_DIRTY)
		ps_page_flush(&fsb->ps, fb_page_number(fsb, page), 0, PAGE_SIZE);
	xa_lock(&fi->index);
	page->stored = busy;
	page->unmapped_in = fi->flushes;
	fb_page_set(fi, page, page->status & ~(busy ? FB_STATUS_HOT : FB_STATUS_HOT | FB_STATUS_DIRTY));
	xa_unlock(&fi->index);
	return !busy;
}

/**
 * fb_page_flush_mapped() - write back the CPU caches of a hot page, which stays mapped and dirty
 * @fi: its inode; io_sem is held exclusively
 * @page: a dirty page
 *
 * Stores from before the call are durable after ps_fence(). Later ones are the next sync call's.
 *
 * Return: false if the page has to lose its mappings now: fb_page_flush().
 */
bool fb_page_flush_mapped(struct fb_inode *fi, struct fb_page *page)
{
	struct fb_sb *fsb = FB_SB(fi->vfs_inode.i_sb);

	lockdep_assert_held_write(&fi->io_sem);
	if (page->bad || !page->syncs_left)
		return false;
	page->syncs_left--;
	if (!FB_BREAK_HOT_PAGE)
		ps_page_flush(&fsb->ps, fb_page_number(fsb, page), 0, PAGE_SIZE);
	if (page->status & FB_STATUS_HOT)
		return true;
	xa_lock(&fi->index);
	fb_page_set(fi, page, page->status | FB_STATUS_HOT);
	xa_unlock(&fi->index);
	return true;
}

/**
 * fb_page_begin_writeback() - a copy of the page is about to be made
 * @fi: its inode; io_sem is held exclusively and no mapping has the page, so
 *	each change from now on comes through __fb_page_touch()
 * @page: an out-of-sync page
 *
 * A page that a task may be storing to by a reference does not begin, and so will not be
 * clean.
 */
void fb_page_begin_writeback(struct fb_inode *fi, struct fb_page *page)
{
	lockdep_assert_held_write(&fi->io_sem);
	if (!fb_page_flush(fi, page))
		return;
	xa_lock(&fi->index);
	fb_page_set(fi, page, page->status | FB_STATUS_WRITEBACK);
	xa_unlock(&fi->index);
}

/**
 * fb_page_end_writeback() - the copy is durable below, or writing it has failed
 * @fi: its inode; wb_lock is held
 * @page: a page that began writeback
 * @ok: the lower fsync succeeded
 *
 * The caller fences before it relies on the page being clean.
 *
 * Return: true if the page is clean now.
 */
bool fb_page_end_writeback(struct fb_inode *fi, struct fb_page *page, bool ok)
{
	struct fb_sb *fsb = FB_SB(fi->vfs_inode.i_sb);
	bool clean;

	lockdep_assert_held(&fi->wb_lock);
	xa_lock(&fi->index);
	clean = ok && (page->status & FB_STATUS_WRITEBACK);
	if (clean) {
		WARN_ON_ONCE(page->stored);	/* touch sets that, and ends writeback */
		/* If the device has lost the record, the lower file has what a crash loses with it. */
		ps_page_set_state(&fsb->ps, fb_page_number(fsb, page), PS_PAGE_CLEAN);
		fb_page_set(fi, page, FB_STATUS_CLEAN);
	} else {
		fb_page_set(fi, page, page->status & ~FB_STATUS_WRITEBACK);
	}
	xa_unlock(&fi->index);
	return clean;
}
