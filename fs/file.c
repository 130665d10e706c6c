// SPDX-License-Identifier: GPL-2.0-only
/*
 * Regular files: open, read, write, splice.
 *
 * A range is split by the page index. DAX pages are read and written in place;
 * everything else goes straight to the lower file through backing_file_*().
 *
 * Reads of lower pages take no lock of ours: if a page moves to PMem meanwhile,
 * the lower folio still has what it had when the read began. Everything else
 * looks up and copies under io_sem held shared, with page faults disabled, since a
 * fault may want io_sem itself (or wait for who holds it). A copy that a fault
 * stopped is continued after faulting the user's page in.
 *
 * Direct I/O is split likewise: DAX pages are copied, without any writeback or invalidation, the rest is the
 * lower file system's, and asynchronous if it is all of the request.
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

#include "cache.h"
#include "claim.h"
#include "direct.h"
#include "mapped.h"
#include "mmap.h"
#include "overwrite.h"
#include "page_index.h"
#include "range.h"
#include "reserve.h"
#include "sync.h"
#include "tracker.h"
#include "upgrade.h"

/* fcntl(F_SETFL) may change this one after open. */
#define FB_SETFL_FLAGS	O_DIRECT
/* So often a copy from PMem may find the user's page gone again. */
#define FB_READ_TRIES	64
/* So much of the user's buffer is faulted in at once, in bytes. */
#define FB_FAULT_WINDOW	SZ_1M

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

/**
 * fb_open_lower() - open the lower file of an upper one
 * @file: the upper file
 * @inode: its inode
 *
 * The lower file never appends and never syncs by itself: both are done here,
 * by the true size and by what is owed.
 *
 * Return: a backing file, or an ERR_PTR.
 */
struct file *fb_open_lower(struct file *file, struct inode *inode)
{
	struct path path = fb_lower_path(file_dentry(file));
	int flags = file->f_flags & ~(O_APPEND | O_DSYNC | __O_SYNC | O_CREAT | O_EXCL | O_NOCTTY | O_TRUNC);

	/* The caller's right to open was checked above; a private mount is no path that a profile knows. */
	return backing_file_open(file, flags, &path, FB_SB(inode->i_sb)->cred);
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

/*
 * The bytes from @pos on that a read or write of @count may take before the index says something else;
 * none, if a page came to be at @pos since somebody looked.
 */
static size_t fb_lower_span(struct fb_inode *fi, loff_t pos, size_t count)
{
	unsigned long index = pos >> PAGE_SHIFT;

	if (!fb_page_next(fi, &index, (pos + count - 1) >> PAGE_SHIFT))
		return count;
	return index > pos >> PAGE_SHIFT ? min_t(loff_t, count, ((loff_t)index << PAGE_SHIFT) - pos) : 0;
}

/* Direct I/O without any DAX page: one piece, which may be asynchronous. */
static bool fb_is_direct_below(struct fb_inode *fi, const struct kiocb *iocb, size_t count)
{
	return (iocb->ki_flags & IOCB_DIRECT) && count && fb_lower_span(fi, iocb->ki_pos, count) == count;
}

/*
 * Buffered and synchronous: then the lower file's own method does, under the checks that the VFS has
 * made above. backing_file_*() makes them all again, which costs a cached 4 KiB read 6 %.
 */
static bool fb_is_plain(struct kiocb *iocb)
{
	return is_sync_kiocb(iocb) && !(iocb->ki_flags & IOCB_DIRECT);
}

/* A synchronous request for what @iocb wants; the caller takes its position over afterwards. */
static struct kiocb fb_sync_kiocb(struct kiocb *iocb)
{
	struct kiocb sync;

	kiocb_clone(&sync, iocb, iocb->ki_filp);
	sync.ki_complete = NULL;
	return sync;
}

static int fb_down_read(struct fb_inode *fi, struct kiocb *iocb)
{
	if (!(iocb->ki_flags & IOCB_NOWAIT))
		down_read(&fi->io_sem);
	else if (!down_read_trylock(&fi->io_sem))
		return -EAGAIN;
	return 0;
}

/* Passes one piece below, as far as that goes without a page fault. */
static ssize_t __fb_read_piece(struct kiocb *iocb, struct iov_iter *to, size_t len)
{
	struct backing_file_ctx ctx = { .cred = current_cred(), .user_file = iocb->ki_filp };
	struct file *lower = fb_lower_file_now(iocb->ki_filp);
	size_t rest = iov_iter_count(to) - len;
	struct kiocb below;
	ssize_t ret;

	if ((iocb->ki_flags & IOCB_DIRECT) && user_backed_iter(to))
		return fb_direct_read(lower, iocb, to, len, &ctx);
	pagefault_disable();
	iov_iter_truncate(to, len);
	if (fb_is_plain(iocb)) {
		kiocb_clone(&below, iocb, lower);
		ret = lower->f_op->read_iter(&below, to);
		iocb->ki_pos = below.ki_pos;
	} else {
		ret = backing_file_read_iter(lower, to, iocb, iocb->ki_flags, &ctx);
	}
	iov_iter_reexpand(to, iov_iter_count(to) + rest);
	pagefault_enable();
	return ret;
}

/* Who holds io_sem exclusively waits for direct I/O that has begun: none begins meanwhile. */
static ssize_t fb_read_piece(struct kiocb *iocb, struct iov_iter *to, size_t len)
{
	struct fb_inode *fi = FB_I(file_inode(iocb->ki_filp));
	ssize_t ret;

	if (!(iocb->ki_flags & IOCB_DIRECT))
		return __fb_read_piece(iocb, to, len);
	ret = fb_down_read(fi, iocb);
	if (ret)
		return ret;
	ret = __fb_read_piece(iocb, to, len);
	up_read(&fi->io_sem);
	return ret;
}

/*
 * Reads @len bytes from below. The lower file system may hold its own locks while it copies, and a
 * fault may wait for who wants these: so no page fault happens in there.
 */
static ssize_t fb_read_lower(struct kiocb *iocb, struct iov_iter *to, size_t len)
{
	size_t done = 0, window;
	struct kiocb sync;
	ssize_t ret;

	if (!is_sync_kiocb(iocb) && (len < iov_iter_count(to) || len > FB_DIRECT_MAX)) {
		sync = fb_sync_kiocb(iocb);
		ret = fb_read_lower(&sync, to, len);
		iocb->ki_pos = sync.ki_pos;
		return ret;
	}
	do {
		window = min(len - done, fb_fault_window(iocb));
		ret = fb_read_piece(iocb, to, iocb->ki_flags & IOCB_DIRECT ? window : len - done);
		if (ret > 0)
			done += ret;
		if (ret > 0 && !is_sync_kiocb(iocb))
			break;
		if (ret <= 0 && ret != -EFAULT)
			break;
		if (ret <= 0 && fb_still_bad(iocb, to, window))
			break;
	} while (done < len && iocb->ki_pos < i_size_read(file_inode(iocb->ki_filp)) &&
		 !fatal_signal_pending(current));
	return done ?: ret;
}

/* Copies from the DAX page at the position, if it is one; returns 0 if not, or at the end of the file. */
static ssize_t fb_read_dax(struct fb_inode *fi, struct kiocb *iocb, struct iov_iter *to)
{
	struct fb_sb *fsb = FB_SB(fi->vfs_inode.i_sb);
	size_t offset = offset_in_page(iocb->ki_pos), len, copied = 0;
	loff_t left = i_size_read(&fi->vfs_inode) - iocb->ki_pos;
	struct fb_page *page;
	const void *from;
	int err;

	if (left <= 0)
		return 0;
	len = min3((loff_t)(PAGE_SIZE - offset), left, (loff_t)iov_iter_count(to));
	err = fb_down_read(fi, iocb);
	if (err)
		return err;
	page = fb_page_find(fi, iocb->ki_pos >> PAGE_SHIFT);
	if (page) {
		from = fb_page_address(fsb, page) + offset;
		pagefault_disable();
		copied = _copy_mc_to_iter(from, len, to);
		pagefault_enable();
		trace_forebay_pm_read(from, copied);
		page->referenced = true;
	}
	up_read(&fi->io_sem);
	if (!page)
		return 0;
	iocb->ki_pos += copied;
	if (!copied)
		return fault_in_iov_iter_writeable(to, len) == len ? -EFAULT : -ERESTART;
	return copied;
}

static ssize_t fb_read_split(struct fb_inode *fi, struct kiocb *iocb, struct iov_iter *to)
{
	unsigned int tries = 0;
	ssize_t done = 0, ret;
	size_t span;

	while (iov_iter_count(to) && iocb->ki_pos < i_size_read(&fi->vfs_inode)) {
		ret = fb_read_dax(fi, iocb, to);
		if (ret == -ERESTART) {
			/* The user's page is there, and still nothing: the PMem must be bad. */
			if (++tries == FB_READ_TRIES)
				return done ?: -EIO;
			continue;
		}
		tries = 0;
		if (ret == 0) {
			/* Not a DAX page, or not any more. */
			span = fb_lower_span(fi, iocb->ki_pos, iov_iter_count(to));
			if (!span)
				continue;
			ret = fb_read_lower(iocb, to, span);
		}
		if (ret == -EIOCBQUEUED)	/* the last piece: nothing was done before it */
			return ret;
		if (ret <= 0)
			return done ?: ret;
		done += ret;
	}
	return done;
}

static ssize_t fb_read_iter(struct kiocb *iocb, struct iov_iter *to)
{
	struct fb_inode *fi = FB_I(file_inode(iocb->ki_filp));
	struct kiocb sync;
	ssize_t ret;

	if (!iov_iter_count(to))
		return 0;
	if (!fb_has_pages(fi) || fb_is_direct_below(fi, iocb, iov_iter_count(to)))
		return fb_read_lower(iocb, to, iov_iter_count(to));
	/* Pieces are done one after the other, here: the whole can't be asynchronous. */
	sync = fb_sync_kiocb(iocb);
	ret = fb_read_split(fi, &sync, to);
	iocb->ki_pos = sync.ki_pos;
	file_accessed(fb_lower_file(iocb->ki_filp));
	return ret;
}

/* After volatile bytes were written, perhaps long after the call returned. */
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
	spin_lock(&inode->i_lock);
	/* Not beyond where a cut has ended it meanwhile, which sets the size below first, then ours. */
	pos = min(pos, i_size_read(fi->lower));
	if (pos > i_size_read(inode))
		i_size_write(inode, pos);
	spin_unlock(&inode->i_lock);
}

/*
 * Writes one piece to the lower file, which may finish it later if it is the @whole. io_sem is held
 * shared, page faults are off.
 */
static ssize_t fb_write_lower(struct kiocb *iocb, struct iov_iter *from, size_t len, bool whole)
{
	struct backing_file_ctx ctx = {
		.cred = current_cred(), .user_file = iocb->ki_filp, .end_write = fb_end_write };
	struct file *lower = fb_lower_file_now(iocb->ki_filp);
	/* A whole asynchronous write syncs below when it ends; what is split syncs at the end of all. */
	int keep = is_sync_kiocb(iocb) ? 0 : IOCB_DSYNC | IOCB_SYNC;
	int flags = iocb->ki_flags & ~((IOCB_DSYNC | IOCB_SYNC | IOCB_APPEND) & ~keep);
	size_t rest = iov_iter_count(from) - len;
	struct kiocb sync, below;
	ssize_t ret;

	if (!is_sync_kiocb(iocb) && !whole) {
		sync = fb_sync_kiocb(iocb);
		ret = fb_write_lower(&sync, from, len, false);
		iocb->ki_pos = sync.ki_pos;
		return ret;
	}
	if ((iocb->ki_flags & IOCB_DIRECT) && user_backed_iter(from))
		return fb_direct_write(lower, iocb, from, len, flags, &ctx);
	iov_iter_truncate(from, len);
	if (fb_is_plain(iocb)) {
		kiocb_clone(&below, iocb, lower);
		below.ki_flags = flags;
		file_start_write(lower);
		ret = lower->f_op->write_iter(&below, from);
		file_end_write(lower);
		iocb->ki_pos = below.ki_pos;
		fb_end_write(iocb->ki_filp, below.ki_pos, ret);
	} else {
		ret = backing_file_write_iter(lower, from, iocb, flags, &ctx);
	}
	iov_iter_reexpand(from, iov_iter_count(from) + rest);
	return ret;
}

/* Writes in place, at most to the end of the page. io_sem is held shared, page faults are off. */
static ssize_t fb_write_dax(struct fb_inode *fi, struct fb_page *page, struct kiocb *iocb,
			    struct iov_iter *from)
{
	struct fb_sb *fsb = FB_SB(fi->vfs_inode.i_sb);
	size_t offset = offset_in_page(iocb->ki_pos);
	size_t len = min_t(size_t, PAGE_SIZE - offset, iov_iter_count(from));
	void *to = fb_page_address(fsb, page) + offset;
	ssize_t copied;

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
 * As much as can be written without a page fault; 0 or more bytes, or an error. @first: nothing was
 * before.
 */
static ssize_t fb_write_some(struct fb_inode *fi, struct kiocb *iocb, struct iov_iter *from, bool first)
{
	bool in_place = false;
	struct fb_page *page;
	ssize_t done = 0, ret;
	size_t len;

	ret = fb_down_read(fi, iocb);
	if (ret)
		return ret;
	if (iocb->ki_pos > i_size_read(&fi->vfs_inode))
		fb_zero_tail(fi, i_size_read(&fi->vfs_inode));
	pagefault_disable();
	do {
		page = fb_page_find(fi, iocb->ki_pos >> PAGE_SHIFT);
		if (page) {
			ret = fb_write_dax(fi, page, iocb, from);
			in_place = true;
		} else {
			len = fb_lower_span(fi, iocb->ki_pos, iov_iter_count(from));
			if (iocb->ki_flags & IOCB_DIRECT)
				len = min(len, FB_DIRECT_MAX);
			ret = fb_write_lower(iocb, from, len, first && !done && len == iov_iter_count(from));
		}
		if (ret > 0)
			done += ret;
	} while (ret > 0 && iov_iter_count(from));
	pagefault_enable();
	if (in_place)
		fb_update_time(iocb->ki_filp);
	up_read(&fi->io_sem);
	return done ?: ret;
}

static ssize_t fb_write_split(struct fb_inode *fi, struct kiocb *iocb, struct iov_iter *from)
{
	bool stopped = false;	/* by a fault: fb_overwrite() unmaps its target, which may be the source */
	ssize_t done = 0, ret;
	size_t window;

	while (iov_iter_count(from)) {
		ret = !stopped && fb_overwrite_wanted(fi, iocb, from) ? fb_overwrite(fi, iocb, from) : 0;
		if (ret) {
			fb_update_time(iocb->ki_filp);
			done += ret;
			continue;	/* no fault stopped it */
		}
		ret = fb_write_some(fi, iocb, from, !done);
		stopped = ret == -EFAULT;
		if (ret == -EIOCBQUEUED)
			return ret;
		if (ret > 0)
			done += ret;
		if (ret < 0 && ret != -EFAULT)
			return done ?: ret;
		window = min(iov_iter_count(from), fb_fault_window(iocb));
		if (window && fb_still_bad(iocb, from, window))
			return done ?: -EFAULT;
		if (fatal_signal_pending(current))
			return done ?: -EINTR;
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
	struct kiocb sync;
	ssize_t ret;

	ret = generic_write_checks(iocb, from);
	if (ret <= 0)
		return ret;
	if (IS_IMMUTABLE(&fi->vfs_inode))	/* since it was opened */
		return -EPERM;
	ret = file_remove_privs(iocb->ki_filp);
	if (ret)
		return ret;
	/* After a cut that is not durable below, the lower file can't sync by itself. */
	if (is_sync_kiocb(iocb) ||
	    (!test_bit(FB_SIZE_EXACT, &fi->flags) &&
	     (!fb_has_pages(fi) || fb_is_direct_below(fi, iocb, iov_iter_count(from)))))
		return fb_write_split(fi, iocb, from);
	sync = fb_sync_kiocb(iocb);
	ret = fb_write_split(fi, &sync, from);
	iocb->ki_pos = sync.ki_pos;
	return ret;
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
		err = fb_sync_inode(fi, fb_lower_file(file), iocb->ki_pos - ret, iocb->ki_pos - 1,
				    !(iocb->ki_flags & IOCB_SYNC));
		if (err)
			return err;
	}
	return ret;
}

static ssize_t fb_splice_read(struct file *in, loff_t *pos, struct pipe_inode_info *pipe, size_t len,
			      unsigned int flags)
{
	struct backing_file_ctx ctx = { .cred = current_cred(), .user_file = in };

	if (fb_has_pages(FB_I(file_inode(in))))
		return copy_splice_read(in, pos, pipe, len, flags);
	return backing_file_splice_read(fb_lower_file(in), pos, pipe, len, flags, &ctx);
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
