// SPDX-License-Identifier: GPL-2.0-only
/*
 * Direct I/O of the lower file.
 *
 * A request locks its range of pages (range_lock.c), shared, until it has ended: no page of it moves to
 * PMem meanwhile, and the range is not truncated. An asynchronous one takes the lock along and unlocks it
 * when it ends.
 *
 * The lower file system takes its inode lock and then the user's pages; a page fault there could wait for
 * a range, whose holder waits for that inode lock. With iov_iter->nofault a page that is missing in the
 * middle would leave the iterator advanced, or end an asynchronous request with -EFAULT. So user memory is
 * pinned here first, before the range is locked, and the lower file gets an iterator of pages.
 *
 * io_uring first tries each request without waiting (IOCB_NOWAIT). xfs may then submit the first extent of a
 * read, find its lock taken at the second one, and end the whole read later with EAGAIN. Linux passes that on
 * to the program. Here a worker reads again, and waits.
 */
#include <linux/bvec.h>
#include <linux/mm.h>
#include <linux/slab.h>
#include <linux/uio.h>

#include "../../compat/backing.h"
#include "../page/index.h"
#include "direct.h"

/* How many pages are pinned by one call. */
#define FB_SPAN_PAGES	16

struct fb_direct {
	struct kiocb iocb;		/* what the lower file gets */
	struct kiocb *orig;
	struct fb_inode *fi;
	struct fb_range range;		/* locked, shared */
	struct work_struct work;
	struct iov_iter iter;		/* the memory, as the lower file gets it */
	long result;
	bool read;
	unsigned int nr;
	struct bio_vec bvec[];
};

static void fb_direct_free(struct fb_direct *direct)
{
	for (unsigned int i = 0; i < direct->nr; i++)
		unpin_user_pages_dirty_lock(&direct->bvec[i].bv_page, 1, direct->read);
	kvfree(direct);
}

static void fb_direct_finish(struct fb_direct *direct)
{
	struct kiocb *orig = direct->orig;
	long result = direct->result;

	fb_range_unlock(&direct->fi->ranges, &direct->range);
	fb_direct_free(direct);
	orig->ki_complete(orig, result);
}

/*
 * A synchronous request by the lower file's own method, under the checks that the VFS has made above. The
 * backing_file_*() functions make them all again, which a direct write of 4 KiB to a fast disk notices. A
 * read needs no @ctx.
 */
static ssize_t fb_direct_now(struct file *lower, struct fb_direct *direct, struct iov_iter *piece, int flags,
			     struct backing_file_ctx *ctx)
{
	struct kiocb below;
	ssize_t ret;

	kiocb_clone(&below, &direct->iocb, lower);
	below.ki_flags = flags;
	if (iov_iter_rw(piece) == ITER_DEST) {
		ret = lower->f_op->read_iter(&below, piece);
	} else {
		file_start_write(lower);
		ret = lower->f_op->write_iter(&below, piece);
		file_end_write(lower);
		compat_end_write(ctx, &direct->iocb, below.ki_pos, ret);
	}
	direct->iocb.ki_pos = below.ki_pos;
	return ret;
}

/* True of a read that would have had to wait; fb_direct_read_again() does. */
static bool fb_direct_must_wait(const struct fb_direct *direct)
{
	return direct->result == -EAGAIN && direct->iocb.ki_flags & IOCB_NOWAIT &&
	       iov_iter_rw(&direct->iter) == ITER_DEST;
}

static void fb_direct_read_again(struct fb_direct *direct)
{
	struct file *lower = fb_lower_file(direct->orig->ki_filp);
	int flags = direct->iocb.ki_flags & ~IOCB_NOWAIT;

	direct->result = fb_direct_now(lower, direct, &direct->iter, flags, NULL);
	direct->orig->ki_pos = direct->iocb.ki_pos;
}

static void fb_direct_work(struct work_struct *work)
{
	struct fb_direct *direct = container_of(work, struct fb_direct, work);

	if (fb_direct_must_wait(direct))
		fb_direct_read_again(direct);
	fb_direct_finish(direct);
}

/* The asynchronous end, perhaps in an interrupt, where pages can't be marked dirty, and no task may wait. */
static void fb_direct_complete(struct kiocb *iocb, long result)
{
	struct fb_direct *direct = container_of(iocb, struct fb_direct, iocb);

	direct->orig->ki_pos = iocb->ki_pos;
	direct->result = result;
	if (!direct->read && !fb_direct_must_wait(direct)) {
		fb_direct_finish(direct);
		return;
	}
	INIT_WORK(&direct->work, fb_direct_work);
	queue_work(FB_SB(direct->fi->vfs_inode.i_sb)->wq, &direct->work);
}

/* The pages that @iter begins with. */
struct fb_span {
	unsigned long start;		/* address of the first */
	size_t offset, len;		/* bytes: before what is meant, and of that */
	unsigned long nr;
};

static struct fb_span fb_next_span(struct iov_iter *iter)
{
	struct fb_span span;

	iov_iter_advance(iter, 0);	/* past empty segments */
	span.offset = offset_in_page(iter_iov_addr(iter));
	span.start = (unsigned long)iter_iov_addr(iter) - span.offset;
	span.len = min(iov_iter_count(iter), FB_SPAN_PAGES * PAGE_SIZE - span.offset);
	if (iter_is_iovec(iter))
		span.len = min(span.len, iter_iov_len(iter));
	span.nr = DIV_ROUND_UP(span.offset + span.len, PAGE_SIZE);
	return span;
}

/*
 * Pins what @iter has; advances it. Called before the range is locked, since it takes page faults. Without
 * mmap_lock where the pages are there: many threads that try for that lock keep each other from it.
 */
static int fb_direct_pin(struct fb_direct *direct, struct iov_iter *iter)
{
	unsigned int flags = direct->read ? FOLL_WRITE : 0;
	struct page *pages[FB_SPAN_PAGES];
	struct fb_span span;
	size_t part;
	long nr = 0;

	while (iov_iter_count(iter)) {
		span = fb_next_span(iter);
		nr = pin_user_pages_fast(span.start, span.nr, flags, pages);
		if (nr <= 0)
			break;
		span.len = min(span.len, nr * PAGE_SIZE - span.offset);
		iov_iter_advance(iter, span.len);
		for (long i = 0; i < nr; i++, span.len -= part, span.offset = 0) {
			part = min(span.len, PAGE_SIZE - span.offset);
			bvec_set_page(&direct->bvec[direct->nr++], pages[i], part, span.offset);
		}
	}
	return iov_iter_count(iter) ? -EFAULT : 0;
}

/**
 * fb_direct_fault_in() - make what pinning without faults would miss
 * @iter: what is left of a direct request
 * @len: bytes of it
 *
 * Touching the pages is not enough: memory that is shared with a forked child must be
 * copied before it can be pinned, for reading too. So they are pinned once, with faults.
 * Waits for mmap_lock; called without locks.
 *
 * Return: bytes that can't be had; 0 if it is worth trying again.
 */
size_t fb_direct_fault_in(const struct iov_iter *iter, size_t len)
{
	unsigned int flags = iov_iter_rw(iter) == ITER_DEST ? FOLL_WRITE : 0;
	struct page *pages[FB_SPAN_PAGES];
	struct iov_iter rest = *iter;
	struct fb_span span;
	long nr;

	if (!user_backed_iter(iter))
		return 0;
	iov_iter_truncate(&rest, len);
	while (iov_iter_count(&rest)) {
		span = fb_next_span(&rest);
		nr = pin_user_pages_unlocked(span.start, span.nr, pages, flags);
		if (nr <= 0)
			break;
		unpin_user_pages(pages, nr);
		iov_iter_advance(&rest, min(span.len, nr * PAGE_SIZE - span.offset));
	}
	return iov_iter_count(&rest);
}

/*
 * An fb_direct for the next @len bytes of @iter, their pages pinned if they are the user's; @iter stays.
 * -ESTALE: some of it is in PMem.
 */
static struct fb_direct *fb_direct_begin(struct kiocb *iocb, struct iov_iter *piece)
{
	struct fb_inode *fi = FB_I(file_inode(iocb->ki_filp));
	unsigned int pages = user_backed_iter(piece) ? iov_iter_npages(piece, INT_MAX) : 0;
	size_t len = iov_iter_count(piece);
	struct fb_direct *direct;
	int err;

	direct = kvmalloc(struct_size(direct, bvec, pages), GFP_NOFS);
	if (!direct)
		return ERR_PTR(-ENOMEM);
	direct->nr = 0;
	direct->orig = iocb;
	direct->fi = fi;
	direct->read = user_backed_iter(piece) && iov_iter_rw(piece) == ITER_DEST;
	kiocb_clone(&direct->iocb, iocb, iocb->ki_filp);
	direct->iocb.ki_complete = is_sync_kiocb(iocb) ? NULL : fb_direct_complete;
	if (user_backed_iter(piece)) {
		err = fb_direct_pin(direct, piece);
		if (err)
			goto unpin;
		iov_iter_bvec(piece, iov_iter_rw(piece), direct->bvec, direct->nr, len);
	}
	err = fb_range_lock(&fi->ranges, &direct->range, iocb->ki_pos >> PAGE_SHIFT,
			    (iocb->ki_pos + len - 1) >> PAGE_SHIFT,
			    iocb->ki_flags & IOCB_NOWAIT ? FB_RANGE_NOWAIT : FB_RANGE_KILLABLE);
	if (err)
		goto unpin;
	if (fb_lower_span(fi, iocb->ki_pos, len) == len) {
		direct->iter = *piece;
		return direct;
	}
	err = -ESTALE;
	fb_range_unlock(&fi->ranges, &direct->range);
unpin:
	direct->read = false;	/* nothing was */
	fb_direct_free(direct);
	return ERR_PTR(err);
}

static ssize_t fb_direct_end(struct fb_direct *direct, struct iov_iter *iter, ssize_t ret)
{
	if (ret == -EIOCBQUEUED)
		return ret;
	if (ret > 0) {
		direct->orig->ki_pos = direct->iocb.ki_pos;
		iov_iter_advance(iter, ret);
	}
	fb_range_unlock(&direct->fi->ranges, &direct->range);
	fb_direct_free(direct);
	return ret;
}

/**
 * fb_direct_io() - one direct read or write of the lower file
 * @lower: the lower file
 * @iocb: the request; the lower file may finish it later if it is not synchronous
 * @iter: memory
 * @len: bytes of it, at most FB_DIRECT_MAX, and all of them outside of PMem
 * @flags: IOCB_* for the lower file
 * @ctx: for backing_file_read_iter() or backing_file_write_iter(); with end_write() for a write
 *
 * Return: bytes; -EFAULT if memory must be faulted in first; -ESTALE if a page is in PMem by now;
 * -EIOCBQUEUED; or an error.
 */
ssize_t fb_direct_io(struct file *lower, struct kiocb *iocb, struct iov_iter *iter, size_t len, int flags,
		     struct backing_file_ctx *ctx)
{
	struct iov_iter piece = *iter;
	struct fb_direct *direct;
	ssize_t ret;

	iov_iter_truncate(&piece, len);
	direct = fb_direct_begin(iocb, &piece);
	if (IS_ERR(direct))
		return PTR_ERR(direct);
	if (is_sync_kiocb(iocb))
		return fb_direct_end(direct, iter, fb_direct_now(lower, direct, &piece, flags, ctx));
	fb_range_disown(&direct->fi->ranges, &direct->range);
	if (iov_iter_rw(iter) == ITER_DEST)
		ret = backing_file_read_iter(lower, &piece, &direct->iocb, flags, ctx);
	else
		ret = backing_file_write_iter(lower, &piece, &direct->iocb, flags, ctx);
	return fb_direct_end(direct, iter, ret);
}
