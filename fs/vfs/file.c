// SPDX-License-Identifier: GPL-2.0-only
/*
 * Regular files: open, read, write, splice.
 *
 * A range is split by the page index. DAX pages are read and written in place, under io_sem held shared;
 * everything else goes to the lower file, with no lock of an inode held (range_lock.c).
 *
 *   buffered read	takes no lock. It looks at the size, then at the index, then reads below: what was
 *			below then stays readable there, though its page may move. After a cut it reads again.
 *   splice, direct	lock their range, shared, until they end: they can't be taken back. Direct I/O is
 *   I/O		asynchronous if it lies below as a whole.
 *   buffered write	locks the range of each piece, shared, and passes it below.
 *
 * A copy to or from user memory runs with page faults disabled, since a fault may want what the copy
 * holds: a range, io_sem, or a lock of the lower file system. A copy that a fault stopped is continued
 * after faulting the user's page in.
 *
 * Writes hold the upper inode's i_rwsem, shared for direct writes inside a file. A write to a DAX
 * page is durable when it returns: the copy bypasses the CPU caches, and a fence ends it.
 */
#include <linux/file.h>
#include <linux/mutex.h>
#include <linux/wait.h>
#include <linux/pipe_fs_i.h>
#include <linux/splice.h>
#include <linux/uio.h>

#include "../lower/lower.h"
#include "../page/index.h"
#include "../page/page.h"
#include "../page/size.h"
#include "../page/zero.h"
#include "../pin/pin.h"
#include "../sync/overwrite.h"
#include "../sync/promote.h"
#include "../sync/reserve.h"
#include "../sync/sync.h"
#include "../sync/tracker.h"
#include "direct.h"
#include "file.h"
#include "ioctl.h"
#include "mmap.h"
#include "range.h"
#include "seek.h"

/* fcntl(F_SETFL) may change this one after open. */
#define FB_SETFL_FLAGS	O_DIRECT
/* So often a copy from PMem may find the user's page gone again. */
#define FB_READ_TRIES	64
/* So much of the user's buffer is faulted in at once, in bytes. */
#define FB_FAULT_WINDOW	SZ_1M
/* So much is passed below under one lock of its range, in bytes; the pages can't move for so long. */
#define FB_WRITE_PIECE	((size_t)SZ_1M)
/*
 * So often a write finds that its page has moved, or that its source is gone again. More is a source that
 * moves with the page.
 */
#define FB_WRITE_TRIES	1000
/* So many pages are written in place under one hold of io_sem. */
#define FB_WRITE_PAGES	64

static size_t fb_fault_window(struct kiocb *iocb)
{
	return iocb->ki_flags & IOCB_DIRECT ? FB_DIRECT_MAX : FB_FAULT_WINDOW;
}

/* Faults the user's memory in after a copy has failed. Returns whether it is no use to try again. */
static bool fb_still_bad(struct kiocb *iocb, struct iov_iter *iter, size_t window)
{
	if (iocb->ki_flags & IOCB_DIRECT)
		return fb_direct_fault_in(iter, window);
	if (iov_iter_rw(iter) == ITER_DEST)
		return fault_in_iov_iter_writeable(iter, window) == window;
	return fault_in_iov_iter_readable(iter, window) == window;
}

static int fb_open(struct inode *inode, struct file *file)
{
	struct file *lower = fb_open_lower(file, inode);

	if (IS_ERR(lower))
		return PTR_ERR(lower);
	file->private_data = lower;
	file->f_mode |= lower->f_mode & (FMODE_CAN_ODIRECT | FMODE_NOWAIT);
	return 0;
}

static int fb_release(struct inode *inode, struct file *file)
{
	struct fb_inode *fi = FB_I(inode);

	/* The VFS gives the right to write up after this. */
	if ((file->f_mode & FMODE_WRITE) && atomic_read(&inode->i_writecount) == 1 &&
	    inode->i_nlink && (READ_ONCE(fi->reserved) > 0 || fi->appended))
		fb_reserve_trim(fi, fb_lower_file(file));
	fb_claims_closed(fi, file);
	__fput_sync(fb_lower_file(file));	/* we are inside an fput() already */
	return 0;
}

static int fb_flush(struct file *file, fl_owner_t id)
{
	struct file *lower = fb_lower_file(file);

	return lower->f_op->flush ? lower->f_op->flush(lower, id) : 0;
}

/* The lower file, with the flags that the upper one has now. */
static struct file *fb_lower_file_now(struct file *file)
{
	struct file *lower = fb_lower_file(file);

	if (unlikely((file->f_flags ^ lower->f_flags) & FB_SETFL_FLAGS)) {
		spin_lock(&lower->f_lock);
		lower->f_flags = (lower->f_flags & ~FB_SETFL_FLAGS) | (file->f_flags & FB_SETFL_FLAGS);
		lower->f_iocb_flags = iocb_flags(lower);
		spin_unlock(&lower->f_lock);
	}
	return lower;
}

/* A synchronous request for what @iocb wants; the caller takes its position over afterwards. */
static struct kiocb fb_sync_kiocb(struct kiocb *iocb)
{
	struct kiocb sync;

	kiocb_clone(&sync, iocb, iocb->ki_filp);
	sync.ki_complete = NULL;
	return sync;
}

/*
 * Only direct I/O that lies below as a whole, in one piece, can end later. Everything else is done here,
 * piece by piece, before the call returns.
 */
static bool fb_may_end_later(struct fb_inode *fi, struct kiocb *iocb, size_t count)
{
	return !is_sync_kiocb(iocb) && (iocb->ki_flags & IOCB_DIRECT) && count && count <= FB_DIRECT_MAX &&
	       fb_lower_span(fi, iocb->ki_pos, count) == count;
}

static int fb_down_read(struct fb_inode *fi, struct kiocb *iocb)
{
	if (!(iocb->ki_flags & IOCB_NOWAIT))
		down_read(&fi->io_sem);
	else if (!down_read_trylock(&fi->io_sem))
		return -EAGAIN;
	return 0;
}

static int fb_lock_range(struct fb_inode *fi, struct kiocb *iocb, struct fb_range *range, size_t len)
{
	return fb_range_lock(&fi->ranges, range, iocb->ki_pos >> PAGE_SHIFT,
			     (iocb->ki_pos + len - 1) >> PAGE_SHIFT,
			     iocb->ki_flags & IOCB_NOWAIT ? FB_RANGE_NOWAIT : FB_RANGE_KILLABLE);
}

/*
 * Reads @len bytes from the lower file's page cache, as far as that goes without a page fault: the lower
 * file system may hold its own locks while it copies. Its own method does it, under the checks that the
 * VFS has made above; backing_file_read_iter() makes them all again, which costs a cached 4 KiB read 6 %.
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
 * stale below by now, and is not read. After a cut everything may be, so the piece is read again.
 */
static ssize_t fb_read_lower(struct fb_inode *fi, struct kiocb *iocb, struct iov_iter *to, size_t len,
			     const struct fb_end *end)
{
	struct backing_file_ctx ctx = { .cred = current_cred(), .user_file = iocb->ki_filp };
	ssize_t ret;

	if (iocb->ki_flags & IOCB_DIRECT) {
		/* In whole blocks: the lower file ends where ours does, or its last page is below. */
		len = min(iov_iter_count(to), round_up(iocb->ki_pos + len, PAGE_SIZE) - iocb->ki_pos);
		return fb_direct_io(fb_lower_file_now(iocb->ki_filp), iocb, to, min(len, FB_DIRECT_MAX),
				    iocb->ki_flags, &ctx);
	}
	ret = fb_read_cached(iocb, to, len);
	smp_rmb();	/* pairs with fb_cut_begin(): what was read is older than this look */
	if (ret > 0 && READ_ONCE(fi->cuts) != end->cuts) {
		iov_iter_revert(to, ret);
		iocb->ki_pos -= ret;
		return -ESTALE;
	}
	return ret;
}

/*
 * Copies from the DAX page at the position; -ESTALE if it isn't one any more. -ERESTART: nothing was
 * copied, though the user's page is there: the PMem may be bad.
 */
static ssize_t fb_read_dax(struct fb_inode *fi, struct kiocb *iocb, struct iov_iter *to, size_t len)
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
	return copied;
}

/* Reads the next piece. -ESTALE: a new look must be taken. */
static ssize_t fb_read_some(struct fb_inode *fi, struct kiocb *iocb, struct iov_iter *to)
{
	struct fb_end end = fb_end_now(fi);	/* before the index */
	loff_t pos = iocb->ki_pos;
	size_t len, window;
	ssize_t ret;

	if (pos >= end.size)
		return 0;
	len = min_t(loff_t, iov_iter_count(to), end.size - pos);
	smp_rmb();	/* pairs with fb_size_grew(), which comes after the index */
	if (fb_page_find(fi, pos >> PAGE_SHIFT))
		return fb_read_dax(fi, iocb, to, len);
	len = fb_lower_span(fi, pos, len);
	if (!len)
		return -ESTALE;
	ret = fb_read_lower(fi, iocb, to, len, &end);
	if (ret != -EFAULT)
		return ret;
	window = min(iov_iter_count(to), fb_fault_window(iocb));
	return fb_still_bad(iocb, to, window) ? -EFAULT : -ESTALE;
}

static ssize_t fb_read_pieces(struct fb_inode *fi, struct kiocb *iocb, struct iov_iter *to)
{
	unsigned int tries = 0;
	ssize_t done = 0, ret;

	do {
		ret = fb_read_some(fi, iocb, to);
		if (ret == -ESTALE)
			continue;
		if (ret == -ERESTART && ++tries < FB_READ_TRIES)
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

static ssize_t fb_read_iter(struct kiocb *iocb, struct iov_iter *to)
{
	struct fb_inode *fi = FB_I(file_inode(iocb->ki_filp));
	ssize_t done = 0, ret;
	struct kiocb sync;

	if (!iov_iter_count(to))
		return 0;
	while (!done && !fatal_signal_pending(current) &&
	       fb_may_end_later(fi, iocb, iov_iter_count(to))) {
		ret = fb_read_some(fi, iocb, to);
		if (ret > 0)
			done = ret;	/* the rest, if any, is in PMem by now, or behind the end */
		else if (ret != -ESTALE && ret != -ERESTART)
			return ret;
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
		set_bit(FB_OWES_SYNC, &fi->flags);
	fb_track(fi, pos - ret, pos);
	fb_size_grew(inode, pos);
}

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
	fb_end_write(iocb->ki_filp, below.ki_pos, ret);
	iov_iter_reexpand(from, iov_iter_count(from) + rest);
	return ret;
}

/* Writes the next piece to the lower file. -ESTALE: there is a DAX page now. */
static ssize_t fb_write_lower(struct fb_inode *fi, struct kiocb *iocb, struct iov_iter *from)
{
	struct backing_file_ctx ctx = {
		.cred = current_cred(), .user_file = iocb->ki_filp, .end_write = fb_end_write };
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
	fb_page_touch(fi, page);
	copied = _copy_from_iter_flushcache(to, len, from);
	trace_forebay_pm_write(to, copied);
	ps_fence(&fsb->ps);
	if (copied <= 0)
		return -EFAULT;
	page->referenced = true;
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

/*
 * Writes DAX pages from the position on, as many as one hold of io_sem is good for. -ESTALE: there is none.
 * -EBUSY: the page is about to leave PMem. -ENOSPC: there may be no space for it below.
 */
static ssize_t fb_write_dax(struct fb_inode *fi, struct kiocb *iocb, struct iov_iter *from)
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
	if (done)
		fb_update_time(iocb->ki_filp);
	return done ?: ret;
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

/* As much as can be written without a page fault; 0 or more bytes, or an error. -ESTALE: take a new look. */
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

/* A direct write that changes no size needs no exclusion. */
static bool fb_write_is_shared(struct fb_inode *fi, struct kiocb *iocb, size_t count)
{
	return (iocb->ki_flags & (IOCB_DIRECT | IOCB_APPEND)) == IOCB_DIRECT &&
	       iocb->ki_pos + count <= i_size_read(&fi->vfs_inode);
}

/* Shared if the write is, which is known for certain when the lock is held: a cut may have come before. */
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
	ret = file_remove_privs(iocb->ki_filp);
	if (ret)
		return ret;
	/* After a cut that is not durable below, the lower file can't sync by itself. */
	ret = -ESTALE;
	if (!test_bit(FB_SIZE_EXACT, &fi->flags) && fb_may_end_later(fi, iocb, iov_iter_count(from))) {
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
static void fb_write_upgrade(struct fb_inode *fi, loff_t start, loff_t end)
{
	pgoff_t index = start >> PAGE_SHIFT, last = (end - 1) >> PAGE_SHIFT;

	if (!fb_has_claims(fi) && !test_bit(FB_DAX_MAPPED, &fi->flags))
		return;
	while (index <= last && fb_page_find(fi, index))
		index++;
	if (index <= last)
		fb_upgrade(fi, &index, last, false);
}

static ssize_t fb_write_iter(struct kiocb *iocb, struct iov_iter *from)
{
	struct file *file = iocb->ki_filp;
	struct inode *inode = file_inode(file);
	struct fb_inode *fi = FB_I(inode);
	bool shared;
	ssize_t ret;
	int err;

	ret = fb_lock_write(fi, iocb, iov_iter_count(from), &shared);
	if (ret)
		return ret;
	ret = fb_write_locked(fi, iocb, from);
	if (shared)
		inode_unlock_shared(inode);
	else
		inode_unlock(inode);
	if (ret > 0 && !(iocb->ki_flags & IOCB_DIRECT))
		fb_write_upgrade(fi, iocb->ki_pos - ret, iocb->ki_pos);
	if (ret > 0 && iocb_is_dsync(iocb)) {
		err = fb_sync_inode(fi, file, fb_lower_file(file), iocb->ki_pos - ret, iocb->ki_pos - 1,
				    !(iocb->ki_flags & IOCB_SYNC));
		if (err)
			return err;
	}
	return ret;
}

/*
 * A pipe takes no byte back: so no cut goes on meanwhile, and nothing behind the end that was seen is read.
 */
static ssize_t fb_splice_read(struct file *in, loff_t *pos, struct pipe_inode_info *pipe, size_t len,
			      unsigned int flags)
{
	struct backing_file_ctx ctx = { .cred = current_cred(), .user_file = in };
	struct fb_inode *fi = FB_I(file_inode(in));
	loff_t size = i_size_read(&fi->vfs_inode);
	struct fb_range range;
	ssize_t ret;

	if (*pos >= size || !len)
		return 0;
	len = min_t(loff_t, len, size - *pos);
	ret = fb_range_lock(&fi->ranges, &range, *pos >> PAGE_SHIFT, (*pos + len - 1) >> PAGE_SHIFT,
			    FB_RANGE_KILLABLE);
	if (ret)
		return ret;
	if (fb_lower_span(fi, *pos, len) == len)
		ret = backing_file_splice_read(fb_lower_file(in), pos, pipe, len, flags, &ctx);
	else
		ret = -ESTALE;
	fb_range_unlock(&fi->ranges, &range);
	return ret == -ESTALE ? copy_splice_read(in, pos, pipe, len, flags) : ret;
}

const struct file_operations fb_file_operations = {
	.owner			= THIS_MODULE,
	.open			= fb_open,
	.release		= fb_release,
	.flush			= fb_flush,
	.llseek			= fb_llseek,
	.read_iter		= fb_read_iter,
	.write_iter		= fb_write_iter,
	.splice_read		= fb_splice_read,
	.splice_write		= iter_file_splice_write,
	.mmap			= fb_mmap,
	.fsync			= fb_fsync,
	.fallocate		= fb_fallocate,
	.fadvise		= fb_fadvise,
	.copy_file_range	= fb_copy_file_range,
	.remap_file_range	= fb_remap_file_range,
	.unlocked_ioctl		= fb_ioctl,
	.compat_ioctl		= compat_ptr_ioctl,
	.fop_flags		= FOP_MMAP_SYNC,
};
