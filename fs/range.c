// SPDX-License-Identifier: GPL-2.0-only
/*
 * Calls that change, copy or map a file by ranges: truncate, fallocate,
 * copy_file_range, clone, dedupe, seek, fiemap.
 *
 * Truncation is atomic under power failure. Where PMem has something beyond the
 * new end, the order is:
 *   1. the file record says "exactly this size" (8 bytes, durable): from now on
 *      recovery cuts the lower file there and drops pages beyond;
 *   2. the lower file is cut;
 *   3. pages beyond go, the rest of the last one becomes zeros.
 * The next sync goes below and ends the "exactly" (sync.c), asked for or not
 * (settle.c).
 *
 * Everything else that changes a lower file in a way that only its file system
 * can do first makes the lower file primary for the range (fb_evict_range():
 * written back, durable, dropped), and then is the lower file system's alone.
 */
#include <linux/cred.h>
#include <linux/falloc.h>
#include <linux/fadvise.h>
#include <linux/fiemap.h>
#include <linux/file.h>

#include "cache.h"
#include "claim.h"
#include "page_index.h"
#include "range.h"
#include "reserve.h"
#include "settle.h"
#include "tracker.h"
#include "upgrade.h"
#include "writeback.h"

struct fb_resize {
	struct file *file;
	loff_t size;
};

static int fb_resize(void *arg)
{
	struct fb_resize *resize = arg;
	struct file *file = resize->file;
	struct iattr attr = { .ia_valid = ATTR_SIZE | ATTR_FILE | ATTR_FORCE | ATTR_MTIME | ATTR_MTIME_SET,
			      .ia_size = resize->size, .ia_file = file };
	struct inode *lower = file_inode(file);
	int err;

	file_start_write(file);
	inode_lock(lower);
	attr.ia_mtime = inode_get_mtime(lower);
	err = notify_change(file_mnt_idmap(file), file_dentry(file), &attr, NULL);
	inode_unlock(lower);
	file_end_write(file);
	return err;
}

/**
 * fb_set_lower_size() - set the size of a lower file to what it is above
 * @fsb: the mount
 * @file: the lower file, open for writing
 * @size: in bytes
 *
 * The modification time stays: the user has changed nothing now. For the same reason it is an errand.
 *
 * Return: 0 or an error of the lower file system.
 */
int fb_set_lower_size(struct fb_sb *fsb, struct file *file, loff_t size)
{
	struct fb_resize resize = { .file = file, .size = size };

	return fb_errand(fsb, fb_resize, &resize);
}

/**
 * fb_zero_tail() - what lies behind the end of the file in its last page becomes zeros
 * @fi: the inode; io_sem is held, or nobody else has it
 * @size: the end of the file, in bytes
 *
 * For a DAX page; the lower file system does it for its folios.
 */
void fb_zero_tail(struct fb_inode *fi, loff_t size)
{
	struct fb_sb *fsb = FB_SB(fi->vfs_inode.i_sb);
	struct fb_page *page;

	if (!offset_in_page(size))
		return;
	page = fb_page_find(fi, size >> PAGE_SHIFT);
	if (!page)
		return;
	fb_page_touch(fi, page);
	ps_page_zero(&fsb->ps, fb_page_number(fsb, page), offset_in_page(size),
		     PAGE_SIZE - offset_in_page(size));
	ps_fence(&fsb->ps);
}

/**
 * fb_note_size() - make a file's size durable in its record
 * @fi: the inode, with a record; io_sem is held exclusively
 * @word: bytes, perhaps with PS_SIZE_EXACT
 */
void fb_note_size(struct fb_inode *fi, u64 word)
{
	struct fb_sb *fsb = FB_SB(fi->vfs_inode.i_sb);

	ps_file_set_size(&fsb->ps, fi->file, word);
	ps_fence(&fsb->ps);
	fi->record_size = word & ~PS_SIZE_EXACT;
}

/* A cut that was not durable below becomes it. The record says @size then. */
static int fb_end_cut(struct fb_inode *fi, loff_t size)
{
	int err = vfs_fsync(fi->wb_file, 1);

	if (err)
		return err;
	clear_bit(FB_SIZE_EXACT, &fi->flags);
	fb_note_size(fi, size);
	return 0;
}

/* Would a crash after the lower cut bring back more, or other bytes, than the file had? */
static bool fb_cut_concerns_cache(struct fb_inode *fi, loff_t size)
{
	unsigned long index = size >> PAGE_SHIFT;

	return fi->file != FB_NO_FILE &&
	       (fi->record_size > size || xa_find(&fi->index, &index, ULONG_MAX, XA_PRESENT));
}

/*
 * The lower file is as short already. An asynchronous write may end now, and look at both (file.c). A sync
 * that counts the cut must not see the size before it.
 */
static void fb_size_shrank(struct fb_inode *fi, loff_t size)
{
	struct inode *inode = &fi->vfs_inode;

	spin_lock(&inode->i_lock);
	i_size_write(inode, size);
	spin_unlock(&inode->i_lock);
	smp_wmb();	/* against fb_end_now() */
	fi->cuts++;
}

/* wb_lock and io_sem (exclusively) are held. */
static int fb_cut(struct mnt_idmap *idmap, struct dentry *dentry, struct iattr *attr)
{
	struct inode *inode = d_inode(dentry);
	struct fb_inode *fi = FB_I(inode);
	loff_t size = attr->ia_size, old = fi->record_size;
	bool concerns = fb_cut_concerns_cache(fi, size);
	bool was_exact = test_bit(FB_SIZE_EXACT, &fi->flags);
	int err;

	inode_dio_wait(fi->lower);
	/*
	 * The record has room for one cut, and the file has grown since that one. A sync that is on its way
	 * would leave it there, and cut off what it has told to be durable.
	 */
	if (was_exact && size > old) {
		err = fb_end_cut(fi, old);
		if (err)
			return err;
		was_exact = false;
	}
	if (concerns) {
		set_bit(FB_SIZE_EXACT, &fi->flags);
		fb_note_size(fi, size | PS_SIZE_EXACT);
	}
	err = fb_lower_setattr(idmap, dentry, attr);
	if (err) {
		if (concerns) {
			fb_note_size(fi, old | (was_exact ? PS_SIZE_EXACT : 0));
			assign_bit(FB_SIZE_EXACT, &fi->flags, was_exact);
		}
		return err;
	}
	fb_size_shrank(fi, size);
	fi->reserved = FB_RESERVE_UNASKED;
	fi->durable_size = min(fi->durable_size, size);
	fi->below_size = min(fi->below_size, size);
	fb_drop_range(fi, DIV_ROUND_UP_ULL(size, PAGE_SIZE), ULONG_MAX);
	fb_claims_cut(fi, DIV_ROUND_UP_ULL(size, PAGE_SIZE));
	if (offset_in_page(size))
		unmap_mapping_pages(fi->lower->i_mapping, size >> PAGE_SHIFT, 1, false);
	fb_zero_tail(fi, size);
	if (concerns)
		fb_settle_soon(FB_SB(inode->i_sb));
	return 0;
}

static int fb_grow(struct mnt_idmap *idmap, struct dentry *dentry, struct iattr *attr)
{
	struct inode *inode = d_inode(dentry);
	int err = fb_lower_setattr(idmap, dentry, attr);

	if (err)
		return err;
	fb_zero_tail(FB_I(inode), i_size_read(inode));
	i_size_write(inode, attr->ia_size);
	return 0;
}

/**
 * fb_setattr_size() - truncate, with what else is to change
 * @idmap: of the upper mount
 * @dentry: upper dentry of a regular file, whose inode is locked
 * @attr: has ATTR_SIZE
 *
 * Return: 0 or an error; then nothing has changed.
 */
int fb_setattr_size(struct mnt_idmap *idmap, struct dentry *dentry, struct iattr *attr)
{
	struct inode *inode = d_inode(dentry);
	struct fb_inode *fi = FB_I(inode);
	int err = inode_newsize_ok(inode, attr->ia_size);

	if (err)
		return err;
	mutex_lock(&fi->wb_lock);
	down_write(&fi->io_sem);
	if (attr->ia_size < i_size_read(inode))
		err = fb_cut(idmap, dentry, attr);
	else
		err = fb_grow(idmap, dentry, attr);
	fb_owe_all(fi);
	up_write(&fi->io_sem);
	mutex_unlock(&fi->wb_lock);
	return err;
}

/**
 * fb_hand_over() - let the lower file system change the file
 * @fi: the inode; wb_lock and io_sem (exclusively) are held afterwards, if that succeeded
 * @start: first byte
 * @end: last byte
 * @evict: the lower file is to be primary from @start to @end
 *
 * Return: 0, or why pages could not be written back; -EBUSY: hardware uses some.
 */
int fb_hand_over(struct fb_inode *fi, loff_t start, loff_t end, bool evict)
{
	int err = 0;

	mutex_lock(&fi->wb_lock);
	down_write(&fi->io_sem);
	inode_dio_wait(fi->lower);
	if (evict && fb_has_pages(fi))
		err = fb_evict_range(fi, start >> PAGE_SHIFT, end >> PAGE_SHIFT);
	if (err) {
		up_write(&fi->io_sem);
		mutex_unlock(&fi->wb_lock);
	}
	return err;
}

/**
 * fb_take_back() - the lower file system has changed the file by itself
 * @fi: the inode, from fb_hand_over()
 */
void fb_take_back(struct fb_inode *fi)
{
	struct inode *inode = &fi->vfs_inode;
	loff_t lower = i_size_read(fi->lower);

	if (lower > i_size_read(inode))
		i_size_write(inode, lower);
	fi->reserved = FB_RESERVE_NEVER;	/* what space there is beyond the end, nobody knows */
	fb_owe_all(fi);
	fb_copy_attr(inode);
	up_write(&fi->io_sem);
	mutex_unlock(&fi->wb_lock);
}

/**
 * fb_settle_size() - everything is below: the record need not speak of the size any more
 * @fi: the inode, from fb_hand_over()
 *
 * Return: 0; the lower file system's error; -EINVAL if only PMem knows how long the file is.
 */
int fb_settle_size(struct fb_inode *fi)
{
	int err;

	if (!fi->record_size && !test_bit(FB_SIZE_EXACT, &fi->flags))
		return 0;
	/* Only the record knows how long it is: then what is asked for lies beyond the end, and is wrong. */
	if (i_size_read(fi->lower) < i_size_read(&fi->vfs_inode))
		return -EINVAL;
	err = fb_end_cut(fi, 0);
	if (!err)
		fi->durable_size = min(fi->durable_size, i_size_read(fi->lower));
	return err;
}

/*
 * Contents are at other places in the lower file now. That is durable before any page of them is in
 * PMem again: found at its new place, after a crash, among others at their old ones, it would be wrong.
 */
static int fb_moved(struct fb_inode *fi, struct file *lower)
{
	int err = vfs_fsync(lower, 1);

	fb_size_shrank(fi, i_size_read(fi->lower));
	fi->below_size = err ? 0 : i_size_read(fi->lower);
	fi->durable_size = fi->below_size;
	fb_claims_cut(fi, fb_pages_in_file(fi));
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
	int err;

	inode_lock(inode);
	err = file_remove_privs(file);
	if (!err)
		err = fb_hand_over(fi, offset, moves ? LLONG_MAX : offset + len - 1, !allocates);
	if (err)
		goto unlock;
	if (moves)
		err = fb_settle_size(fi);
	fb_zero_tail(fi, i_size_read(inode));
	if (!err)
		err = vfs_fallocate(fb_lower_file(file), mode, offset, len);
	if (!err && moves)
		err = fb_moved(fi, fb_lower_file(file));
	fb_take_back(fi);
unlock:
	inode_unlock(inode);
	return err;
}

/* Brings the lower file up to date as a source; pages stay. @len 0 is up to the end. */
static int fb_prepare_source(struct fb_inode *fi, loff_t pos, loff_t len)
{
	loff_t end = len ? pos + len - 1 : LLONG_MAX;

	return fb_has_pages(fi) ? fb_writeback_range(fi, pos >> PAGE_SHIFT, end >> PAGE_SHIFT) : 0;
}

/* Locks a file as the target of a copy, with the lower file primary in the range. */
static int fb_begin_target(struct file *file, loff_t pos, loff_t len)
{
	struct inode *inode = file_inode(file);
	int err;

	inode_lock(inode);
	err = file_remove_privs(file);
	if (!err)
		err = fb_hand_over(FB_I(inode), pos, len ? pos + len - 1 : LLONG_MAX, true);
	if (err)
		inode_unlock(inode);
	else
		fb_zero_tail(FB_I(inode), i_size_read(inode));
	return err;
}

static void fb_end_target(struct file *file)
{
	fb_take_back(FB_I(file_inode(file)));
	inode_unlock(file_inode(file));
}

ssize_t fb_copy_file_range(struct file *in, loff_t pos_in, struct file *out, loff_t pos_out, size_t len,
			   unsigned int flags)
{
	ssize_t ret;

	ret = fb_prepare_source(FB_I(file_inode(in)), pos_in, len) ?: fb_begin_target(out, pos_out, len);
	if (ret)
		return ret;
	ret = vfs_copy_file_range(fb_lower_file(in), pos_in, fb_lower_file(out), pos_out, len, flags);
	fb_end_target(out);
	return ret;
}

loff_t fb_remap_file_range(struct file *in, loff_t pos_in, struct file *out, loff_t pos_out, loff_t len,
			   unsigned int flags)
{
	loff_t ret;

	if (flags & ~(REMAP_FILE_DEDUP | REMAP_FILE_ADVISORY))
		return -EINVAL;
	ret = fb_prepare_source(FB_I(file_inode(in)), pos_in, len) ?: fb_begin_target(out, pos_out, len);
	if (ret)
		return ret;
	if (flags & REMAP_FILE_DEDUP)
		ret = vfs_dedupe_file_range_one(fb_lower_file(in), pos_in, fb_lower_file(out), pos_out, len,
						flags);
	else
		ret = vfs_clone_file_range(fb_lower_file(in), pos_in, fb_lower_file(out), pos_out, len,
					   flags);
	fb_end_target(out);
	return ret;
}

/* The first byte at or after @pos that the lower file calls data (or a hole); -ENXIO if there is none. */
static loff_t fb_seek_data(struct fb_inode *fi, struct file *lower, loff_t pos)
{
	loff_t data = vfs_llseek(lower, pos, SEEK_DATA);
	unsigned long index = pos >> PAGE_SHIFT;

	if (data < 0 && data != -ENXIO)
		return data;
	if (fb_page_next(fi, &index, ULONG_MAX)) {
		pos = max(pos, (loff_t)index << PAGE_SHIFT);
		data = data < 0 ? pos : min(data, pos);
	}
	return data;
}

/* A hole is where neither the lower file nor PMem has data. */
static loff_t fb_seek_hole(struct fb_inode *fi, struct file *lower, loff_t pos)
{
	loff_t hole;

	for (;;) {
		hole = vfs_llseek(lower, pos, SEEK_HOLE);
		if (hole == -ENXIO)
			hole = pos;	/* PMem has what is behind the lower file's end */
		if (hole < 0 || !fb_page_find(fi, hole >> PAGE_SHIFT))
			return hole;
		pos = ((hole >> PAGE_SHIFT) + 1) << PAGE_SHIFT;
	}
}

loff_t fb_llseek(struct file *file, loff_t offset, int whence)
{
	struct inode *inode = file_inode(file);
	struct fb_inode *fi = FB_I(inode);
	loff_t size = i_size_read(inode), pos;

	if (whence != SEEK_DATA && whence != SEEK_HOLE)
		return generic_file_llseek(file, offset, whence);
	if (offset < 0 || offset >= size)
		return -ENXIO;
	down_read(&fi->io_sem);
	if (whence == SEEK_DATA)
		pos = fb_seek_data(fi, fb_lower_file(file), offset);
	else
		pos = min(fb_seek_hole(fi, fb_lower_file(file), offset), size);
	up_read(&fi->io_sem);
	if (pos >= size && whence == SEEK_DATA)
		return -ENXIO;
	return pos < 0 ? pos : vfs_setpos(file, pos, inode->i_sb->s_maxbytes);
}

/* Pages that lie in the range in whole, as POSIX_FADV_DONTNEED is understood. */
static int fb_fadvise_dontneed(struct fb_inode *fi, loff_t offset, loff_t len)
{
	loff_t end = len && len < LLONG_MAX - offset ? offset + len : LLONG_MAX;
	loff_t size = i_size_read(&fi->vfs_inode);
	pgoff_t first = DIV_ROUND_UP_ULL(offset, PAGE_SIZE);
	pgoff_t beyond = end >= size ? FB_LAST_PAGE + 1 : end >> PAGE_SHIFT;
	struct forebay_dropped result;

	return first < beyond ? fb_drop(fi, first, beyond - 1, &result) : 0;
}

int fb_fadvise(struct file *file, loff_t offset, loff_t len, int advice)
{
	struct fb_inode *fi = FB_I(file_inode(file));
	int err = 0;

	if (advice == POSIX_FADV_DONTNEED && offset >= 0 && len >= 0 && fb_has_pages(fi))
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
