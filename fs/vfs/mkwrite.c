// SPDX-License-Identifier: GPL-2.0-only
/*
 * Stores to pages of mappings: a page becomes writable.
 *
 *   - page_mkwrite comes with a folio that was mapped before or is about to be:
 *     it looks up again, since the page may have moved between. In older kernels a DAX page may come that
 *     way, too; it goes on as in pfn_mkwrite;
 *   - pfn_mkwrite marks the page and sets a writable entry itself, in one hold of io_sem.
 *     The VFS would set the entry later. By then the page may have been flushed or copied below, and
 *     mapped again, and the VFS can't tell an equal entry from the one it knew.
 *
 * In a MAP_SYNC mapping, what is needed to find a store again is durable before the page is writable. Space
 * below is reserved by the lower page_mkwrite before a page is writable.
 *
 * Locks: mmap_lock is held. The page's range, shared, or io_sem, shared; both are waited for killably, as
 * fault.c tells.
 */
#include <linux/fs.h>
#include <linux/mm.h>

#include "../../compat/dax.h"
#include "../page/copies.h"
#include "../page/index.h"
#include "../page/page.h"
#include "../pin/vma.h"
#include "../sync/mapped.h"
#include "../sync/stored.h"
#include "../sync/sync.h"
#include "mkwrite.h"

/**
 * fb_prepare_folio() - have the lower file system read the page and, for a store, reserve its space
 * @vmf: the fault; vmf->page becomes the lower page, with a reference
 *
 * The DAX page may still have an entry there. In memory that mlock() has locked, filemap_fault() would then
 * do nothing, and the store would wait for ever.
 *
 * Return: 0, or what the lower fault returned instead of a page.
 */
vm_fault_t fb_prepare_folio(struct vm_fault *vmf)
{
	const struct vm_operations_struct *lower = fb_lower_vm_ops(vmf->vma);
	enum fault_flag flags = vmf->flags;
	vm_fault_t ret;

	vmf->flags &= ~FAULT_FLAG_ORIG_PTE_VALID;
	ret = lower->fault(vmf);
	vmf->flags = flags;
	if (!(ret & VM_FAULT_LOCKED))
		return ret;
	unlock_page(vmf->page);
	if (!(flags & FAULT_FLAG_WRITE) || !lower->page_mkwrite)
		return 0;
	vmf->flags = FAULT_FLAG_WRITE | FAULT_FLAG_MKWRITE;
	ret = lower->page_mkwrite(vmf);
	vmf->flags = flags;
	if (ret & VM_FAULT_LOCKED)
		unlock_page(vmf->page);
	ret &= VM_FAULT_ERROR | VM_FAULT_NOPAGE;
	if (ret) {
		put_page(vmf->page);
		vmf->page = NULL;
	}
	return ret;
}

/* A store to a DAX page: the entry is writable at once, for we have heard of it. */
static vm_fault_t fb_map_dax_writable(struct fb_inode *fi, struct fb_page *page, struct vm_fault *vmf)
{
	struct fb_sb *fsb = FB_SB(fi->vfs_inode.i_sb);

	return compat_map_dax_writable(vmf, fb_page_pfn(fsb, page), !fsb->is_volatile);
}

/* True if a crash could take bytes of the file in this page. Bytes appended behind the page don't count. */
static bool fb_size_needs_sync(const struct fb_inode *fi, const struct vm_fault *vmf)
{
	loff_t end = min_t(loff_t, i_size_read(&fi->vfs_inode), ((loff_t)vmf->pgoff + 1) << PAGE_SHIFT);

	return end > READ_ONCE(fi->durable_size);
}

static void fb_update_time_mapped(struct fb_inode *fi, struct vm_fault *vmf)
{
	struct super_block *lower_sb = fi->lower->i_sb;

	if (IS_IMMUTABLE(&fi->vfs_inode))
		return;
	sb_start_pagefault(lower_sb);
	file_update_time(vmf->vma->vm_file);
	sb_end_pagefault(lower_sb);
}

/*
 * Makes the page writable, if it is a DAX page; -EBUSY if it is about to leave PMem, -ENOSPC if there may
 * be no space for it below. An entry that is there goes first, if there is one (@mapped).
 */
static int fb_store_page(struct fb_inode *fi, struct vm_fault *vmf, bool mapped, vm_fault_t *ret)
{
	struct fb_page *page = fb_page_find(fi, vmf->pgoff);

	lockdep_assert_held_read(&fi->io_sem);
	if (IS_IMMUTABLE(&fi->vfs_inode) || (page && page->bad)) {
		*ret = VM_FAULT_SIGBUS;
	} else if (page && fb_range_is_exclusive(&fi->ranges, vmf->pgoff)) {
		return -EBUSY;
	} else if (page && (vmf->vma->vm_flags & VM_SYNC) && fb_size_needs_sync(fi, vmf)) {
		*ret = VM_FAULT_NOPAGE;	/* truncated, and grown again, since we looked */
	} else if (page && !page->has_space) {
		return -ENOSPC;
	} else if (page && vmf->pgoff < fb_pages_in_file(fi)) {
		if (!FB_SB(fi->vfs_inode.i_sb)->ps.flush_caches)
			fb_note_store(fi);
		if (__fb_page_touch(fi, page, true)) {
			*ret = VM_FAULT_SIGBUS;
			return 0;
		}
		fb_copied(FB_SB(fi->vfs_inode.i_sb), FB_MAPPED_STORES, PAGE_SIZE);
		if (mapped)
			unmap_mapping_pages(fi->lower->i_mapping, vmf->pgoff, 1, false);
		*ret = fb_map_dax_writable(fi, page, vmf);
	}
	return 0;
}

/* Waits until the page has left PMem, or may stay. */
static vm_fault_t fb_store_later(struct fb_inode *fi, struct vm_fault *vmf)
{
	struct fb_range range;

	if (fb_lock_page_range(fi, &range, vmf->pgoff))
		return VM_FAULT_SIGBUS;
	fb_range_unlock(&fi->ranges, &range);
	return VM_FAULT_NOPAGE;
}

/*
 * The lower file system sets space aside for a page that was copied from there, as for a store to its
 * folio. What it writes there some day is what it has. Keeps mmap_lock: pfn_mkwrite can't be told that it
 * went. filemap_fault() gives it back also if a killable wait for the folio is broken off.
 */
static vm_fault_t fb_space_for_store(struct fb_inode *fi, struct vm_fault *vmf)
{
	enum fault_flag flags = vmf->flags;
	struct fb_range range;
	struct fb_page *page;
	vm_fault_t ret;

	if (fb_lock_page_range(fi, &range, vmf->pgoff))
		return VM_FAULT_SIGBUS;
	vmf->flags &= ~(FAULT_FLAG_ALLOW_RETRY | FAULT_FLAG_RETRY_NOWAIT | FAULT_FLAG_KILLABLE);
	ret = fb_prepare_folio(vmf);
	vmf->flags = flags;
	if (!ret) {
		down_read(&fi->io_sem);
		page = fb_page_find(fi, vmf->pgoff);
		if (page)
			page->has_space = true;
		up_read(&fi->io_sem);
		put_page(vmf->page);
		vmf->page = NULL;
	}
	fb_range_unlock(&fi->ranges, &range);
	return ret ?: VM_FAULT_NOPAGE;
}

/**
 * fb_store_dax() - a DAX page is about to be stored to
 * @fi: the inode
 * @vmf: the fault
 * @mapped: there may be an entry, which goes first
 *
 * Time stamps change under the freeze protection that is made for faults. A fault holds a lock of the
 * address space, under which a task may not wait for the end of a freeze.
 *
 * Return: VM_FAULT_NOPAGE if there is an entry now that is writable, or a new look must be taken; 0 if the
 * page isn't a DAX page any more; or an error.
 */
vm_fault_t fb_store_dax(struct fb_inode *fi, struct vm_fault *vmf, bool mapped)
{
	struct super_block *sb = fi->vfs_inode.i_sb;
	vm_fault_t ret = 0;
	int err;

	/* A flushed store must be found again: the file, and its size, are durable before it can be made. */
	if ((vmf->vma->vm_flags & VM_SYNC) &&
	    (fb_name_needs_sync(fi) || fb_size_needs_sync(fi, vmf))) {
		/* An fdatasync below may leave a name out. */
		err = vfs_fsync(vmf->vma->vm_file, !test_bit(FB_NEEDS_FSYNC, &fi->flags));
		if (err)
			return vmf_error(err);
	}
	sb_start_pagefault(sb);
	fb_update_time_mapped(fi, vmf);
	if (down_read_killable(&fi->io_sem)) {
		sb_end_pagefault(sb);
		return VM_FAULT_SIGBUS;
	}
	err = fb_store_page(fi, vmf, mapped, &ret);
	up_read(&fi->io_sem);
	sb_end_pagefault(sb);
	if (err == -EBUSY)
		return fb_store_later(fi, vmf);
	return err == -ENOSPC ? fb_space_for_store(fi, vmf) : ret;
}

/* A volatile page becomes writable; its range is locked, shared. */
static vm_fault_t fb_folio_mkwrite(struct fb_inode *fi, struct vm_fault *vmf)
{
	vm_fault_t ret = fb_lower_vm_ops(vmf->vma)->page_mkwrite(vmf);

	if (!(ret & (VM_FAULT_ERROR | VM_FAULT_NOPAGE)))
		fb_stored_below(fi, vmf);
	return ret;
}

/**
 * fb_page_mkwrite() - a page of a mapping is about to be stored to, mostly a volatile one
 * @vmf: the fault
 *
 * In older kernels an entry of a DAX page that is counted (compat/dax.h) comes here, too. So does that of a
 * volatile page that has moved since.
 *
 * Return: VM_FAULT_LOCKED with the folio locked; VM_FAULT_NOPAGE for a new look; or an error.
 */
vm_fault_t fb_page_mkwrite(struct vm_fault *vmf)
{
	struct fb_inode *fi = fb_vma_inode(vmf->vma);
	vm_fault_t ret = VM_FAULT_NOPAGE;
	struct fb_range range;

	if (fb_page_find(fi, vmf->pgoff))
		return fb_pfn_mkwrite(vmf);
	sb_start_pagefault(fi->vfs_inode.i_sb);
	if (fb_lock_page_range(fi, &range, vmf->pgoff)) {
		ret = VM_FAULT_SIGBUS;
		goto out;
	}
	if (fb_page_find(fi, vmf->pgoff)) {
		/* It has just moved: look again. */
	} else if ((vmf->vma->vm_flags & VM_SYNC) && !fb_is_gone_for_good(fi)) {
		/* Mapped to be read while the file was immutable: a store takes a page in PMem. */
		if (IS_IMMUTABLE(&fi->vfs_inode))
			ret = VM_FAULT_SIGBUS;
		else
			unmap_mapping_pages(fi->lower->i_mapping, vmf->pgoff, 1, false);
	} else {
		ret = fb_folio_mkwrite(fi, vmf);
	}
	fb_range_unlock(&fi->ranges, &range);
out:
	sb_end_pagefault(fi->vfs_inode.i_sb);
	return ret;
}

/**
 * fb_pfn_mkwrite() - a DAX page is about to be stored to
 * @vmf: the fault
 *
 * Return: VM_FAULT_NOPAGE: the entry is writable, or has gone; or an error.
 */
vm_fault_t fb_pfn_mkwrite(struct vm_fault *vmf)
{
	return fb_store_dax(fb_vma_inode(vmf->vma), vmf, true) ?: VM_FAULT_NOPAGE;
}
