// SPDX-License-Identifier: GPL-2.0-only
/*
 * Direct I/O of the lower file, to and from user memory.
 *
 * The lower file system takes its inode lock and then the user's pages; a page
 * fault there could wait for io_sem, whose holder waits for that inode lock. With
 * iov_iter->nofault a page that is missing in the middle would leave the iterator
 * advanced, or end an asynchronous request with -EFAULT. So the pages are pinned
 * here first, without faults, and the lower file gets an iterator of pages.
 * A page that is not there means -EFAULT with nothing done: the caller faults it
 * in without locks and tries again.
 */
#include <linux/bvec.h>
#include <linux/mm.h>
#include <linux/slab.h>
#include <linux/uio.h>

#include "direct.h"

/* So many pages are pinned in one go. */
#define FB_SPAN_PAGES	16

struct fb_direct {
	struct kiocb iocb;		/* what the lower file gets */
	struct kiocb *orig;
	struct work_struct work;
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

	fb_direct_free(direct);
	orig->ki_complete(orig, result);
}

static void fb_direct_work(struct work_struct *work)
{
	fb_direct_finish(container_of(work, struct fb_direct, work));
}

/* The asynchronous end, perhaps in an interrupt, where pages can't be marked dirty. */
static void fb_direct_complete(struct kiocb *iocb, long result)
{
	struct fb_direct *direct = container_of(iocb, struct fb_direct, iocb);

	direct->orig->ki_pos = iocb->ki_pos;
	direct->result = result;
	if (!direct->read) {
		fb_direct_finish(direct);
		return;
	}
	INIT_WORK(&direct->work, fb_direct_work);
	queue_work(FB_SB(file_inode(iocb->ki_filp)->i_sb)->wq, &direct->work);
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
 * Pins what @iter has, without page faults; advances it. Not by iov_iter_extract_pages(): even
 * without faults it may wait for mmap_lock, behind somebody who waits for a fault to end.
 */
static int fb_direct_pin(struct fb_direct *direct, struct iov_iter *iter)
{
	unsigned int flags = FOLL_NOFAULT | (direct->read ? FOLL_WRITE : 0);
	struct page *pages[FB_SPAN_PAGES];
	struct fb_span span;
	size_t part;
	long nr = 0;

	if (!mmap_read_trylock(current->mm))
		return -EFAULT;
	while (iov_iter_count(iter)) {
		span = fb_next_span(iter);
		nr = pin_user_pages(span.start, span.nr, flags, pages);
		if (nr <= 0)
			break;
		span.len = min(span.len, nr * PAGE_SIZE - span.offset);
		iov_iter_advance(iter, span.len);
		for (long i = 0; i < nr; i++, span.len -= part, span.offset = 0) {
			part = min(span.len, PAGE_SIZE - span.offset);
			bvec_set_page(&direct->bvec[direct->nr++], pages[i], part, span.offset);
		}
	}
	mmap_read_unlock(current->mm);
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

/* An fb_direct with the next @len bytes of @iter pinned; @iter stays. */
static struct fb_direct *fb_direct_begin(struct kiocb *iocb, const struct iov_iter *iter, size_t len)
{
	struct iov_iter piece = *iter;
	struct fb_direct *direct;
	int err;

	iov_iter_truncate(&piece, len);
	direct = kvmalloc(struct_size(direct, bvec, iov_iter_npages(&piece, INT_MAX)), GFP_NOFS);
	if (!direct)
		return ERR_PTR(-ENOMEM);
	direct->nr = 0;
	direct->orig = iocb;
	direct->read = iov_iter_rw(&piece) == ITER_DEST;
	kiocb_clone(&direct->iocb, iocb, iocb->ki_filp);
	direct->iocb.ki_complete = is_sync_kiocb(iocb) ? NULL : fb_direct_complete;
	err = fb_direct_pin(direct, &piece);
	if (!err)
		return direct;
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
	fb_direct_free(direct);
	return ret;
}

/**
 * fb_direct_read() - one direct read of the lower file
 * @lower: the lower file
 * @iocb: the request; the lower file may finish it later if it is not synchronous
 * @to: user memory
 * @len: bytes of it, at most FB_DIRECT_MAX
 * @ctx: for backing_file_read_iter()
 *
 * Return: bytes; -EFAULT if memory must be faulted in first; -EIOCBQUEUED; or an error.
 */
ssize_t fb_direct_read(struct file *lower, struct kiocb *iocb, struct iov_iter *to, size_t len,
		       struct backing_file_ctx *ctx)
{
	struct fb_direct *direct = fb_direct_begin(iocb, to, len);
	struct iov_iter pages;

	if (IS_ERR(direct))
		return PTR_ERR(direct);
	iov_iter_bvec(&pages, ITER_DEST, direct->bvec, direct->nr, len);
	return fb_direct_end(direct, to,
			     backing_file_read_iter(lower, &pages, &direct->iocb, iocb->ki_flags, ctx));
}

/**
 * fb_direct_write() - one direct write to the lower file
 * @lower: the lower file
 * @iocb: the request; the lower file may finish it later if it is not synchronous
 * @from: user memory
 * @len: bytes of it, at most FB_DIRECT_MAX
 * @flags: IOCB_* for the lower file
 * @ctx: for backing_file_write_iter()
 *
 * Return: bytes; -EFAULT if memory must be faulted in first; -EIOCBQUEUED; or an error.
 */
ssize_t fb_direct_write(struct file *lower, struct kiocb *iocb, struct iov_iter *from, size_t len, int flags,
			struct backing_file_ctx *ctx)
{
	struct fb_direct *direct = fb_direct_begin(iocb, from, len);
	struct iov_iter pages;

	if (IS_ERR(direct))
		return PTR_ERR(direct);
	iov_iter_bvec(&pages, ITER_SOURCE, direct->bvec, direct->nr, len);
	return fb_direct_end(direct, from, backing_file_write_iter(lower, &pages, &direct->iocb, flags, ctx));
}
