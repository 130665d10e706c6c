// SPDX-License-Identifier: GPL-2.0-only
/*
 * The page index of a file, and the life of a DAX page.
 *
 * A file's index maps page index -> struct fb_page for the pages that are
 * primary in PMem; what is not there is the lower file's. Looking up and then
 * using a page is safe under io_sem held shared; pages enter and leave the
 * index under io_sem held exclusively (or when no one else has the inode).
 *
 * States, with the list a page is on and what is true of its bytes:
 *
 *   free		free_pages	nothing; owner is NULL, no record
 *   out-of-sync	out_of_sync_pages	durable here, the lower file is older
 *     + dirty		the same list	stores through mappings may not have left
 *					the CPU caches; only where these are volatile
 *     + writeback	the same list	a copy is on its way below; whoever changes
 *					the page takes this flag away, and then
 *					the copy doesn't count
 *   clean		clean_pages	durable here and below
 *
 *		  publish		   end_writeback(ok)
 *	free ------------> out-of-sync --------------------> clean
 *	 ^		    |    ^  ^_______________________ |
 *	 |	     forget |	 | touch: record first,	    ||
 *	 |<-----------------+	 | then the bytes	    ||
 *	 |_______________________|_______ forget ___________|'
 *				 '-------- touch -----------'
 *
 * The record on PMem knows the three states; the flags are DRAM's. One
 * primitive, fb_page_set(), makes every change: status word, list, counts and
 * marks together, under the index's lock. Two exceptions change a page outside
 * of an index: fb_page_alloc() and fb_page_put_free() (cache.c) take it from
 * and put it on the free list, where nobody else can see it.
 *
 * Orders that keep an acknowledged byte from getting lost:
 *   - publish: bytes and record fields durable, commit durable, then the index;
 *   - touch: the record says out-of-sync, durably, before a byte of a clean
 *     page changes; otherwise a crash would take the page for a copy of the
 *     lower file and drop it;
 *   - clean: only after the lower fsync has returned, and only if nobody
 *     touched the page since before it was copied;
 *   - forget: the record is durably free before the page can be used again,
 *     and before the lower file may be written in its place.
 */
#include "cache.h"
#include "page_index.h"
#include "trace.h"

static struct list_head *fb_list_of(struct fb_sb *fsb, u32 status, unsigned long **count)
{
	switch (status & FB_STATUS_STATE) {
	case FB_STATUS_OUT_OF_SYNC:
		*count = &fsb->nr_out_of_sync;
		return &fsb->out_of_sync_pages;
	case FB_STATUS_CLEAN:
		*count = &fsb->nr_clean;
		return &fsb->clean_pages;
	default:
		*count = NULL;
		return NULL;
	}
}

/*
 * The one primitive: @page of @fi gets @status. The caller holds the index's
 * lock, and has written the record where the order above asks for it first.
 */
static void fb_page_set(struct fb_inode *fi, struct fb_page *page, u32 status)
{
	struct fb_sb *fsb = FB_SB(fi->vfs_inode.i_sb);
	u32 old = page->status;
	struct list_head *list;
	unsigned long *count;

	lockdep_assert_held(&fi->index.xa_lock);
	if ((old ^ status) & FB_STATUS_DIRTY)
		atomic_long_add(status & FB_STATUS_DIRTY ? 1 : -1, &fsb->nr_dirty);
	if ((old ^ status) & FB_STATUS_STATE) {
		spin_lock(&fsb->lru_lock);
		if (fb_list_of(fsb, old, &count))
			--*count;
		list = fb_list_of(fsb, status, &count);
		if (list) {
			++*count;
			list_move_tail(&page->lru, list);
		} else {
			list_del_init(&page->lru);
			page->owner = NULL;
		}
		spin_unlock(&fsb->lru_lock);
	}
	WRITE_ONCE(page->status, status);
	if ((status & FB_STATUS_STATE) == FB_STATUS_FREE)
		return;
	if (status & FB_STATUS_DIRTY)
		__xa_set_mark(&fi->index, page->index, FB_MARK_DIRTY);
	else
		__xa_clear_mark(&fi->index, page->index, FB_MARK_DIRTY);
	if ((status & FB_STATUS_STATE) == FB_STATUS_OUT_OF_SYNC)
		__xa_set_mark(&fi->index, page->index, FB_MARK_OUT_OF_SYNC);
	else
		__xa_clear_mark(&fi->index, page->index, FB_MARK_OUT_OF_SYNC);
}

/**
 * fb_page_insert() - put an out-of-sync page into the index
 * @fi: the inode; io_sem is held exclusively, or nobody else uses it yet
 * @page: the page, with a committed record
 * @index: its place, which is reserved
 */
void fb_page_insert(struct fb_inode *fi, struct fb_page *page, pgoff_t index)
{
	page->owner = fi;
	page->index = index;
	page->referenced = true;
	xa_lock(&fi->index);
	WARN_ON_ONCE(__xa_store(&fi->index, index, page, 0));
	fi->nr_pages++;
	fb_page_set(fi, page, FB_STATUS_OUT_OF_SYNC);
	xa_unlock(&fi->index);
}

/**
 * fb_page_reserve() - have memory ready for an index entry
 * @fi: the inode
 * @index: where a page will be published
 *
 * Return: 0 or -ENOMEM. May sleep.
 */
int fb_page_reserve(struct fb_inode *fi, pgoff_t index)
{
	return xa_reserve(&fi->index, index, GFP_NOFS);
}

/**
 * fb_page_unreserve() - take a page back that will not be published
 * @fi: the inode
 * @in: its reserved place, and the page, which becomes free
 */
void fb_page_unreserve(struct fb_inode *fi, struct fb_incoming *in)
{
	xa_release(&fi->index, in->index);
	fb_page_put_free(FB_SB(fi->vfs_inode.i_sb), in->page);
}

/**
 * fb_pages_publish() - make pages primary that were copied to PMem
 * @fi: the inode; has a file record, io_sem is held exclusively
 * @in: pages, written (fences not needed) and with places reserved
 * @nr: how many, at most FB_MOVE_BATCH
 *
 * When this returns they are durable, and in the index.
 */
void fb_pages_publish(struct fb_inode *fi, struct fb_incoming *in, unsigned int nr)
{
	struct fb_sb *fsb = FB_SB(fi->vfs_inode.i_sb);
	struct ps_move moves[FB_MOVE_BATCH];
	struct ps *ps = &fsb->ps;
	unsigned int i;

	for (i = 0; i < nr; i++) {
		moves[i] = (struct ps_move) {
			.index = in[i].index, .file = fi->file, .page = fb_page_number(fsb, in[i].page) };
		ps_page_prepare(ps, moves[i].page, moves[i].file, moves[i].index);
	}
	ps_pages_commit(ps, moves, nr, PS_PAGE_OUT_OF_SYNC);
	for (i = 0; i < nr; i++)
		fb_page_insert(fi, in[i].page, in[i].index);
	trace_fb_publish(fi, in[0].index, nr);
}

/**
 * __fb_page_touch() - a page is about to be changed
 * @fi: its inode; io_sem is held, in either way
 * @page: the page
 * @mapped: through a writable mapping, so that only a flush shows when it ends
 */
void __fb_page_touch(struct fb_inode *fi, struct fb_page *page, bool mapped)
{
	struct fb_sb *fsb = FB_SB(fi->vfs_inode.i_sb);
	u32 status;

	xa_lock(&fi->index);
	status = page->status;
	if ((status & FB_STATUS_STATE) == FB_STATUS_CLEAN) {
		ps_page_set_state(&fsb->ps, fb_page_number(fsb, page), PS_PAGE_OUT_OF_SYNC);
		ps_fence(&fsb->ps);
	}
	status = FB_STATUS_OUT_OF_SYNC | (status & FB_STATUS_DIRTY);
	if (mapped && fsb->ps.flush_caches)
		status |= FB_STATUS_DIRTY;
	fb_page_set(fi, page, status);
	xa_unlock(&fi->index);
	page->referenced = true;
}

/**
 * fb_page_flush() - stores that were made through mappings leave the CPU caches
 * @fi: its inode; io_sem is held exclusively
 * @page: a page that no mapping has
 *
 * They are durable after ps_fence().
 */
void fb_page_flush(struct fb_inode *fi, struct fb_page *page)
{
	struct fb_sb *fsb = FB_SB(fi->vfs_inode.i_sb);

	if (!(page->status & FB_STATUS_DIRTY))
		return;
	ps_page_flush(&fsb->ps, fb_page_number(fsb, page), 0, PAGE_SIZE);
	xa_lock(&fi->index);
	fb_page_set(fi, page, page->status & ~FB_STATUS_DIRTY);
	xa_unlock(&fi->index);
}

/**
 * fb_page_begin_writeback() - a copy of the page is about to be made
 * @fi: its inode; io_sem is held exclusively and no mapping has the page, so
 *	whoever changes it from now on comes through touch
 * @page: an out-of-sync page
 */
void fb_page_begin_writeback(struct fb_inode *fi, struct fb_page *page)
{
	fb_page_flush(fi, page);
	xa_lock(&fi->index);
	fb_page_set(fi, page, page->status | FB_STATUS_WRITEBACK);
	xa_unlock(&fi->index);
}

/**
 * fb_page_end_writeback() - the copy is durable below, or could not be made
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

	xa_lock(&fi->index);
	clean = ok && (page->status & FB_STATUS_WRITEBACK) && !fb_page_pinned(fsb, page);
	if (clean) {
		ps_page_set_state(&fsb->ps, fb_page_number(fsb, page), PS_PAGE_CLEAN);
		fb_page_set(fi, page, FB_STATUS_CLEAN);
	} else {
		fb_page_set(fi, page, page->status & ~FB_STATUS_WRITEBACK);
	}
	xa_unlock(&fi->index);
	return clean;
}

/**
 * fb_page_detach() - take a page out of the index and leave its record
 * @fi: its inode; nobody else has it
 * @page: the page; the caller's from now on, record included
 */
void fb_page_detach(struct fb_inode *fi, struct fb_page *page)
{
	xa_lock(&fi->index);
	__xa_erase(&fi->index, page->index);
	fi->nr_pages--;
	fb_page_set(fi, page, FB_STATUS_FREE);
	xa_unlock(&fi->index);
}

/**
 * fb_pages_forget() - the lower file is primary for these pages from now on
 * @fi: its inode; io_sem is held exclusively
 * @pages: pages that no mapping has and no hardware uses; free afterwards
 * @nr: how many, at most FB_FORGET_BATCH
 *
 * Their records are durably free before they can be used again, and before the
 * lower file is written in their place.
 */
void fb_pages_forget(struct fb_inode *fi, struct fb_page **pages, unsigned int nr)
{
	struct fb_sb *fsb = FB_SB(fi->vfs_inode.i_sb);
	u32 numbers[FB_FORGET_BATCH];

	for (unsigned int i = 0; i < nr; i++) {
		numbers[i] = fb_page_number(fsb, pages[i]);
		fb_page_detach(fi, pages[i]);
	}
	ps_pages_free(&fsb->ps, numbers, nr);
	for (unsigned int i = 0; i < nr; i++)
		fb_page_put_free(fsb, pages[i]);
}
