// SPDX-License-Identifier: GPL-2.0-only
/*
 * Absorption, foreseen: a file whose last sync was paid in PMem, and that has taken few
 * pages since, will be synced again soon. A write that replaces a whole page of it
 * goes to PMem at once, without the detour over the lower file's page cache.
 *
 * Only where the lower file has data: so its space is there when the page is
 * written back. Otherwise, or if anything is in the way, the write is an ordinary
 * volatile one, and the next sync moves its pages.
 *
 * The page moves as in absorb.c, with io_sem held exclusively, but its bytes come
 * from the user, with page faults disabled. It is durable when the write returns.
 */
#include "cache.h"
#include "overwrite.h"
#include "page_index.h"
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

	return test_bit(FB_SYNCED_IN_PMEM, &fi->flags) && !offset_in_page(iocb->ki_pos) &&
	       iov_iter_count(from) >= PAGE_SIZE && !(iocb->ki_flags & (IOCB_DIRECT | IOCB_NOWAIT)) &&
	       iocb->ki_pos + PAGE_SIZE <= i_size_read(fi->lower) && fsb->mode == FB_MODE_AUTO &&
	       fi->file != FB_NO_FILE && fi->overwritten + fi->tracker.nr_pages < fsb->absorb_pages &&
	       !fb_page_find(fi, iocb->ki_pos >> PAGE_SHIFT);
}

/* Nothing below is mapped, about to be mapped, or in use by hardware, for this page. */
static bool fb_lower_is_quiet(struct fb_inode *fi, pgoff_t index)
{
	struct folio *folio;

	if (!mapping_mapped(fi->lower->i_mapping))
		return true;
	folio = fb_lower_folio(fi, index);
	if (IS_ERR(folio))
		return PTR_ERR(folio) == -ENOENT;
	folio_unlock(folio);
	folio_put(folio);
	return true;
}

/* A page of PMem with the next page of @from in it, and its place reserved. Returns false if that failed. */
static bool fb_take_page(struct fb_inode *fi, struct kiocb *iocb, struct iov_iter *from,
			 struct fb_incoming *in)
{
	struct fb_sb *fsb = FB_SB(fi->vfs_inode.i_sb);
	size_t copied;

	in->index = iocb->ki_pos >> PAGE_SHIFT;
	in->page = fb_page_alloc(fsb);
	if (!in->page)
		return false;
	if (fb_page_reserve(fi, in->index)) {
		fb_page_put_free(fsb, in->page);
		return false;
	}
	pagefault_disable();
	copied = _copy_from_iter_flushcache(fb_page_address(fsb, in->page), PAGE_SIZE, from);
	pagefault_enable();
	if (copied == PAGE_SIZE)
		return true;
	iov_iter_revert(from, copied);
	fb_page_unreserve(fi, in);
	return false;
}

/**
 * fb_overwrite() - write one whole page to PMem
 * @fi: the inode
 * @iocb: the write; advanced
 * @from: what is left of it, advanced
 *
 * Return: PAGE_SIZE; or 0: then nothing is done, and the write has to go the ordinary way.
 */
ssize_t fb_overwrite(struct fb_inode *fi, struct kiocb *iocb, struct iov_iter *from)
{
	struct file *lower = fb_lower_file(iocb->ki_filp);
	loff_t pos = iocb->ki_pos;
	struct fb_incoming in;
	bool done;

	down_write(&fi->io_sem);
	inode_dio_wait(fi->lower);
	done = fi->file != FB_NO_FILE && vfs_llseek(lower, pos, SEEK_DATA) == pos &&
	       fb_lower_is_quiet(fi, pos >> PAGE_SHIFT) && fb_take_page(fi, iocb, from, &in);
	if (done)
		fb_pages_publish(fi, &in, 1);
	up_write(&fi->io_sem);
	if (!done)
		return 0;
	fi->overwritten++;
	iocb->ki_pos += PAGE_SIZE;
	fb_count(FB_SB(fi->vfs_inode.i_sb), FB_PAGES_ABSORBED, 1);
	return PAGE_SIZE;
}
