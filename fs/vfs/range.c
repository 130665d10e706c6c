// SPDX-License-Identifier: GPL-2.0-only
/*
 * Calls that change, copy or map a file by ranges: fallocate, copy_file_range, clone, dedupe, fadvise,
 * fiemap.
 *
 * Other changes can be made by the lower file system alone. Such a call first
 * makes the lower file primary for the range (fb_evict_range(): written back,
 * durable, invalidated), and then passes to the lower file system.
 *
 * A clone is a copy as of one moment: the lower file system locks both files for it. So here, too, both are
 * locked from the time when the source's pages are written back.
 */
#include <linux/cred.h>
#include <linux/falloc.h>
#include <linux/fadvise.h>
#include <linux/fiemap.h>
#include <linux/file.h>

#include "../lower/attr.h"
#include "../lower/lower.h"
#include "../page/index.h"
#include "../page/size.h"
#include "../page/zero.h"
#include "../pin/pin.h"
#include "../pin/tree.h"
#include "../sync/reserve.h"
#include "../sync/sync.h"
#include "../writeback/evict.h"
#include "../writeback/writeback.h"
#include "range.h"

/**
 * fb_hand_over() - let the lower file system change the file
 * @fi: the inode, whose i_rwsem is held exclusively
 * @range: locked exclusively afterwards, with wb_lock, if that succeeded
 * @start: first byte
 * @end: last byte
 * @evict: the lower file is to be primary from @start to @end
 *
 * Context: process. Sleeps.
 * Return: 0, or why pages could not be written back.
 */
int fb_hand_over(struct fb_inode *fi, struct fb_range *range, loff_t start, loff_t end, bool evict)
{
	int err = 0;

	lockdep_assert_held_write(&fi->vfs_inode.i_rwsem);
	mutex_lock(&fi->wb_lock);
	fb_range_lock(&fi->ranges, range, start >> PAGE_SHIFT, end >> PAGE_SHIFT, FB_RANGE_EXCLUSIVE);
	if (evict && fb_has_pages(fi))
		err = fb_evict_range(fi, start >> PAGE_SHIFT, end >> PAGE_SHIFT);
	if (err) {
		fb_range_unlock(&fi->ranges, range);
		mutex_unlock(&fi->wb_lock);
	}
	return err;
}

/**
 * fb_take_back() - the lower file system has changed the file by itself
 * @fi: the inode
 * @range: from fb_hand_over(); unlocked, with wb_lock
 */
void fb_take_back(struct fb_inode *fi, struct fb_range *range)
{
	struct inode *inode = &fi->vfs_inode;

	fb_size_grew(inode, i_size_read(fi->lower));
	fi->reserved = FB_RESERVE_NEVER;	/* how much space there is beyond the end isn't known */
	fb_mark_needs_sync(fi);
	fb_copy_attr(inode);
	fb_range_unlock(&fi->ranges, range);
	mutex_unlock(&fi->wb_lock);
}

/*
 * Contents are at other places in the lower file now. That becomes durable before any of their pages is in
 * PMem again. Otherwise a crash would leave that page at its new place, among others at their old places.
 */
static int fb_moved(struct fb_inode *fi, struct file *lower, int err)
{
	if (err) {	/* they are where they were */
		fb_truncate_end(fi, i_size_read(&fi->vfs_inode));
		return err;
	}
	err = fb_fsync_lower(lower, 1);
	down_write(&fi->io_sem);
	fb_truncate_end(fi, i_size_read(fi->lower));
	fb_size_moved_below(fi, err ? 0 : i_size_read(fi->lower));
	fb_pins_truncate(fi, fb_pages_in_file(fi));
	up_write(&fi->io_sem);
	return err;
}

/**
 * fb_fallocate() - fallocate(2), in all modes that the lower file system has
 * @file: upper file
 * @mode: FALLOC_FL_*
 * @offset: first byte
 * @len: bytes
 *
 * Return: 0 or an error.
 */
long fb_fallocate(struct file *file, int mode, loff_t offset, loff_t len)
{
	bool moves = mode & (FALLOC_FL_COLLAPSE_RANGE | FALLOC_FL_INSERT_RANGE);
	bool allocates = !(mode & ~FALLOC_FL_KEEP_SIZE);	/* contents stay as they are */
	struct inode *inode = file_inode(file);
	struct fb_inode *fi = FB_I(inode);
	struct fb_range range;
	int err;

	inode_lock(inode);
	err = file_remove_privs(file);
	if (!err)
		err = fb_hand_over(fi, &range, offset, moves ? LLONG_MAX : offset + len - 1, !allocates);
	if (err)
		goto unlock;
	if (moves) {
		fb_truncate_begin(fi);
		err = fb_flush_size(fi);
	}
	fb_zero_last(fi);
	if (!err)
		err = vfs_fallocate(fb_lower_file(file), mode, offset, len);
	if (moves)
		err = fb_moved(fi, fb_lower_file(file), err);
	fb_take_back(fi, &range);
unlock:
	inode_unlock(inode);
	return err;
}

/* The last byte of a range; @len 0 is up to the end of the file. */
static loff_t fb_last_byte(loff_t pos, loff_t len)
{
	return len ? pos + len - 1 : LLONG_MAX;
}

/* Brings the lower file up to date as a source, without a lock; pages stay. */
static int fb_prepare_source(struct fb_inode *fi, loff_t pos, loff_t len)
{
	pgoff_t last = fb_last_byte(pos, len) >> PAGE_SHIFT;

	return fb_has_pages(fi) ? fb_writeback_range(fi, pos >> PAGE_SHIFT, last) : 0;
}

ssize_t fb_copy_file_range(struct file *in, loff_t pos_in, struct file *out, loff_t pos_out, size_t len,
			   unsigned int flags)
{
	struct fb_inode *source = FB_I(file_inode(in)), *target = FB_I(file_inode(out));
	struct fb_range range;
	ssize_t ret;

	ret = fb_prepare_source(source, pos_in, len);
	if (ret)
		return ret;
	inode_lock(&target->vfs_inode);
	ret = file_remove_privs(out) ?:
	      fb_hand_over(target, &range, pos_out, fb_last_byte(pos_out, len), true);
	if (!ret) {
		fb_zero_last(target);
		ret = vfs_copy_file_range(fb_lower_file(in), pos_in, fb_lower_file(out), pos_out, len, flags);
		fb_take_back(target, &range);
	}
	inode_unlock(&target->vfs_inode);
	return ret;
}

/* What a clone or a deduplication has locked besides both inodes' i_rwsem. */
struct fb_remap {
	struct fb_inode *source, *target;	/* may be one */
	struct fb_range from, to;		/* of one file: to alone, for both */
};

/* Takes wb_lock and the range of the source, whose pages are below afterwards. */
static int fb_remap_hold_source(struct fb_remap *remap, pgoff_t first, pgoff_t last)
{
	struct fb_inode *fi = remap->source;
	int err;

	lockdep_assert_held_write(&fi->vfs_inode.i_rwsem);
	mutex_lock_nested(&fi->wb_lock, SINGLE_DEPTH_NESTING);
	fb_range_lock(&fi->ranges, &remap->from, first, last, FB_RANGE_EXCLUSIVE | FB_RANGE_SECOND);
	err = fb_has_pages(fi) ? fb_settle_range(fi, first, last) : 0;
	if (err) {
		fb_range_unlock(&fi->ranges, &remap->from);
		mutex_unlock(&fi->wb_lock);
	}
	return err;
}

/*
 * Locks both files so that the source is as of one moment, as the lower file system has it: no write, store
 * or move of the source is between what was written back and what is cloned.
 */
static int fb_remap_begin(struct fb_remap *remap, loff_t pos_in, loff_t pos_out, loff_t len)
{
	loff_t end_in = fb_last_byte(pos_in, len), end_out = fb_last_byte(pos_out, len);
	struct fb_inode *target = remap->target;
	int err;

	if (remap->source != target) {
		err = fb_hand_over(target, &remap->to, pos_out, end_out, true);
		if (err)
			return err;
		err = fb_remap_hold_source(remap, pos_in >> PAGE_SHIFT, end_in >> PAGE_SHIFT);
	} else {
		err = fb_hand_over(target, &remap->to, min(pos_in, pos_out), max(end_in, end_out), false);
		if (err)
			return err;
		if (fb_has_pages(target))
			err = fb_settle_range(target, pos_in >> PAGE_SHIFT, end_in >> PAGE_SHIFT) ?:
			      fb_evict_range(target, pos_out >> PAGE_SHIFT, end_out >> PAGE_SHIFT);
	}
	if (err)
		fb_take_back(target, &remap->to);
	else
		fb_zero_last(target);
	return err;
}

static void fb_remap_end(struct fb_remap *remap)
{
	if (remap->source != remap->target) {
		fb_range_unlock(&remap->source->ranges, &remap->from);
		mutex_unlock(&remap->source->wb_lock);
	}
	fb_take_back(remap->target, &remap->to);
}

loff_t fb_remap_file_range(struct file *in, loff_t pos_in, struct file *out, loff_t pos_out, loff_t len,
			   unsigned int flags)
{
	struct inode *source = file_inode(in), *target = file_inode(out);
	struct fb_remap remap = { .source = FB_I(source), .target = FB_I(target) };
	bool dedup = flags & REMAP_FILE_DEDUP;
	loff_t ret;

	if (flags & ~(REMAP_FILE_DEDUP | REMAP_FILE_ADVISORY))
		return -EINVAL;
	if (!fb_lower_file(out)->f_op->remap_file_range)	/* before anything changes */
		return dedup ? -EINVAL : -EOPNOTSUPP;
	/* Most of it, before the source's writers have to wait. */
	ret = fb_prepare_source(remap.source, pos_in, len);
	if (ret)
		return ret;
	lock_two_nondirectories(source, target);
	/* Deduplication leaves the contents as they are. So the set-user-ID bit and capabilities stay. */
	ret = dedup ? 0 : file_remove_privs(out);
	if (!ret)
		ret = fb_remap_begin(&remap, pos_in, pos_out, len);
	if (ret)
		goto unlock;
	if (dedup)
		ret = vfs_dedupe_file_range_one(fb_lower_file(in), pos_in, fb_lower_file(out), pos_out, len,
						flags);
	else
		ret = vfs_clone_file_range(fb_lower_file(in), pos_in, fb_lower_file(out), pos_out, len,
					   flags);
	fb_remap_end(&remap);
unlock:
	unlock_two_nondirectories(source, target);
	return ret;
}

/* Pages that lie in the range in whole, as POSIX_FADV_DONTNEED is understood. */
static int fb_fadvise_dontneed(struct fb_inode *fi, loff_t offset, loff_t len)
{
	loff_t end = len && len < LLONG_MAX - offset ? offset + len : LLONG_MAX;
	loff_t size = i_size_read(&fi->vfs_inode);
	pgoff_t first = DIV_ROUND_UP_ULL(offset, PAGE_SIZE);
	pgoff_t beyond = end >= size ? FB_LAST_PAGE + 1 : end >> PAGE_SHIFT;
	struct forebay_dropped result;

	return first < beyond ? fb_evict_unpinned(fi, first, beyond - 1, &result) : 0;
}

int fb_fadvise(struct file *file, loff_t offset, loff_t len, int advice)
{
	struct fb_inode *fi = FB_I(file_inode(file));
	int err = 0;

	if (advice == POSIX_FADV_DONTNEED && offset >= 0 && len >= 0 && fb_has_pages(fi) &&
	    fb_may_steer(file))
		err = fb_fadvise_dontneed(fi, offset, len);
	return err ?: vfs_fadvise(fb_lower_file(file), offset, len, advice);
}

/**
 * fb_fiemap() - where the file's bytes are on storage
 * @inode: upper inode
 * @info: to be filled in
 * @start: first byte
 * @len: bytes
 *
 * Return: 0 or an error.
 */
int fb_fiemap(struct inode *inode, struct fiemap_extent_info *info, u64 start, u64 len)
{
	struct fb_inode *fi = FB_I(inode);
	size_t array = info->fi_extents_max * sizeof(struct fiemap_extent);
	int err;

	if (!fi->lower->i_op->fiemap)
		return -EOPNOTSUPP;
	/* Pages that were never below have no place there. */
	err = fb_has_pages(fi) ? fb_writeback_range(fi, 0, ULONG_MAX) : 0;
	/* The lower file system holds the inode's lock when it fills the array in: no faults (direct.c). */
	while (!err) {
		if (fault_in_writeable((char __user *)info->fi_extents_start, array))
			return -EFAULT;
		info->fi_extents_mapped = 0;
		pagefault_disable();
		err = fi->lower->i_op->fiemap(fi->lower, info, start, len);
		pagefault_enable();
		if (err != -EFAULT)
			break;
		err = fatal_signal_pending(current) ? -EINTR : 0;
	}
	return err;
}
