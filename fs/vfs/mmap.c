// SPDX-License-Identifier: GPL-2.0-only
/*
 * Mappings: mmap, and what the kernel calls on a mapping's file. Faults are in fault.c and mkwrite.c.
 *
 * A mapping belongs to the lower inode's address space (its vm_file is a
 * backing file there), so reverse mapping, truncation and mlock work as they do
 * below. Its vm_ops wrap the lower file system's.
 */
#include <linux/fadvise.h>
#include <linux/file.h>
#include <linux/mm.h>

#include "../../compat/backing.h"
#include "../../compat/dax.h"
#include "../../compat/mmap.h"
#include "../lower/lower.h"
#include "../page/record.h"
#include "../pin/vma.h"
#include "../sync/promote.h"
#include "../sync/sync.h"
#include "fault.h"
#include "io.h"
#include "mkwrite.h"
#include "mmap.h"

/* The wrapped operations of the lower file system's @lower. */
static const struct vm_operations_struct *fb_wrap_vm_ops(struct fb_sb *fsb,
							 const struct vm_operations_struct *lower)
{
	struct fb_vm_ops *wrapped = READ_ONCE(fsb->vm_ops), *old;

	if (!wrapped) {
		wrapped = kzalloc(sizeof(*wrapped), GFP_KERNEL);
		if (!wrapped)
			return ERR_PTR(-ENOMEM);
		wrapped->lower = lower;
		wrapped->ops = *lower;
		wrapped->ops.fault = fb_fault;
		wrapped->ops.huge_fault = NULL;
		wrapped->ops.map_pages = lower->map_pages ? fb_map_pages : NULL;
		wrapped->ops.page_mkwrite = lower->page_mkwrite ? fb_page_mkwrite : NULL;
		wrapped->ops.pfn_mkwrite = fb_pfn_mkwrite;
		old = cmpxchg(&fsb->vm_ops, NULL, wrapped);
		if (old) {
			kfree(wrapped);
			wrapped = old;
		}
	}
	return wrapped->lower == lower ? &wrapped->ops : ERR_PTR(-ENODEV);
}

/**
 * fb_vm_ops_free() - the mount goes away: it has no mappings any more
 * @fsb: the mount
 */
void fb_vm_ops_free(struct fb_sb *fsb)
{
	kfree(fsb->vm_ops);
}

/* What the kernel calls on vma->vm_file: on the upper file's behalf. */

/* Not only fb_mmap() comes here: remap_file_pages() maps the backing file once more. */
static int fb_vma_file_mmap(struct file *file, struct vm_area_struct *vma)
{
	struct fb_sb *fsb = FB_SB(d_inode(backing_file_user_path(file)->dentry)->i_sb);
	const struct vm_operations_struct *ops;
	int err = compat_mmap(file_inode(file)->i_fop, file, vma);

	/* Operations of their own, and no page for us to see. */
	if (err || IS_DAX(file_inode(file)))
		return err;
	ops = fb_wrap_vm_ops(fsb, vma->vm_ops);
	if (IS_ERR(ops))
		return PTR_ERR(ops);
	if (fsb->is_volatile)
		vm_flags_set(vma, VM_MIXEDMAP);
	vma->vm_ops = ops;
	vma->vm_private_data = (void *)(uintptr_t)__kuid_val(current_uid());
	return 0;
}

/*
 * What writing back has failed with since the mapping's file was told last. Its f_wb_err is about the lower
 * file; f_sb_err, which syncfs() uses for descriptors alone, is about the upper one.
 */
static int fb_vma_file_error(struct file *file, const struct inode *inode)
{
	int err;

	spin_lock(&file->f_lock);
	err = errseq_check_and_advance(&inode->i_mapping->wb_err, &file->f_sb_err);
	spin_unlock(&file->f_lock);
	return err;
}

/* The lower file is opened for reading: an fsync needs no more, and the file may be executed below. */
static int fb_vma_file_fsync(struct file *file, loff_t start, loff_t end, int datasync)
{
	struct inode *inode = d_inode(backing_file_user_path(file)->dentry);
	struct file *lower = dentry_open(&file->f_path, O_RDONLY | O_LARGEFILE | O_NOATIME,
					 FB_SB(inode->i_sb)->cred);
	int err, lower_err, upper_err;

	if (IS_ERR(lower))
		return PTR_ERR(lower);
	err = fb_wait_to_sync(FB_I(inode)) ?:
	      fb_sync_inode(FB_I(inode), file, lower, start, end, datasync);
	fput(lower);
	lower_err = file_check_and_advance_wb_err(file);
	upper_err = fb_vma_file_error(file, inode);
	return lower_err ?: upper_err ?: err;	/* as fb_fsync() */
}

static long fb_vma_file_fallocate(struct file *file, int mode, loff_t offset, loff_t len)
{
	struct file *upper = dentry_open(backing_file_user_path(file), file->f_flags, current_cred());
	long err;

	if (IS_ERR(upper))
		return PTR_ERR(upper);
	/* The kernel holds off a freeze of the lower file system; we take that ourselves, further down. */
	file_end_write(file);
	err = vfs_fallocate(upper, mode, offset, len);
	file_start_write(file);
	fput(upper);
	return err;
}

static int fb_vma_file_fadvise(struct file *file, loff_t offset, loff_t len, int advice)
{
	return generic_fadvise(file, offset, len, advice);
}

static const struct file_operations fb_vma_file_operations = {
	.owner		= THIS_MODULE,
	.mmap		= fb_vma_file_mmap,
	.fsync		= fb_vma_file_fsync,
	.fallocate	= fb_vma_file_fallocate,
	.fadvise	= fb_vma_file_fadvise,
};

/*
 * The lower file for a mapping. Its user path has to lead to our inode, for faults find the inode by it. If
 * @file is itself the backing file of a file system above (overlayfs), the kernel would hand on the path
 * there. So then the lower file is opened on behalf of an upper file that is no backing file.
 */
static struct file *fb_open_mapped(struct file *file)
{
	struct file *own, *backing;

	if (!(file->f_mode & FMODE_BACKING))
		return fb_open_lower(file, file_inode(file));
	own = dentry_open(&file->f_path, file->f_flags, file->f_cred);
	if (IS_ERR(own))
		return own;
	backing = fb_open_lower(own, file_inode(own));
	fput(own);
	return backing;
}

/**
 * fb_mmap() - mmap(2)
 * @file: upper file
 * @vma: the mapping
 *
 * Return: 0; -ENODEV if the lower file can't be mapped; -EOPNOTSUPP if it shall be MAP_SYNC and the file
 * has no name, by which stores could be found again, or is one that fb_may_cache() excludes; or another
 * error.
 */
int fb_mmap(struct file *file, struct vm_area_struct *vma)
{
	struct backing_file_ctx ctx = { .cred = current_cred(), COMPAT_USER_FILE(file) .accessed = NULL };
	/*
	 * The kernel hands the flag on for any mapping. A private one has nothing to be durable; nor has that
	 * of a caller that may not write, and moves no pages.
	 */
	bool sync = (vma->vm_flags & VM_SYNC) && (vma->vm_flags & VM_MAYSHARE) && fb_may_steer(file);
	struct fb_inode *fi = FB_I(file_inode(file));
	struct file *backing;
	int err;

	if (sync && (!fb_may_cache(fi) || (!fi->vfs_inode.i_nlink && READ_ONCE(fi->file) == FB_NO_FILE)))
		return -EOPNOTSUPP;
	backing = fb_open_mapped(file);
	if (IS_ERR(backing))
		return PTR_ERR(backing);
	replace_fops(backing, fops_get(&fb_vma_file_operations));
	backing->f_sb_err = READ_ONCE(file->f_wb_err);	/* see fb_vma_file_error() */
	/* The lower file system need not know MAP_SYNC: we see to it. */
	vm_flags_clear(vma, VM_SYNC);
	err = backing_file_mmap(backing, vma, &ctx);
	fput(backing);
	if (err)
		return err;
	if (sync) {
		vm_flags_set(vma, VM_SYNC);
		compat_no_recency(vma->vm_file);
		set_bit(FB_DAX_MAPPED, &fi->flags);
		fb_promote_mapped(fi, vma->vm_pgoff, vma->vm_pgoff + vma_pages(vma) - 1);
	}
	return 0;
}
