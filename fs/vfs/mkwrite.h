/* SPDX-License-Identifier: GPL-2.0-only */
/* Stores to pages of mappings, and what they share with other faults: mkwrite.c */
#ifndef FOREBAY_VFS_MKWRITE_H
#define FOREBAY_VFS_MKWRITE_H

#include <linux/mm.h>

#include "../../compat/attr.h"
#include "../forebay.h"
#include "../page/page.h"
#include "../pin/vma.h"

vm_fault_t fb_prepare_folio(struct vm_fault *vmf);
vm_fault_t fb_store_dax(struct fb_inode *fi, struct vm_fault *vmf, bool mapped);
vm_fault_t fb_page_mkwrite(struct vm_fault *vmf);
vm_fault_t fb_pfn_mkwrite(struct vm_fault *vmf);

static inline const struct vm_operations_struct *fb_lower_vm_ops(const struct vm_area_struct *vma)
{
	return container_of(vma->vm_ops, struct fb_vm_ops, ops)->lower;
}

/* vma->vm_file is a backing file on the lower inode; this is the upper one. */
static inline struct fb_inode *fb_vma_inode(const struct vm_area_struct *vma)
{
	return FB_I(d_inode(backing_file_user_path(vma->vm_file)->dentry));
}

static inline int fb_lock_page_range(struct fb_inode *fi, struct fb_range *range, pgoff_t index)
{
	return fb_range_lock(&fi->ranges, range, index, index, FB_RANGE_KILLABLE);
}

/* True if the file has lost its last name. A file that never had one (O_TMPFILE) may get one yet. */
static inline bool fb_is_gone_for_good(struct fb_inode *fi)
{
	return !fi->vfs_inode.i_nlink && !(inode_state_read_once(&fi->vfs_inode) & I_LINKABLE);
}

#endif
