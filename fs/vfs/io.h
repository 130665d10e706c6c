/* SPDX-License-Identifier: GPL-2.0-only */
/* What reads and writes of a regular file share: io.c */
#ifndef FOREBAY_VFS_IO_H
#define FOREBAY_VFS_IO_H

#include <linux/uio.h>

#include "../forebay.h"
#include "../page/index.h"
#include "direct.h"

/* How much of the user's buffer is faulted in at once, in bytes. */
#define FB_FAULT_WINDOW	SZ_1M

int fb_wait_to_begin(struct fb_inode *fi, struct kiocb *iocb, struct iov_iter *iter);
int fb_wait_to_splice(struct fb_inode *fi, const struct pipe_inode_info *pipe);
int fb_wait_to_sync(struct fb_inode *fi);
bool fb_still_bad(struct kiocb *iocb, struct iov_iter *iter, size_t window);
struct file *fb_lower_file_now(struct file *file);

static inline size_t fb_fault_window(struct kiocb *iocb)
{
	return iocb->ki_flags & IOCB_DIRECT ? FB_DIRECT_MAX : FB_FAULT_WINDOW;
}

/* A synchronous request for what @iocb wants; the caller takes its position over afterwards. */
static inline struct kiocb fb_sync_kiocb(struct kiocb *iocb)
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
static inline bool fb_may_end_later(struct fb_inode *fi, struct kiocb *iocb, size_t count)
{
	return !is_sync_kiocb(iocb) && (iocb->ki_flags & IOCB_DIRECT) && count && count <= FB_DIRECT_MAX &&
	       fb_lower_span(fi, iocb->ki_pos, count) == count;
}

/* Takes io_sem, shared; -EAGAIN if the request doesn't wait. */
static inline int fb_down_read(struct fb_inode *fi, struct kiocb *iocb)
{
	if (!(iocb->ki_flags & IOCB_NOWAIT))
		down_read(&fi->io_sem);
	else if (!down_read_trylock(&fi->io_sem))
		return -EAGAIN;
	return 0;
}

/* Locks the range of the next @len bytes, shared; -EAGAIN if the request doesn't wait. */
static inline int fb_lock_range(struct fb_inode *fi, struct kiocb *iocb, struct fb_range *range, size_t len)
{
	return fb_range_lock(&fi->ranges, range, iocb->ki_pos >> PAGE_SHIFT,
			     (iocb->ki_pos + len - 1) >> PAGE_SHIFT,
			     iocb->ki_flags & IOCB_NOWAIT ? FB_RANGE_NOWAIT : FB_RANGE_KILLABLE);
}

#endif
