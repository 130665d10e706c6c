// SPDX-License-Identifier: GPL-2.0-only
/*
 * Regular files: open, flush, release, and the table of their calls. An upper file holds a lower file that
 * was opened with the same flags, from open to release.
 *
 * The calls themselves: read.c, write.c, mmap.c, range.c, seek.c, ioctl.c, and sync/sync.c.
 */
#include <linux/file.h>
#include <linux/filelock.h>

#include "../lower/lower.h"
#include "../pin/pin.h"
#include "../sync/reserve.h"
#include "../sync/sync.h"
#include "file.h"
#include "io.h"
#include "ioctl.h"
#include "mmap.h"
#include "range.h"
#include "read.h"
#include "seek.h"
#include "write.h"

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
	fb_pins_closed(fi, file);
	__fput_sync(fb_lower_file(file));	/* we are inside an fput() already */
	return 0;
}

static int fb_flush(struct file *file, fl_owner_t id)
{
	struct file *lower = fb_lower_file(file);

	return lower->f_op->flush ? lower->f_op->flush(lower, id) : 0;
}

static int fb_file_fsync(struct file *file, loff_t start, loff_t end, int datasync)
{
	return fb_wait_to_sync(FB_I(file_inode(file))) ?: fb_fsync(file, start, end, datasync);
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
	.splice_write		= fb_splice_write,
	.mmap			= fb_mmap,
	.fsync			= fb_file_fsync,
	.fallocate		= fb_fallocate,
	.fadvise		= fb_fadvise,
	.copy_file_range	= fb_copy_file_range,
	.remap_file_range	= fb_remap_file_range,
	.unlocked_ioctl		= fb_ioctl,
	.compat_ioctl		= compat_ptr_ioctl,
	.setlease		= generic_setlease,	/* newer kernels don't take it for granted */
	.fop_flags		= FOP_MMAP_SYNC,
};
