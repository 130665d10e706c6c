// SPDX-License-Identifier: GPL-2.0-only
/*
 * Mappings. A mapping belongs to the lower inode's address space (its vm_file is a
 * backing file there), so reverse mapping, truncation and mlock work as they do
 * below. Its vm_ops wrap the lower file system's: a DAX page is inserted by page
 * frame number, anything else is the lower fault.
 *
 * A fault that finds a DAX page maps it under io_sem, shared. Any other fault locks the page's range,
 * shared (range_lock.c), looks again, and goes below. A task that moves the page locks the range
 * exclusively, and then the folio, to wait for an entry that is about to be set; then it unmaps. So no
 * entry for a page that moved survives:
 *   - fault: looks up, and returns the lower folio locked, with the range locked all the while;
 *   - map_pages (fault-around, under RCU) maps lower folios only if io_sem can be had
 *     at once and no DAX page lies in the range; pages that enter the index are unmapped once more under
 *     io_sem;
 *   - page_mkwrite comes with a folio that was mapped before or is about to be:
 *     it looks up again, since the page may have moved between;
 *   - pfn_mkwrite marks the page and sets a writable entry itself, in one hold of io_sem.
 *     The VFS would set the entry later. By then the page may have been flushed or copied below, and
 *     mapped again, and the VFS can't tell an equal entry from the one it knew.
 *
 * A huge entry would map 512 lower pages at once, and hide DAX pages among them. The kernel sets one only
 * where there is no page table yet. So before a large folio is returned, a DAX page near it is mapped,
 * which puts a page table there.
 *
 * Faults wait for ranges and for io_sem killably. A task may read a lower file directly, past forebay, into
 * memory that forebay has mapped. It may hold the lower inode's lock then (xfs, direct I/O) while its fault
 * waits here for a task that wants that lock. No lock order prevents this deadlock, but the task can be
 * killed. docs/semantics.md tells users; lockdep is right about it.
 *
 * MAP_SYNC: a store is durable once it is flushed, without a system call. The fault
 * handler never maps a lower folio there: it moves the page to PMem first, and what
 * is needed to find it again is durable when it is mapped. Space below is
 * reserved by the lower page_mkwrite before a page is writable.
 */
#include <linux/fadvise.h>
#include <linux/file.h>
#include <linux/mm.h>
#include <linux/pfn_t.h>

#include "../lower/lower.h"
#include "../page/index.h"
#include "../page/page.h"
#include "../page/record.h"
#include "../page/times.h"
#include "../pin/pin.h"
#include "../pin/vma.h"
#include "../sync/promote.h"
#include "../sync/stored.h"
#include "../sync/sync.h"
#include "mmap.h"

/* So often a fault that reads waits for a busy page, before it maps that page where it is. */
#define FB_READ_TRIES	25

static vm_fault_t fb_fault(struct vm_fault *vmf);

static const struct vm_operations_struct *fb_lower_vm_ops(const struct vm_area_struct *vma)
{
	return container_of(vma->vm_ops, struct fb_vm_ops, ops)->lower;
}

/* vma->vm_file is a backing file on the lower inode; this is the upper one. */
static struct fb_inode *fb_vma_inode(const struct vm_area_struct *vma)
{
	return FB_I(d_inode(backing_file_user_path(vma->vm_file)->dentry));
}

/*
 * An emulated device's pages are mapped by number alone: they are no device's, and the kernel would take
 * them for the lower file's. So no task can take a reference on one through a mapping (get_user_pages()).
 */
static pfn_t fb_page_pfn_t(const struct fb_sb *fsb, const struct fb_page *page)
{
	return __pfn_to_pfn_t(fb_page_pfn(fsb, page), fsb->is_volatile ? PFN_SPECIAL : PFN_DEV | PFN_MAP);
}

/* Maps a DAX page, not writable: the first store comes back as pfn_mkwrite. */
static vm_fault_t fb_map_dax(struct fb_inode *fi, struct fb_page *page, struct vm_fault *vmf)
{
	struct fb_sb *fsb = FB_SB(fi->vfs_inode.i_sb);

	if (page->bad)
		return VM_FAULT_SIGBUS;
	page->referenced = true;
	fb_record_use(fi);
	if (vmf->cow_page) {
		/* A private copy is made by the caller, from a locked page. */
		vmf->page = pfn_to_page(fb_page_pfn(fsb, page));
		get_page(vmf->page);
		lock_page(vmf->page);
		return VM_FAULT_LOCKED;
	}
	return vmf_insert_mixed(vmf->vma, vmf->address, fb_page_pfn_t(fsb, page));
}

/*
 * Has the lower file system read the page and, for a store, reserve its space. There may be an entry for
 * it, the DAX page's: filemap_fault() would then do nothing in memory that mlock() has locked, and the
 * store would wait for ever.
 */
static vm_fault_t fb_prepare_folio(struct vm_fault *vmf)
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

/* After fb_bring_page() has failed; 0: try again. */
static vm_fault_t fb_fault_wait(struct fb_inode *fi, int err, struct fb_patience *patience)
{
	int end = fb_wait_to_promote(fi, err, patience);

	if (end == err)		/* a wait doesn't help, or not any more */
		return vmf_error(err);
	/*
	 * -ENOMEM here is a cache that stays full: no lack of memory, so not VM_FAULT_OOM. Nor VM_FAULT_RETRY
	 * for a killed task: that means that mmap_lock was let go.
	 */
	return end ? VM_FAULT_SIGBUS : 0;
}

/* A DAX page that a huge entry over the faulting page would hide; *@index becomes its index. */
static struct fb_page *fb_page_under_pmd(struct fb_inode *fi, const struct vm_fault *vmf,
					 unsigned long *index)
{
	const struct vm_area_struct *vma = vmf->vma;
	pgoff_t before = (vmf->address - max(vmf->address & PMD_MASK, vma->vm_start)) >> PAGE_SHIFT;
	unsigned long end = min((vmf->address & PMD_MASK) + PMD_SIZE, vma->vm_end);

	*index = vmf->pgoff - before;
	return fb_page_next(fi, index, vmf->pgoff + ((end - vmf->address) >> PAGE_SHIFT) - 1);
}

/*
 * Any page that is not in PMem, for a mapping without MAP_SYNC; its range is locked, shared. The folio that
 * the lower fault returns is locked, and io_sem is taken inside of that.
 */
static vm_fault_t fb_fault_folio(struct fb_inode *fi, struct vm_fault *vmf)
{
	vm_fault_t ret = fb_lower_vm_ops(vmf->vma)->fault(vmf);
	struct fb_page *page;
	unsigned long index;

	if (!(ret & VM_FAULT_LOCKED) || !PageCompound(vmf->page))
		return ret;
	down_read(&fi->io_sem);
	page = fb_page_under_pmd(fi, vmf, &index);
	if (page)
		vmf_insert_mixed(vmf->vma, vmf->address + (index - vmf->pgoff) * PAGE_SIZE,
				 fb_page_pfn_t(FB_SB(fi->vfs_inode.i_sb), page));
	up_read(&fi->io_sem);
	return ret;
}

static int fb_lock_page_range(struct fb_inode *fi, struct fb_range *range, pgoff_t index)
{
	return fb_range_lock(&fi->ranges, range, index, index, FB_RANGE_KILLABLE);
}

/* The lower file system's fault; 0 if the page is in PMem. */
static vm_fault_t fb_fault_lower(struct fb_inode *fi, struct vm_fault *vmf)
{
	struct fb_range range;
	vm_fault_t ret = 0;

	if (fb_lock_page_range(fi, &range, vmf->pgoff))
		return VM_FAULT_SIGBUS;
	if (!fb_page_find(fi, vmf->pgoff))
		ret = fb_fault_folio(fi, vmf);
	fb_range_unlock(&fi->ranges, &range);
	return ret;
}

/* Maps the page if it is in PMem; 0 if it isn't. */
static vm_fault_t fb_fault_dax(struct fb_inode *fi, struct vm_fault *vmf)
{
	struct fb_page *page;
	vm_fault_t ret = 0;

	if (down_read_killable(&fi->io_sem))
		return VM_FAULT_SIGBUS;
	page = fb_page_find(fi, vmf->pgoff);
	if (vmf->pgoff >= fb_pages_in_file(fi))
		ret = VM_FAULT_SIGBUS;
	else if (page)
		ret = fb_map_dax(fi, page, vmf);
	up_read(&fi->io_sem);
	return ret;
}

/* True if the file has lost its last name. A file that never had one (O_TMPFILE) may get one yet. */
static bool fb_is_gone_for_good(const struct fb_inode *fi)
{
	return !fi->vfs_inode.i_nlink && !(READ_ONCE(fi->vfs_inode.i_state) & I_LINKABLE);
}

/* Brings the page into PMem, whatever stands in the way; 0 to look again. */
static vm_fault_t fb_fault_sync(struct fb_inode *fi, struct vm_fault *vmf, struct fb_patience *patience)
{
	struct fb_range range;
	vm_fault_t ret;
	int err;

	if (fb_lock_page_range(fi, &range, vmf->pgoff))
		return VM_FAULT_SIGBUS;
	ret = fb_prepare_folio(vmf);
	fb_range_unlock(&fi->ranges, &range);
	if (ret)
		return ret & VM_FAULT_NOPAGE ? 0 : ret;
	err = fb_bring_page(fi, vmf->pgoff);
	put_page(vmf->page);
	vmf->page = NULL;
	if (!err)
		return 0;
	/* Without MAP_SYNC no program relies on it; nor in an immutable file, or one without a name. */
	if (!(vmf->vma->vm_flags & VM_SYNC) || err == -EPERM || fb_is_gone_for_good(fi))
		return fb_fault_lower(fi, vmf);
	/* It can be read where it is; a store comes back here (fb_page_mkwrite()). */
	if (err == -EBUSY && !(vmf->flags & FAULT_FLAG_WRITE) && patience->busy == FB_READ_TRIES)
		return fb_fault_lower(fi, vmf);
	return fb_fault_wait(fi, err, patience);
}

/* In a MAP_SYNC mapping, or where there is another mapping that is, or a claim. */
static bool fb_fault_wants_dax(struct fb_inode *fi, const struct vm_fault *vmf)
{
	const struct vm_area_struct *vma = vmf->vma;

	bool wants;

	if (vma->vm_flags & VM_SYNC)
		return true;
	if (!(vma->vm_flags & VM_MAYSHARE) ||
	    (!fb_has_claims(fi) && !test_bit(FB_DAX_MAPPED, &fi->flags)))
		return false;
	down_read(&fi->io_sem);
	wants = fb_belongs_in_pmem(fi, vmf->pgoff, vmf->pgoff);
	up_read(&fi->io_sem);
	return wants;
}

/*
 * A store to a DAX page: the entry is writable at once. vmf_insert_mixed_mkwrite() isn't exported, and
 * vmf_insert_mixed() takes the protection from the mapping's, which lets us hear of the first store; but
 * we have heard of it. It only reads the mapping it is given.
 */
static vm_fault_t fb_map_dax_writable(struct fb_inode *fi, struct fb_page *page, struct vm_fault *vmf)
{
	struct fb_sb *fsb = FB_SB(fi->vfs_inode.i_sb);
	struct vm_area_struct vma = *vmf->vma;

	vma.vm_page_prot = vm_get_page_prot(vma.vm_flags);
	return vmf_insert_mixed(&vma, vmf->address, fb_page_pfn_t(fsb, page));
}

/* True if a crash could cut off bytes of the file in this page. Bytes appended behind it don't count. */
static bool fb_page_owes_size(const struct fb_inode *fi, const struct vm_fault *vmf)
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
	} else if (page && (vmf->vma->vm_flags & VM_SYNC) && fb_page_owes_size(fi, vmf)) {
		*ret = VM_FAULT_NOPAGE;	/* it was cut, and has grown again, since we looked */
	} else if (page && !page->has_space) {
		return -ENOSPC;
	} else if (page && vmf->pgoff < fb_pages_in_file(fi)) {
		fb_note_store(fi);
		__fb_page_touch(fi, page, true);
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

/*
 * A DAX page is about to be stored to. Time stamps change under the freeze protection that is made for
 * faults: mmap_lock is held. Returns VM_FAULT_NOPAGE if there is an entry now that is writable, or a new
 * look must be taken; 0 if the page isn't a DAX page any more.
 */
static vm_fault_t fb_store_dax(struct fb_inode *fi, struct vm_fault *vmf, bool mapped)
{
	struct super_block *sb = fi->vfs_inode.i_sb;
	vm_fault_t ret = 0;
	int err;

	/* A flushed store must be found again: the file, and its size, are durable before it can be made. */
	if ((vmf->vma->vm_flags & VM_SYNC) &&
	    (fb_name_is_owed(fi) || fb_page_owes_size(fi, vmf))) {
		/* An fdatasync below may leave a name out. */
		err = vfs_fsync(vmf->vma->vm_file, !test_bit(FB_OWES_ATTR, &fi->flags));
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

/*
 * A page of a mapping that mlock() has locked: it is paid for. mlock() itself hears that this is too
 * much, by an error that it turns into ENOMEM; for others the page is there, and can be reclaimed. mlock()
 * faults without FAULT_FLAG_INTERRUPTIBLE, and never to store in a shared mapping. So does a
 * read of user memory in the kernel: the two look the same.
 */
static vm_fault_t fb_fault_locked(struct fb_inode *fi, const struct vm_fault *vmf)
{
	if (!fb_vma_is_dax(FB_SB(fi->vfs_inode.i_sb), vmf->vma) || !(vmf->vma->vm_flags & VM_LOCKED) ||
	    !fb_claim_locked_vma(fi, vmf->vma, vmf->pgoff))
		return 0;
	return vmf->flags & (FAULT_FLAG_INTERRUPTIBLE | FAULT_FLAG_WRITE) ? 0 : VM_FAULT_SIGBUS;
}

static vm_fault_t fb_fault(struct vm_fault *vmf)
{
	struct fb_inode *fi = fb_vma_inode(vmf->vma);
	/* The lower fault may let mmap_lock go, and then the mapping, and the inode with it. */
	struct file *file = get_file(vmf->vma->vm_file);
	struct fb_patience patience = {};
	vm_fault_t ret = fb_fault_locked(fi, vmf);

	while (!ret) {
		if ((vmf->flags & FAULT_FLAG_WRITE) && (vmf->vma->vm_flags & VM_SHARED) &&
		    fb_page_find(fi, vmf->pgoff))
			ret = fb_store_dax(fi, vmf, false);
		if (!ret)
			ret = fb_fault_dax(fi, vmf);
		if (!ret)
			ret = fb_fault_wants_dax(fi, vmf) ? fb_fault_sync(fi, vmf, &patience)
							  : fb_fault_lower(fi, vmf);
	}
	fput(file);
	return ret;
}

static vm_fault_t fb_map_pages(struct vm_fault *vmf, pgoff_t start, pgoff_t end)
{
	struct fb_inode *fi = fb_vma_inode(vmf->vma);
	vm_fault_t ret = 0;
	unsigned long index;

	if ((vmf->vma->vm_flags & VM_SYNC) || !down_read_trylock(&fi->io_sem))
		return 0;
	if (!fb_page_under_pmd(fi, vmf, &index) && !fb_belongs_in_pmem_nowait(fi, start, end))
		ret = fb_lower_vm_ops(vmf->vma)->map_pages(vmf, start, end);
	up_read(&fi->io_sem);
	return ret;
}

/* A volatile page becomes writable; its range is locked, shared. */
static vm_fault_t fb_folio_mkwrite(struct fb_inode *fi, struct vm_fault *vmf)
{
	vm_fault_t ret = fb_lower_vm_ops(vmf->vma)->page_mkwrite(vmf);

	if (!(ret & (VM_FAULT_ERROR | VM_FAULT_NOPAGE)))
		fb_stored_below(fi, vmf);
	return ret;
}

static vm_fault_t fb_page_mkwrite(struct vm_fault *vmf)
{
	struct fb_inode *fi = fb_vma_inode(vmf->vma);
	vm_fault_t ret = VM_FAULT_NOPAGE;
	struct fb_range range;

	sb_start_pagefault(fi->vfs_inode.i_sb);
	if (fb_lock_page_range(fi, &range, vmf->pgoff)) {
		ret = VM_FAULT_SIGBUS;
		goto out;
	}
	if (fb_page_find(fi, vmf->pgoff)) {
		/* It has moved: look again. */
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

static vm_fault_t fb_pfn_mkwrite(struct vm_fault *vmf)
{
	return fb_store_dax(fb_vma_inode(vmf->vma), vmf, true) ?: VM_FAULT_NOPAGE;
}

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
	int err = file_inode(file)->i_fop->mmap(file, vma);

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

static int fb_vma_file_fsync(struct file *file, loff_t start, loff_t end, int datasync)
{
	struct inode *inode = d_inode(backing_file_user_path(file)->dentry);
	struct file *lower = fb_open_below(FB_I(inode));
	int err, lower_err;

	if (IS_ERR(lower))
		return PTR_ERR(lower);
	err = fb_sync_inode(FB_I(inode), file, lower, start, end, datasync);
	fput(lower);
	lower_err = file_check_and_advance_wb_err(file);
	return err ?: lower_err;
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
	struct backing_file_ctx ctx = { .cred = current_cred(), .user_file = file, .accessed = NULL };
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
	backing = fb_open_lower(file, file_inode(file));
	if (IS_ERR(backing))
		return PTR_ERR(backing);
	replace_fops(backing, fops_get(&fb_vma_file_operations));
	/* The lower file system need not know MAP_SYNC: we see to it. */
	vm_flags_clear(vma, VM_SYNC);
	err = backing_file_mmap(backing, vma, &ctx);
	fput(backing);
	if (err)
		return err;
	if (sync) {
		vm_flags_set(vma, VM_SYNC);
		set_bit(FB_DAX_MAPPED, &fi->flags);
		fb_upgrade_mapped(fi, vma->vm_pgoff, vma->vm_pgoff + vma_pages(vma) - 1);
	}
	return 0;
}
