// SPDX-License-Identifier: GPL-2.0-only
/*
 * Reads of regular files: read, splice. io.c tells how a range is split, and how a copy meets page faults.
 *
 *   buffered read	takes no lock. It looks at the size, then at the index, then reads below: what was
 *			below then stays readable there, though its page may move. After a truncation it reads
 *			again.
 *   splice, direct	lock their range, shared, until they end: they can't be taken back.
 *   read
 */
#include <linux/file.h>
#include <linux/uio.h>

#include "../../compat/backing.h"
#include "../page/copies.h"
#include "../page/index.h"
#include "../page/page.h"
#include "../page/size.h"
#include "direct.h"
#include "io.h"
#include "read.h"

/* How often a copy may find the user's page gone again. Then the bytes go through a page of the kernel. */
#define FB_READ_TRIES	64

/*
 * Reads @len bytes from the lower file's page cache, as far as that goes without a page fault, because the
 * lower file system may hold its own locks while it copies. The lower file's own method is called, under the
 * checks that the VFS has made above. backing_file_read_iter() makes them all again, which costs a cached 4
 * KiB read 6 %.
 */
static ssize_t fb_read_cached(struct kiocb *iocb, struct iov_iter *to, size_t len)
{
	struct file *lower = fb_lower_file_now(iocb->ki_filp);
	size_t rest = iov_iter_count(to) - len;
	struct kiocb below;
	ssize_t ret;

	pagefault_disable();
	iov_iter_truncate(to, len);
	kiocb_clone(&below, iocb, lower);
	below.ki_complete = NULL;
	ret = lower->f_op->read_iter(&below, to);
	iocb->ki_pos = below.ki_pos;
	iov_iter_reexpand(to, iov_iter_count(to) + rest);
	pagefault_enable();
	return ret;
}

/*
 * Reads from below, of a file that was as long as @end says before the caller looked the index up. A page
 * that was below then may move meanwhile: its folio keeps what it had. What lies behind that end may be
 * stale below by now, and is not read. After a truncation everything may be stale: the piece is read again.
 */
static ssize_t fb_read_lower(struct fb_inode *fi, struct kiocb *iocb, struct iov_iter *to, size_t len,
			     const struct fb_size_seen *end)
{
	struct backing_file_ctx ctx = { .cred = current_cred(), COMPAT_USER_FILE(iocb->ki_filp) };
	ssize_t ret;

	if (iocb->ki_flags & IOCB_DIRECT) {
		/* In whole blocks: the lower file ends where ours does, or its last page is below. */
		len = min(iov_iter_count(to), round_up(iocb->ki_pos + len, PAGE_SIZE) - iocb->ki_pos);
		return fb_direct_io(fb_lower_file_now(iocb->ki_filp), iocb, to, min(len, FB_DIRECT_MAX),
				    iocb->ki_flags, &ctx);
	}
	ret = fb_read_cached(iocb, to, len);
	smp_rmb();	/* pairs with fb_truncate_begin(): what was read is older than this look */
	if (ret > 0 && READ_ONCE(fi->truncate_seq) != end->truncate_seq) {
		iov_iter_revert(to, ret);
		iocb->ki_pos -= ret;
		return -ESTALE;
	}
	return ret;
}

/*
 * Copies from the DAX page at the position; -ESTALE if it isn't one any more, or the file was truncated since
 * @end was seen. -ERESTART: nothing was copied, though the user's page is there: the PMem may be bad.
 */
static ssize_t fb_read_dax(struct fb_inode *fi, struct kiocb *iocb, struct iov_iter *to, size_t len,
			   const struct fb_size_seen *end)
{
	struct fb_sb *fsb = FB_SB(fi->vfs_inode.i_sb);
	size_t offset = offset_in_page(iocb->ki_pos), copied = 0;
	struct fb_page *page;
	const void *from;
	bool bad = false;
	int err;

	len = min(len, PAGE_SIZE - offset);
	err = fb_down_read(fi, iocb);
	if (err)
		return err;
	page = fb_page_find(fi, iocb->ki_pos >> PAGE_SHIFT);
	/* A truncation zeroes the rest of the page, and changes truncate_seq, in one hold of io_sem. */
	if (fi->truncate_seq != end->truncate_seq)
		page = NULL;
	if (page) {
		from = fb_page_address(fsb, page) + offset;
		bad = page->bad;
		pagefault_disable();
		if (!bad)
			copied = _copy_mc_to_iter(from, len, to);
		pagefault_enable();
		trace_forebay_pm_read(from, copied);
		page->referenced = true;
	}
	up_read(&fi->io_sem);
	if (!page || bad)
		return bad ? -EIO : -ESTALE;
	iocb->ki_pos += copied;
	if (!copied)
		return fault_in_iov_iter_writeable(to, len) == len ? -EFAULT : -ERESTART;
	fb_copied(fsb, FB_COPIED_OUT, copied);
	return copied;
}

/*
 * Reads the next piece. -ESTALE: a new look must be taken. -ERESTART: nothing was copied, though the user's
 * page is there now.
 */
static ssize_t fb_read_some(struct fb_inode *fi, struct kiocb *iocb, struct iov_iter *to)
{
	struct fb_size_seen end = fb_see_size(fi);	/* before the index */
	loff_t pos = iocb->ki_pos;
	size_t len, window;
	ssize_t ret;

	if (pos >= end.size)
		return 0;
	len = min_t(loff_t, iov_iter_count(to), end.size - pos);
	smp_rmb();	/* pairs with fb_size_grew(), which comes after the index */
	if (fb_page_find(fi, pos >> PAGE_SHIFT))
		return fb_read_dax(fi, iocb, to, len, &end);
	len = fb_lower_span(fi, pos, len);
	if (!len)
		return -ESTALE;
	ret = fb_read_lower(fi, iocb, to, len, &end);
	if (ret != -EFAULT)
		return ret;
	window = min(iov_iter_count(to), fb_fault_window(iocb));
	return fb_still_bad(iocb, to, window) ? -EFAULT : -ERESTART;
}

/*
 * Reads up to a page by way of a page of the kernel's, and copies it to the user without a lock. -ERESTART:
 * the PMem is bad.
 */
static ssize_t fb_read_bounced(struct fb_inode *fi, struct kiocb *iocb, struct iov_iter *to)
{
	struct kvec page = { .iov_base = (void *)__get_free_page(GFP_KERNEL),
			     .iov_len = min(iov_iter_count(to), PAGE_SIZE) };
	struct iov_iter bounce;
	ssize_t ret, copied;

	if (!page.iov_base)
		return -ENOMEM;
	iov_iter_kvec(&bounce, ITER_DEST, &page, 1, page.iov_len);
	ret = fb_read_some(fi, iocb, &bounce);
	if (ret > 0) {
		copied = copy_to_iter(page.iov_base, ret, to);
		iocb->ki_pos -= ret - copied;
		ret = copied ?: -EFAULT;
	}
	free_page((unsigned long)page.iov_base);
	return ret;
}

static ssize_t fb_read_pieces(struct fb_inode *fi, struct kiocb *iocb, struct iov_iter *to)
{
	unsigned int tries = 0;
	ssize_t done = 0, ret;

	do {
		ret = tries < FB_READ_TRIES ? fb_read_some(fi, iocb, to) : fb_read_bounced(fi, iocb, to);
		/* The page's state is changed by tasks that may need this processor. */
		cond_resched();
		if (ret == -ESTALE)
			continue;
		if (ret == -ERESTART && ++tries <= FB_READ_TRIES)
			continue;
		if (ret == -EIOCBQUEUED)	/* nothing was done before it */
			return ret;
		if (ret <= 0)
			break;
		tries = 0;
		done += ret;
	} while (iov_iter_count(to) && !fatal_signal_pending(current));
	if (ret == -ESTALE)
		ret = -EINTR;
	if (ret == -ERESTART)
		ret = -EIO;
	return done ?: ret;
}

/**
 * fb_read_iter() - read(2) and its kin
 * @iocb: the request
 * @to: memory
 *
 * Return: bytes, -EIOCBQUEUED, or an error.
 */
ssize_t fb_read_iter(struct kiocb *iocb, struct iov_iter *to)
{
	struct fb_inode *fi = FB_I(file_inode(iocb->ki_filp));
	ssize_t done = 0, ret;
	struct kiocb sync;

	if (!iov_iter_count(to))
		return 0;
	if (fb_has_pages(fi)) {
		ret = fb_wait_to_begin(fi, iocb, to);
		if (ret)
			return ret;
	}
	while (!done && !fatal_signal_pending(current) &&
	       fb_may_end_later(fi, iocb, iov_iter_count(to))) {
		ret = fb_read_some(fi, iocb, to);
		if (ret > 0)
			done = ret;	/* the rest, if any, is in PMem by now, or behind the end */
		else if (ret != -ESTALE && ret != -ERESTART)
			return ret;
		cond_resched();
	}
	if (!iov_iter_count(to))
		return done;
	sync = fb_sync_kiocb(iocb);
	ret = fb_read_pieces(fi, &sync, to);
	iocb->ki_pos = sync.ki_pos;
	if (ret >= 0 || done)
		ret = done + max_t(ssize_t, ret, 0);
	if (fb_has_pages(fi))
		file_accessed(fb_lower_file(iocb->ki_filp));
	return ret;
}

/**
 * fb_splice_read() - splice(2) and sendfile(2) from a file
 * @in: upper file
 * @pos: where; moves on
 * @pipe: takes the pages
 * @len: bytes
 * @flags: SPLICE_F_*
 *
 * A pipe takes no byte back. So the range is locked against truncations, and nothing behind the end that was
 * seen is read.
 *
 * Return: bytes, or an error.
 */
ssize_t fb_splice_read(struct file *in, loff_t *pos, struct pipe_inode_info *pipe, size_t len,
		       unsigned int flags)
{
	struct backing_file_ctx ctx = { .cred = current_cred(), COMPAT_USER_FILE(in) };
	struct fb_inode *fi = FB_I(file_inode(in));
	loff_t size = i_size_read(&fi->vfs_inode);
	struct fb_range range;
	ssize_t ret;

	if (*pos >= size || !len)
		return 0;
	len = min_t(loff_t, len, size - *pos);
	ret = fb_wait_to_splice(fi, pipe);
	if (ret)
		return ret;
	ret = fb_range_lock(&fi->ranges, &range, *pos >> PAGE_SHIFT, (*pos + len - 1) >> PAGE_SHIFT,
			    FB_RANGE_KILLABLE);
	if (ret)
		return ret;
	if (fb_lower_span(fi, *pos, len) == len)
		ret = compat_splice_read(fb_lower_file(in), in, pos, pipe, len, flags, &ctx);
	else
		ret = -ESTALE;
	fb_range_unlock(&fi->ranges, &range);
	return ret == -ESTALE ? copy_splice_read(in, pos, pipe, len, flags) : ret;
}
