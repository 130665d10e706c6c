// SPDX-License-Identifier: GPL-2.0-only
/*
 * truncate(2), and the size in setattr.
 *
 * Truncation is atomic under power failure. Where PMem has something beyond the
 * new end, the order is:
 *   1. the file record says "exactly this size" (8 bytes, durable): from now on
 *      recovery truncates the lower file to it and frees pages beyond;
 *   2. the lower file is truncated;
 *   3. pages beyond go, the rest of the last one becomes zeros.
 * So the truncation is durable, and a sync has nothing to do for it. A lower fsync ends the "exactly"
 * (page/size.c) about a second later (writeback/deferred.c). Where PMem has nothing beyond the new end, there
 * is no record, and the next sync goes below. If the file was never durable, that sync can say "exactly this
 * size" in the record (page/size.c).
 */
#include <linux/fs.h>

#include "../names/attr.h"
#include "../page/alloc.h"
#include "../page/size.h"
#include "../page/zero.h"
#include "../pin/pin.h"
#include "../sync/reserve.h"
#include "../sync/sync.h"
#include "../writeback/evict.h"
#include "truncate.h"

/*
 * The lower file is truncated. Pages beyond the end go, the rest of the last one becomes zeros. Returns
 * whether the next sync must go below for that.
 */
static bool fb_truncate_done(struct fb_inode *fi, loff_t size, bool recorded)
{
	pgoff_t beyond = DIV_ROUND_UP_ULL(size, PAGE_SIZE);
	bool below;

	down_write(&fi->io_sem);
	below = recorded ? test_bit(FB_TRUNCATED, &fi->flags) : !fb_truncate_is_later(fi, size);
	fb_size_truncated(fi, size);
	if (offset_in_page(size))
		unmap_mapping_pages(fi->lower->i_mapping, size >> PAGE_SHIFT, 1, false);
	fb_zero_tail(fi, size);
	fb_truncate_end(fi, size);
	fb_pins_truncate(fi, beyond);
	up_write(&fi->io_sem);
	fb_invalidate_range(fi, beyond, ULONG_MAX);
	return below;
}

/* wb_lock is held, and the range from the last page on is locked exclusively. */
static int fb_truncate(struct mnt_idmap *idmap, struct dentry *dentry, struct iattr *attr)
{
	struct fb_inode *fi = FB_I(d_inode(dentry));
	struct fb_truncation truncation;
	int err;

	lockdep_assert_held(&fi->wb_lock);
	err = fb_truncate_prepare(fi, attr->ia_size);
	if (err)
		return err;
	fb_truncate_to_record(fi, &truncation, attr->ia_size);
	err = fb_names_setattr(idmap, dentry, attr);
	if (err) {
		fb_truncate_failed(fi, &truncation);
		fb_mark_needs_sync(fi);
		return err;
	}
	if (fb_truncate_done(fi, attr->ia_size, truncation.recorded))
		fb_mark_needs_sync(fi);
	if (truncation.recorded)
		fb_flush_orphans_soon(FB_SB(fi->vfs_inode.i_sb));
	return 0;
}

static int fb_grow(struct mnt_idmap *idmap, struct dentry *dentry, struct iattr *attr)
{
	struct inode *inode = d_inode(dentry);
	struct fb_inode *fi = FB_I(inode);
	bool grows = attr->ia_size > i_size_read(inode);
	int err = fb_names_setattr(idmap, dentry, attr);

	if (err)
		return err;
	down_write(&fi->io_sem);
	fb_zero_tail(fi, i_size_read(inode));
	fb_size_grew(inode, attr->ia_size);
	up_write(&fi->io_sem);
	if (grows)
		fb_mark_needs_sync(fi);
	return 0;
}

/**
 * fb_setattr_size() - truncate, with what else is to change
 * @idmap: of the upper mount
 * @dentry: upper dentry of a regular file, whose inode is locked
 * @attr: has ATTR_SIZE
 *
 * All that was passed below for the truncated range has ended then, and nothing new begins.
 *
 * Return: 0 or an error; then nothing has changed.
 */
int fb_setattr_size(struct mnt_idmap *idmap, struct dentry *dentry, struct iattr *attr)
{
	struct inode *inode = d_inode(dentry);
	struct fb_inode *fi = FB_I(inode);
	int err = inode_newsize_ok(inode, attr->ia_size);
	struct fb_range range;
	loff_t first;
	bool trims;

	lockdep_assert_held_write(&inode->i_rwsem);
	if (err)
		return err;
	mutex_lock(&fi->wb_lock);
	first = min(attr->ia_size, i_size_read(inode));
	fb_range_lock(&fi->ranges, &range, first >> PAGE_SHIFT, ULONG_MAX, FB_RANGE_EXCLUSIVE);
	trims = attr->ia_size <= i_size_read(fi->lower);
	if (attr->ia_size < i_size_read(inode))
		err = fb_truncate(idmap, dentry, attr);
	else
		err = fb_grow(idmap, dentry, attr);
	if (!err && trims)
		fi->reserved = FB_RESERVE_UNASKED;	/* the lower file system has given it back */
	fb_range_unlock(&fi->ranges, &range);
	mutex_unlock(&fi->wb_lock);
	return err;
}
