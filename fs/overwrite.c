// SPDX-License-Identifier: GPL-2.0-only
/*
 * Absorption, foreseen: a file whose last sync was paid in PMem, and that has taken few
 * pages since, will be synced again soon. A write that replaces a whole page of it, or
 * begins a new last one, goes to PMem at once, without the detour over the lower file's
 * page cache.
 *
 * Only where the lower file has data, or space set aside beyond its end (reserve.c): so
 * there is room when the page is written back. Otherwise, or if anything is in the way,
 * the write is an ordinary volatile one, and the next sync moves its pages.
 *
 * The page moves as in absorb.c, with io_sem held exclusively, but its bytes come
 * from the user, with page faults disabled. It is durable when the write returns.
 */
#include "cache.h"
#include "overwrite.h"
#include "page_index.h"
#include "reserve.h"
#include "sync.h"

/**
 * fb_overwrite_wanted() - shall the next page of a write go to PMem at once?
 * @fi: the inode, whose i_rwsem is held exclusively
 * @iocb: the write
 * @from: what is left of it
 */
bool fb_overwrite_wanted(struct fb_inode *fi, struct kiocb *iocb, struct iov_iter *from)
{
	struct fb_sb *fsb = FB_SB(fi->vfs_inode.i_sb);
	bool replaces = iov_iter_count(from) >= PAGE_SIZE &&
			iocb->ki_pos + PAGE_SIZE <= i_size_read(fi->lower);
	bool appends = iocb->ki_pos == i_size_read(&fi->vfs_inode) &&
		       fi->reserved != FB_RESERVE_NEVER;

	return (replaces || appends) && test_bit(FB_SYNCED_IN_PMEM, &fi->flags) &&
	       !offset_in_page(iocb->ki_pos) && !(iocb->ki_flags & (IOCB_DIRECT | IOCB_NOWAIT)) &&
	       fsb->mode == FB_MODE_AUTO && fi->file != FB_NO_FILE &&
	       fi->overwritten + fi->tracker.nr_pages < fsb->absorb_pages &&
	       !fb_page_find(fi, iocb->ki_pos >> PAGE_SHIFT);
}

/* Nothing below is mapped, about to be mapped, or in use by hardware, for this page. */
static bool fb_lower_is_quiet(struct fb_inode *fi, pgoff_t index)
{
	struct folio *folio;

	if (!mapping_mapped(fi->lower->i_mapping))
		return true;
	folio = fb_lower_folio(fi, index, true);
	if (IS_ERR(folio))
		return PTR_ERR(folio) == -ENOENT;
	folio_unlock(folio);
	folio_put(folio);
	return true;
}

/* Will there be room below for the page at @pos? */
static bool fb_has_room(struct fb_inode *fi, struct file *lower, loff_t pos)
{
	if (pos >= i_size_read(fi->lower))
		return fb_reserve(fi, lower, pos + PAGE_SIZE);
	return vfs_llseek(lower, pos, SEEK_DATA) == pos;
}

/*
 * A page of PMem with the next bytes of @from in it, zeros behind them, and its place reserved.
 * Returns how many bytes; 0 if that failed.
 */
static size_t fb_take_page(struct fb_inode *fi, struct kiocb *iocb, struct iov_iter *from,
			   struct fb_incoming *in)
{
	struct fb_sb *fsb = FB_SB(fi->vfs_inode.i_sb);
	size_t len = min(iov_iter_count(from), PAGE_SIZE), copied;
	void *to;

	in->index = iocb->ki_pos >> PAGE_SHIFT;
	in->clean = false;
	in->page = fb_page_alloc(fsb);
	if (!in->page)
		return 0;
	if (fb_page_reserve(fi, in->index)) {
		fb_page_put_free(fsb, in->page);
		return 0;
	}
	to = fb_page_address(fsb, in->page);
	pagefault_disable();
	copied = _copy_from_iter_flushcache(to, len, from);
	pagefault_enable();
	trace_forebay_pm_write(to, copied);
	if (copied == len) {
		ps_page_zero(&fsb->ps, fb_page_number(fsb, in->page), len, PAGE_SIZE - len);
		return len;
	}
	iov_iter_revert(from, copied);
	fb_page_unreserve(fi, in);
	return 0;
}

/**
 * fb_overwrite() - write one page to PMem
 * @fi: the inode
 * @iocb: the write; advanced
 * @from: what is left of it, advanced
 *
 * Return: bytes, at most PAGE_SIZE; or 0: then nothing is done, and the write has to go the
 * ordinary way.
 */
ssize_t fb_overwrite(struct fb_inode *fi, struct kiocb *iocb, struct iov_iter *from)
{
	struct file *lower = fb_lower_file(iocb->ki_filp);
	loff_t pos = iocb->ki_pos;
	struct fb_incoming in;
	size_t len = 0;

	down_write(&fi->io_sem);
	inode_dio_wait(fi->lower);
	/* A fault or a sync may have moved the page since it was looked for. */
	if (fi->file != FB_NO_FILE && !fb_page_find(fi, pos >> PAGE_SHIFT) && fb_has_room(fi, lower, pos) &&
	    fb_lower_is_quiet(fi, pos >> PAGE_SHIFT))
		len = fb_take_page(fi, iocb, from, &in);
	if (len) {
		fb_pages_publish(fi, &in, 1);
		fb_size_grew(&fi->vfs_inode, pos + len);
	}
	up_write(&fi->io_sem);
	if (!len)
		return 0;
	fi->overwritten++;
	iocb->ki_pos += len;
	fb_count(FB_SB(fi->vfs_inode.i_sb), FB_PAGES_ABSORBED, 1);
	return len;
}
