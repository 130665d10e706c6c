// SPDX-License-Identifier: GPL-2.0-only
/*
 * Space below for pages that are appended in PMem (overwrite.c): the lower file
 * grows only when they are written back, and then there must be room. So space
 * is set aside beyond its end, in steps, by fallocate(2) and with the rights and
 * the quota of whoever writes. A write that gets none goes the ordinary way,
 * and meets ENOSPC or EDQUOT in the lower file system's own words.
 *
 * fi->reserved is the byte up to which that was done; io_sem held exclusively
 * protects it. What is left over is given back when the last writer closes the
 * file, and not at writeback: that would change the file's ctime when nobody has
 * done anything to it. After a crash it stays until the file is truncated.
 *
 * Space that somebody else has set aside beyond the end is his: then nothing is
 * reserved and nothing given back.
 */
#include <linux/fs.h>
#include <linux/falloc.h>
#include <linux/fiemap.h>

#include "range.h"
#include "reserve.h"

/* Not for a file that is opened to add a line; pages appended since it was. */
#define FB_RESERVE_AFTER 16
/* As much as the file is long, so that small files don't hold much; in bytes. */
#define FB_RESERVE_MIN	SZ_64K
#define FB_RESERVE_MAX	SZ_1M

/* Does the lower file have space beyond its end? */
static bool fb_has_space_beyond(struct fb_inode *fi)
{
	loff_t end = round_up(i_size_read(fi->lower), PAGE_SIZE);
	struct fiemap_extent_info info = { };	/* no array: extents are counted */

	return !fi->lower->i_op->fiemap ||
	       fi->lower->i_op->fiemap(fi->lower, &info, end, fi->lower->i_sb->s_maxbytes - end) ||
	       info.fi_extents_mapped;
}

/**
 * fb_reserve() - see to it that the lower file can grow
 * @fi: the inode; io_sem is held exclusively
 * @lower: an open lower file of the writer
 * @end: the byte after the last that will be appended
 *
 * Return: is there space up to @end?
 */
bool fb_reserve(struct fb_inode *fi, struct file *lower, loff_t end)
{
	loff_t from = max(fi->reserved, round_up(i_size_read(fi->lower), PAGE_SIZE));
	loff_t step = clamp(from, FB_RESERVE_MIN, FB_RESERVE_MAX);

	if (fi->reserved == FB_RESERVE_NEVER)
		return false;
	if (end <= fi->reserved)
		return true;
	if (fi->reserved == FB_RESERVE_UNASKED && fi->appended++ < FB_RESERVE_AFTER)
		return false;
	if ((fi->reserved == FB_RESERVE_UNASKED && fb_has_space_beyond(fi)) || end > from + step ||
	    vfs_fallocate(lower, FALLOC_FL_KEEP_SIZE, from, step)) {
		fi->reserved = FB_RESERVE_NEVER;
		return false;
	}
	fi->reserved = from + step;
	return true;
}

/**
 * fb_reserve_trim() - give back what was not used
 * @fi: the inode
 * @lower: an open lower file of the last writer
 *
 * Takes io_sem: so nothing is appended meanwhile. Writeback may go on, it ends before the size. Who has
 * opened the file since may have begun an asynchronous write: when that has ended below, nobody may have
 * told us yet how long the file is.
 */
void fb_reserve_trim(struct fb_inode *fi, struct file *lower)
{
	struct fb_sb *fsb = FB_SB(fi->vfs_inode.i_sb);
	loff_t size;
	int err = 0;

	down_write(&fi->io_sem);
	inode_dio_wait(fi->lower);
	size = max(i_size_read(&fi->vfs_inode), i_size_read(fi->lower));
	if (fi->reserved > 0 && i_size_read(fi->lower) < size)
		err = fb_set_lower_size(fsb, lower, size);
	/* A file system gives up what is beyond the end when it is told the size that it has. */
	if (fi->reserved > 0 && !err && !fb_set_lower_size(fsb, lower, size))
		fi->reserved = FB_RESERVE_UNASKED;
	fi->appended = 0;
	up_write(&fi->io_sem);
}
