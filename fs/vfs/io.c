// SPDX-License-Identifier: GPL-2.0-only
/*
 * What reads (read.c) and writes (write.c) of a regular file share.
 *
 * A range is split by the page index. DAX pages are read and written in place, under io_sem held shared;
 * everything else goes to the lower file, with no lock of an inode held (range_lock.c). Direct I/O is
 * asynchronous if it lies below as a whole (direct.c).
 *
 * A copy to or from user memory runs with page faults disabled. A fault may want what the copy holds: a
 * range, io_sem, or a lock of the lower file system. A copy that a fault stopped is continued after faulting
 * the user's page in.
 */
#include <linux/uio.h>

#include "../page/copies.h"
#include "../sync/tracker.h"
#include "direct.h"
#include "io.h"

/* fcntl(F_SETFL) may change this one after open. */
#define FB_SETFL_FLAGS	O_DIRECT

/**
 * fb_wait_to_begin() - a read or write that may copy to or from PMem begins
 * @fi: the inode
 * @iocb: the request
 * @iter: memory
 *
 * A splice calls with its pipe locked, and has waited in fb_wait_to_splice(), if at all. Its memory is the
 * kernel's, like that of io_uring's registered buffers. But those requests are asynchronous.
 *
 * Context: process, without locks. Sleeps.
 * Return: 0; -EINTR if the task is killed; -EAGAIN if the request doesn't wait.
 */
int fb_wait_to_begin(struct fb_inode *fi, struct kiocb *iocb, struct iov_iter *iter)
{
	struct fb_sb *fsb = FB_SB(fi->vfs_inode.i_sb);

	if (!fb_copies_limited(fsb) || (!user_backed_iter(iter) && is_sync_kiocb(iocb)))
		return 0;
	return fb_wait_for_copies(fsb, iocb->ki_flags & IOCB_NOWAIT);
}

/**
 * fb_wait_to_splice() - a splice that may copy to or from PMem begins
 * @fi: the inode
 * @pipe: is held up only if it is the task's own, sendfile()'s. Others are locked, and other tasks may have
 *	them
 *
 * Context: process, without locks that another task may want. Sleeps.
 * Return: 0; -EINTR if the task is killed.
 */
int fb_wait_to_splice(struct fb_inode *fi, const struct pipe_inode_info *pipe)
{
	struct fb_sb *fsb = FB_SB(fi->vfs_inode.i_sb);

	if (pipe != current->splice_pipe || !fb_has_pages(fi) || !fb_copies_limited(fsb))
		return 0;
	return fb_wait_for_copies(fsb, false);
}

/**
 * fb_wait_to_sync() - a sync call that may move pages to PMem begins
 * @fi: the inode
 *
 * Context: process, without locks. Sleeps.
 * Return: 0; -EINTR if the task is killed.
 */
int fb_wait_to_sync(struct fb_inode *fi)
{
	struct fb_sb *fsb = FB_SB(fi->vfs_inode.i_sb);

	return fb_copies_limited(fsb) && !fb_track_empty(&fi->tracker) ? fb_sync_wait_for_copies(fsb) : 0;
}

/**
 * fb_still_bad() - fault the user's memory in after a copy has failed
 * @iocb: the request
 * @iter: memory
 * @window: bytes of it
 *
 * Called without locks.
 *
 * Return: whether it is no use to try again.
 */
bool fb_still_bad(struct kiocb *iocb, struct iov_iter *iter, size_t window)
{
	if (iocb->ki_flags & IOCB_DIRECT)
		return fb_direct_fault_in(iter, window);
	if (iov_iter_rw(iter) == ITER_DEST)
		return fault_in_iov_iter_writeable(iter, window) == window;
	return fault_in_iov_iter_readable(iter, window) == window;
}

/**
 * fb_lower_file_now() - the lower file, with the flags that the upper one has now
 * @file: upper file
 */
struct file *fb_lower_file_now(struct file *file)
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
