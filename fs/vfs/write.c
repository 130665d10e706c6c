// SPDX-License-Identifier: GPL-2.0-only
/*
 * Writes to regular files. io.c tells how a range is split, and how a copy meets page faults.
 *
 *   direct write	locks its range, shared, until it ends: it can't be taken back.
 *   buffered write	locks the range of each piece, shared, and passes it below.
 *
 * Writes hold the upper inode's i_rwsem, shared for direct writes inside a file that remove no privileges. A
 * write to a DAX page is durable when it returns: the copy bypasses the CPU caches, and a fence ends it.
 */
#include <linux/file.h>
#include <linux/uio.h>

#include "../../compat/attr.h"
#include "../../compat/backing.h"
#include "../page/copies.h"
#include "../page/index.h"
#include "../page/page.h"
#include "../page/record.h"
#include "../page/size.h"
#include "../page/zero.h"
#include "../pin/tree.h"
#include "../sync/overwrite.h"
#include "../sync/promote.h"
#include "../sync/reserve.h"
#include "../sync/sync.h"
#include "../sync/tracker.h"
#include "direct.h"
#include "io.h"
#include "write.h"

/* How much is passed below under one lock of its range, in bytes. Its pages can't move meanwhile. */
#define FB_WRITE_PIECE	((size_t)SZ_1M)
/*
 * How often a write may find that its page has moved, or that its source is gone again. If it happens more
 * often, the source moves with the page.
 */
#define FB_WRITE_TRIES	1000
/* How many pages are written in place under one hold of io_sem. */
#define FB_WRITE_PAGES	64

/* After volatile bytes were written, perhaps long after the call returned. The range is locked. */
static void fb_end_write(struct file *file, loff_t pos, ssize_t ret)
{
	struct inode *inode = file_inode(file);
	struct fb_inode *fi = FB_I(inode);

	if (ret <= 0) {
		fb_track_overflow(fi);	/* some of it may have arrived */
		return;
	}
	if (file->f_flags & O_DIRECT)
		set_bit(FB_NEEDS_SYNC, &fi->flags);
	fb_track(fi, pos - ret, pos);
	fb_size_grew(inode, pos);
}

COMPAT_DEFINE_END_WRITE(fb_end_write)

/* Writes @len bytes into the lower file's page cache, as far as that goes without a page fault. */
static ssize_t fb_write_cached(struct kiocb *iocb, struct iov_iter *from, size_t len)
{
	struct file *lower = fb_lower_file_now(iocb->ki_filp);
	size_t rest = iov_iter_count(from) - len;
	struct kiocb below;
	ssize_t ret;

	iov_iter_truncate(from, len);
	kiocb_clone(&below, iocb, lower);
	below.ki_complete = NULL;
	below.ki_flags &= ~(IOCB_DSYNC | IOCB_SYNC | IOCB_APPEND);	/* done here, when all is written */
	file_start_write(lower);
	pagefault_disable();
	ret = lower->f_op->write_iter(&below, from);
	pagefault_enable();
	file_end_write(lower);
	iocb->ki_pos = below.ki_pos;
	if (ret != -EFAULT)	/* then nothing was written, for a fault had to come before the first byte */
		fb_end_write(iocb->ki_filp, below.ki_pos, ret);
	iov_iter_reexpand(from, iov_iter_count(from) + rest);
	return ret;
}

/* Writes the next piece to the lower file. -ESTALE: there is a DAX page now. */
static ssize_t fb_write_lower(struct fb_inode *fi, struct kiocb *iocb, struct iov_iter *from)
{
	struct backing_file_ctx ctx = {
		.cred = current_cred(), COMPAT_USER_FILE(iocb->ki_filp)
		.end_write = COMPAT_END_WRITE(fb_end_write) };
	size_t len = fb_lower_span(fi, iocb->ki_pos, iov_iter_count(from));
	/* An asynchronous write syncs below when it ends; what is done here syncs at the end of all. */
	int own = is_sync_kiocb(iocb) ? IOCB_DSYNC | IOCB_SYNC | IOCB_APPEND : IOCB_APPEND;
	struct fb_range range;
	ssize_t ret;

	if (!len)
		return -ESTALE;
	if (iocb->ki_flags & IOCB_DIRECT)
		return fb_direct_io(fb_lower_file_now(iocb->ki_filp), iocb, from, min(len, FB_DIRECT_MAX),
				    iocb->ki_flags & ~own, &ctx);
	len = min(len, FB_WRITE_PIECE - offset_in_page(iocb->ki_pos));
	ret = fb_lock_range(fi, iocb, &range, len);
	if (ret)
		return ret;
	len = fb_lower_span(fi, iocb->ki_pos, len);
	ret = len ? fb_write_cached(iocb, from, len) : -ESTALE;
	fb_range_unlock(&fi->ranges, &range);
	return ret;
}

/* Writes in place, at most to the end of the page. io_sem is held shared, page faults are off. */
static ssize_t fb_write_page(struct fb_inode *fi, struct fb_page *page, struct kiocb *iocb,
			     struct iov_iter *from)
{
	struct fb_sb *fsb = FB_SB(fi->vfs_inode.i_sb);
	size_t offset = offset_in_page(iocb->ki_pos);
	size_t len = min_t(size_t, PAGE_SIZE - offset, iov_iter_count(from));
	void *to = fb_page_address(fsb, page) + offset;
	ssize_t copied;

	lockdep_assert_held_read(&fi->io_sem);
	if (page->bad)
		return -EIO;
	WARN_ON_ONCE(!page->has_space);
	if (fb_page_touch(fi, page))
		return -EIO;
	copied = _copy_from_iter_flushcache(to, len, from);
	trace_forebay_pm_write(to, copied);
	ps_fence(&fsb->ps);
	if (copied <= 0)
		return -EFAULT;
	page->referenced = true;
	fb_record_use(fi);
	iocb->ki_pos += copied;
	if (iocb->ki_pos > i_size_read(&fi->vfs_inode))
		fb_size_grew(&fi->vfs_inode, iocb->ki_pos);
	return copied;
}

/* The kernel's write to PMem doesn't pass below, so the lower file's time stamps are set here. */
static void fb_update_time(struct file *file)
{
	struct file *lower = fb_lower_file(file);

	file_start_write(lower);
	file_update_time(lower);
	file_end_write(lower);
}

/* As many pages as one hold of io_sem is good for. */
static ssize_t fb_write_pages(struct fb_inode *fi, struct kiocb *iocb, struct iov_iter *from)
{
	unsigned int pages = FB_WRITE_PAGES;
	ssize_t done = 0, ret;
	struct fb_page *page;

	ret = fb_down_read(fi, iocb);
	if (ret)
		return ret;
	pagefault_disable();
	do {
		page = fb_page_find(fi, iocb->ki_pos >> PAGE_SHIFT);
		if (!page)
			ret = -ESTALE;
		else if (fb_range_is_exclusive(&fi->ranges, iocb->ki_pos >> PAGE_SHIFT))
			ret = -EBUSY;
		else if (!page->has_space)
			ret = -ENOSPC;
		else
			ret = fb_write_page(fi, page, iocb, from);
		if (ret > 0)
			done += ret;
	} while (ret > 0 && iov_iter_count(from) && --pages);
	pagefault_enable();
	up_read(&fi->io_sem);
	return done ?: ret;
}

/*
 * Writes DAX pages from the position on, when the task may copy. -ESTALE: there is none. -EBUSY: the page is
 * about to leave PMem. -ENOSPC: there may be no space for it below.
 */
static ssize_t fb_write_dax(struct fb_inode *fi, struct kiocb *iocb, struct iov_iter *from)
{
	struct fb_sb *fsb = FB_SB(fi->vfs_inode.i_sb);
	int slots = fb_copy_begin(fi, iocb->ki_flags & IOCB_NOWAIT);
	ssize_t ret;

	if (slots < 0)
		return slots;
	ret = fb_write_pages(fi, iocb, from);
	fb_copy_end(fsb, slots);
	if (ret > 0) {
		fb_copied(fsb, FB_COPIED_IN, ret);
		fb_update_time(iocb->ki_filp);
	}
	return ret;
}

/* Waits until the page at the position has left PMem, or may stay. */
static int fb_wait_for_move(struct fb_inode *fi, struct kiocb *iocb)
{
	struct fb_range range;
	int err = fb_lock_range(fi, iocb, &range, 1);

	if (!err)
		fb_range_unlock(&fi->ranges, &range);
	return err;
}

/* As much as can be written without a page fault; 0 or more bytes, or an error. -ESTALE: try again. */
static ssize_t fb_write_some(struct fb_inode *fi, struct kiocb *iocb, struct iov_iter *from)
{
	pgoff_t index = iocb->ki_pos >> PAGE_SHIFT;
	ssize_t ret = -ESTALE;

	if (iocb->ki_pos > i_size_read(&fi->vfs_inode))
		fb_zero_last(fi);
	if (fb_page_find(fi, index))
		ret = fb_write_dax(fi, iocb, from);
	if (ret == -EBUSY)
		return fb_wait_for_move(fi, iocb) ?: -ESTALE;
	if (ret == -ENOSPC)
		return fb_space_for_write(fi, fb_lower_file(iocb->ki_filp), index) ?: -ESTALE;
	return ret == -ESTALE ? fb_write_lower(fi, iocb, from) : ret;
}

static ssize_t fb_write_pieces(struct fb_inode *fi, struct kiocb *iocb, struct iov_iter *from)
{
	unsigned int tries = 0;
	bool stopped = false;	/* by a fault: fb_overwrite() unmaps its target, which may be the source */
	ssize_t done = 0, ret;
	size_t window;

	while (iov_iter_count(from)) {
		if (fatal_signal_pending(current))
			return done ?: -EINTR;
		ret = !stopped && fb_overwrite_wanted(fi, iocb, from) ? fb_overwrite(fi, iocb, from) : 0;
		if (ret) {
			fb_update_time(iocb->ki_filp);
			done += ret;
			continue;	/* no fault stopped it */
		}
		ret = fb_write_some(fi, iocb, from);
		stopped = ret == -EFAULT;
		if (ret > 0) {
			done += ret;
			tries = 0;
		} else if ((ret != -EFAULT && ret != -ESTALE) || ++tries > FB_WRITE_TRIES) {
			return done ?: ret == -ESTALE ? -EFAULT : ret;
		}
		cond_resched();
		window = min(iov_iter_count(from), fb_fault_window(iocb));
		if (stopped && fb_still_bad(iocb, from, window))
			return done ?: -EFAULT;
	}
	return done;
}

/*
 * A direct write that changes no size needs no exclusion, unless the write may have to remove privileges:
 * notify_change() wants the inode's lock exclusively. An inode without S_NOSEC may have a set-user-ID bit or
 * capabilities. The first write to it goes exclusively, and file_remove_privs() sets S_NOSEC. The VFS
 * clears S_NOSEC, under the exclusive lock, when such a bit or a security attribute is set.
 */
static bool fb_write_is_shared(struct fb_inode *fi, struct kiocb *iocb, size_t count)
{
	return (iocb->ki_flags & (IOCB_DIRECT | IOCB_APPEND)) == IOCB_DIRECT && IS_NOSEC(&fi->vfs_inode) &&
	       iocb->ki_pos + count <= i_size_read(&fi->vfs_inode);
}

/* Shared if the write is. That is decided again under the lock: a truncation may have come before. */
static int fb_lock_write(struct fb_inode *fi, struct kiocb *iocb, size_t count, bool *shared)
{
	struct inode *inode = &fi->vfs_inode;
	bool nowait = iocb->ki_flags & IOCB_NOWAIT;

	*shared = fb_write_is_shared(fi, iocb, count);
	if (*shared) {
		if (!nowait)
			inode_lock_shared(inode);
		else if (!inode_trylock_shared(inode))
			return -EAGAIN;
		if (fb_write_is_shared(fi, iocb, count))
			return 0;
		inode_unlock_shared(inode);
		*shared = false;
	}
	if (!nowait)
		inode_lock(inode);
	else if (!inode_trylock(inode))
		return -EAGAIN;
	return 0;
}

static ssize_t fb_write_locked(struct fb_inode *fi, struct kiocb *iocb, struct iov_iter *from)
{
	ssize_t done, ret;
	struct kiocb sync;

	ret = generic_write_checks(iocb, from);
	if (ret <= 0)
		return ret;
	if (IS_IMMUTABLE(&fi->vfs_inode))	/* since it was opened */
		return -EPERM;
	ret = compat_remove_privs(iocb);
	if (ret)
		return ret;
	/* After a truncation that is not durable below, the lower file can't sync by itself. */
	ret = -ESTALE;
	if (!fb_is_truncated(fi) && fb_may_end_later(fi, iocb, iov_iter_count(from))) {
		do {
			ret = fb_write_some(fi, iocb, from);
		} while (ret == -EFAULT && !fb_still_bad(iocb, from, iov_iter_count(from)) &&
			 !fatal_signal_pending(current));
	}
	if (ret != -ESTALE && (ret <= 0 || !iov_iter_count(from)))
		return ret;
	done = max_t(ssize_t, ret, 0);	/* a page came to be in PMem meanwhile: the rest is done here */
	sync = fb_sync_kiocb(iocb);
	ret = fb_write_pieces(fi, &sync, from);
	iocb->ki_pos = sync.ki_pos;
	return done ? done + max_t(ssize_t, ret, 0) : ret;
}

/*
 * What was written to a range that belongs in PMem goes there; if no page is free, at its next sync
 * or later.
 */
static void fb_promote_written(struct fb_inode *fi, loff_t start, loff_t end)
{
	pgoff_t index = start >> PAGE_SHIFT, last = (end - 1) >> PAGE_SHIFT;

	if (!fb_has_pins(fi) && !test_bit(FB_DAX_MAPPED, &fi->flags))
		return;
	while (index <= last && fb_page_find(fi, index))
		index++;
	if (index <= last)
		fb_promote(fi, &index, last, false);
}

/**
 * fb_write_iter() - write(2) and its kin
 * @iocb: the request
 * @from: memory
 *
 * A buffered write that must not wait is refused, as ext4 does: it may have to wait for the lower file
 * system's locks, and for time stamps.
 *
 * Return: bytes, durable if the request asks for that; -EIOCBQUEUED; -EOPNOTSUPP; or an error.
 */
ssize_t fb_write_iter(struct kiocb *iocb, struct iov_iter *from)
{
	struct file *file = iocb->ki_filp;
	struct inode *inode = file_inode(file);
	struct fb_inode *fi = FB_I(inode);
	bool shared;
	ssize_t ret;
	int err;

	if ((iocb->ki_flags & (IOCB_NOWAIT | IOCB_DIRECT)) == IOCB_NOWAIT)
		return -EOPNOTSUPP;
	if (fb_has_pages(fi) || iocb_is_dsync(iocb)) {
		ret = fb_wait_to_begin(fi, iocb, from);
		if (ret)
			return ret;
	}
	ret = fb_lock_write(fi, iocb, iov_iter_count(from), &shared);
	if (ret)
		return ret;
	ret = fb_write_locked(fi, iocb, from);
	if (shared)
		inode_unlock_shared(inode);
	else
		inode_unlock(inode);
	if (ret > 0 && !(iocb->ki_flags & IOCB_DIRECT))
		fb_promote_written(fi, iocb->ki_pos - ret, iocb->ki_pos);
	if (ret > 0 && iocb_is_dsync(iocb)) {
		err = fb_fsync(file, iocb->ki_pos - ret, iocb->ki_pos - 1, !(iocb->ki_flags & IOCB_SYNC));
		if (err)
			return err;
	}
	return ret;
}

/**
 * fb_splice_write() - splice(2) and sendfile(2) to a file
 * @pipe: has the pages
 * @out: upper file
 * @pos: where; moves on
 * @len: bytes
 * @flags: SPLICE_F_*
 *
 * Return: bytes, or an error.
 */
ssize_t fb_splice_write(struct pipe_inode_info *pipe, struct file *out, loff_t *pos, size_t len,
			unsigned int flags)
{
	return fb_wait_to_splice(FB_I(file_inode(out)), pipe) ?:
	       iter_file_splice_write(pipe, out, pos, len, flags);
}
