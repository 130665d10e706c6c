// SPDX-License-Identifier: GPL-2.0-only
/*
 * Space below, before a page in PMem changes.
 *
 * A page that was copied from a clean folio may come from a hole (fb_page->has_space). Where blocks are
 * smaller than pages, a part of any page may. A write to such a page looks whether the lower file has data
 * there, and if not, allocates space. If the lower file system can't allocate, the unchanged page leaves
 * PMem, and the write goes to the lower file. For a store through a mapping, the lower file system makes its
 * folio writable, which allocates (vfs/mkwrite.c).
 *
 * Pages that are appended in PMem (overwrite.c): the lower file grows only when they are written back, and
 * there must be space then. So space is allocated beyond the lower file's end, in steps, by fallocate(2),
 * with the rights and the quota of the writer. A write that gets no space goes to the lower file, which
 * returns ENOSPC or EDQUOT itself.
 *
 * fi->reserved is the byte up to which space was allocated; the inode's i_rwsem, held exclusively,
 * protects it. The rest is given back when the last writer closes the file. Writeback doesn't give it
 * back, for that would change the file's ctime when no program has changed the file. After a crash the
 * space stays until the file is truncated.
 *
 * Space beyond the end may have been set aside by a program: then nothing is reserved here, and nothing
 * given back.
 */
#include <linux/fs.h>
#include <linux/falloc.h>
#include <linux/fiemap.h>

#include "../lower/attr.h"
#include "../lower/lower.h"
#include "../page/entry.h"
#include "../page/index.h"
#include "reserve.h"

/* Pages that are appended before space is reserved: a file that is opened to add a line needs none. */
#define FB_RESERVE_AFTER 16
/* A step is as large as the file, so that small files don't hold much, within these limits; in bytes. */
#define FB_RESERVE_MIN	SZ_64K
#define FB_RESERVE_MAX	SZ_1M

/**
 * fb_lower_is_data() - whether the lower file has data for a whole page, up to its end
 * @fi: the inode
 * @lower: an open lower file
 * @pos: of the page, in bytes
 *
 * Context: process, without locks of the lower file. Sleeps.
 */
bool fb_lower_is_data(struct fb_inode *fi, struct file *lower, loff_t pos)
{
	loff_t end = min_t(loff_t, pos + PAGE_SIZE, i_size_read(fi->lower));

	return pos < end && vfs_llseek(lower, pos, SEEK_DATA) == pos &&
	       vfs_llseek(lower, pos, SEEK_HOLE) >= end;
}

/*
 * A page that nothing was stored in leaves PMem: the lower file has the same. A sync call may have relied on
 * the page. A hole that a truncation has left may not be durable below. So the lower file is synced first.
 */
static int fb_invalidate_unchanged(struct fb_inode *fi, struct file *lower, pgoff_t index)
{
	struct fb_page *page;
	int err;

	mutex_lock(&fi->wb_lock);
	err = fb_fsync_lower(lower, 1);
	down_write(&fi->io_sem);
	page = fb_page_find(fi, index);
	if (!err && page && !page->has_space) {
		unmap_mapping_pages(fi->lower->i_mapping, index, 1, false);
		fb_pages_invalidate(fi, &page, 1);
	}
	up_write(&fi->io_sem);
	mutex_unlock(&fi->wb_lock);
	return err;
}

/**
 * fb_space_for_write() - a page is about to be written that may have no space below
 * @fi: the inode
 * @lower: an open lower file
 * @index: the page
 *
 * Afterwards the page has space below, or is not in PMem any more. It stays in PMem if it can. The source of
 * the write may be a MAP_SYNC mapping of the same page, and a fault there would promote the page again.
 *
 * Context: process, under the inode's i_rwsem. Sleeps.
 * Return: 0; -ENOSPC, -EDQUOT or another error of the lower file system; -EINTR if the task is killed.
 */
int fb_space_for_write(struct fb_inode *fi, struct file *lower, pgoff_t index)
{
	loff_t pos = (loff_t)index << PAGE_SHIFT;
	struct fb_range range;
	struct fb_page *page;
	int err;

	lockdep_assert_held(&fi->vfs_inode.i_rwsem);
	err = fb_range_lock(&fi->ranges, &range, index, index, FB_RANGE_KILLABLE);
	if (err)
		return err;
	if (!fb_lower_is_data(fi, lower, pos))
		err = vfs_fallocate(lower, FALLOC_FL_KEEP_SIZE, pos, PAGE_SIZE);
	down_read(&fi->io_sem);
	page = fb_page_find(fi, index);
	if (page && !err)
		page->has_space = true;
	up_read(&fi->io_sem);
	fb_range_unlock(&fi->ranges, &range);
	return err == -EOPNOTSUPP ? fb_invalidate_unchanged(fi, lower, index) : err;
}

/* True if the lower file has space beyond its end. */
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
 * @fi: the inode, under its i_rwsem exclusively
 * @lower: an open lower file of the writer
 * @end: the byte after the last that will be appended
 *
 * Return: true if there is space up to @end.
 */
bool fb_reserve(struct fb_inode *fi, struct file *lower, loff_t end)
{
	loff_t from = max(fi->reserved, round_up(i_size_read(fi->lower), PAGE_SIZE));
	loff_t step = clamp(from, FB_RESERVE_MIN, FB_RESERVE_MAX);

	lockdep_assert_held_write(&fi->vfs_inode.i_rwsem);
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
 * fb_reserve_trim() - give back space that was reserved and not used
 * @fi: the inode
 * @lower: an open lower file of the last writer
 *
 * Takes the inode's i_rwsem, so that nothing is appended meanwhile. Writeback may continue: it writes
 * nothing beyond the size. An asynchronous write through a file that was opened since may be in flight. It
 * ends before the range is locked, and so before the size is read.
 *
 * Context: process. Sleeps.
 */
void fb_reserve_trim(struct fb_inode *fi, struct file *lower)
{
	struct fb_sb *fsb = FB_SB(fi->vfs_inode.i_sb);
	struct inode *inode = &fi->vfs_inode;
	struct fb_range range;
	loff_t size;
	int err = 0;

	inode_lock(inode);
	fb_range_lock(&fi->ranges, &range, i_size_read(fi->lower) >> PAGE_SHIFT, ULONG_MAX,
		      FB_RANGE_EXCLUSIVE);
	size = max(i_size_read(inode), i_size_read(fi->lower));
	if (fi->reserved > 0 && i_size_read(fi->lower) < size)
		err = fb_set_lower_size(fsb, lower, size);
	/* A file system gives up what is beyond the end when it is told the size that it has. */
	if (fi->reserved > 0 && !err && !fb_set_lower_size(fsb, lower, size))
		fi->reserved = FB_RESERVE_UNASKED;
	fi->appended = 0;
	fb_range_unlock(&fi->ranges, &range);
	inode_unlock(inode);
}
