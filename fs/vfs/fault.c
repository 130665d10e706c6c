// SPDX-License-Identifier: GPL-2.0-only
/*
 * Faults of mappings: a page is mapped. A DAX page is inserted here (compat/dax.h has how), anything else is
 * the lower fault. mkwrite.c makes a page writable.
 *
 * A fault that finds a DAX page maps it under io_sem, shared. Any other fault locks the page's range,
 * shared (range_lock.c), looks again, and goes below. A task that moves the page locks the range
 * exclusively, and then the folio, to wait for an entry that is about to be set; then it unmaps. So no
 * entry for a page that moved survives:
 *   - fault: looks up, and returns the lower folio locked, with the range locked all the while;
 *   - map_pages (fault-around, under RCU) maps lower folios only if io_sem can be had
 *     at once and no DAX page lies in the range; pages that enter the index are unmapped once more under
 *     io_sem;
 *   - page_mkwrite and pfn_mkwrite: mkwrite.c.
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
 * handler never maps a lower folio there. It moves the page to PMem first. What is
 * needed to find the page again is durable when the page is mapped.
 */
#include <linux/file.h>
#include <linux/mm.h>

#include "../../compat/dax.h"
#include "../page/index.h"
#include "../page/page.h"
#include "../page/record.h"
#include "../pin/belong.h"
#include "../pin/pin.h"
#include "../pin/tree.h"
#include "../pin/vma.h"
#include "../sync/promote.h"
#include "fault.h"
#include "mkwrite.h"

/* How often a fault that reads waits for a busy page. Then it maps that page where it is. */
#define FB_READ_TRIES	25

/*
 * Maps a DAX page, not writable: the first store comes back as pfn_mkwrite. An emulated device's pages
 * are mapped by number alone in shared mappings: they are no device's, and the kernel would take them for the
 * lower file's. So no task can take a reference on one through such a mapping (get_user_pages()).
 */
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
		compat_dax_get(vmf->page);
		lock_page(vmf->page);
		return VM_FAULT_LOCKED;
	}
	return compat_map_dax(vmf, fb_page_pfn(fsb, page), !fsb->is_volatile);
}

/* After fb_promote_page() has failed; 0: try again. */
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
	struct fb_sb *fsb = FB_SB(fi->vfs_inode.i_sb);
	vm_fault_t ret = fb_lower_vm_ops(vmf->vma)->fault(vmf);
	struct fb_page *page;
	unsigned long index;

	if (!(ret & VM_FAULT_LOCKED) || !PageCompound(vmf->page))
		return ret;
	if (compat_map_alone(vmf, &ret))
		return ret;
	down_read(&fi->io_sem);
	page = fb_page_under_pmd(fi, vmf, &index);
	if (page)
		compat_map_dax_near(vmf, vmf->address + (index - vmf->pgoff) * PAGE_SIZE,
				    fb_page_pfn(fsb, page), !fsb->is_volatile);
	up_read(&fi->io_sem);
	return ret;
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

/* Promotes the page, whatever stands in the way; 0 to look again. */
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
	err = fb_promote_page(fi, vmf->pgoff);
	put_page(vmf->page);
	vmf->page = NULL;
	if (!err)
		return 0;
	/* Without MAP_SYNC no program relies on it; nor in an immutable file, or one without a name. */
	if (!(vmf->vma->vm_flags & VM_SYNC) || err == -EPERM || fb_is_gone_for_good(fi))
		return fb_fault_lower(fi, vmf);
	/*
	 * It can be read where it is; a store comes back here (fb_page_mkwrite()). If the file system below
	 * has become read-only (-EROFS), no page that isn't in PMem gets there.
	 */
	if (!(vmf->flags & FAULT_FLAG_WRITE) &&
	    (err == -EROFS || (err == -EBUSY && patience->busy == FB_READ_TRIES)))
		return fb_fault_lower(fi, vmf);
	return fb_fault_wait(fi, err, patience);
}

/* True in a MAP_SYNC mapping, and for a page that another such mapping, an attached range or a pin has. */
static bool fb_fault_wants_dax(struct fb_inode *fi, const struct vm_fault *vmf)
{
	const struct vm_area_struct *vma = vmf->vma;
	bool wants;

	if (vma->vm_flags & VM_SYNC)
		return true;
	if (!(vma->vm_flags & VM_MAYSHARE) ||
	    (!fb_has_pins(fi) && !test_bit(FB_DAX_MAPPED, &fi->flags)))
		return false;
	down_read(&fi->io_sem);
	wants = fb_belongs_in_pmem(fi, vmf->pgoff, vmf->pgoff);
	up_read(&fi->io_sem);
	return wants;
}

/*
 * Accounts a page of a mapping that mlock() has locked. If that is too much, mlock() itself gets an error,
 * which it turns into ENOMEM. For other tasks the page is there, and can be reclaimed. mlock() faults
 * without FAULT_FLAG_INTERRUPTIBLE, never to store in a shared mapping, and never as for another task
 * (ptrace(), process_vm_readv()). A read of the task's own memory in the kernel looks the same as mlock().
 */
static vm_fault_t fb_fault_locked(struct fb_inode *fi, const struct vm_fault *vmf)
{
	const unsigned int not_mlock = FAULT_FLAG_INTERRUPTIBLE | FAULT_FLAG_WRITE | FAULT_FLAG_REMOTE;

	if (!fb_vma_is_dax(FB_SB(fi->vfs_inode.i_sb), vmf->vma) || !(vmf->vma->vm_flags & VM_LOCKED) ||
	    !fb_pin_locked_vma(fi, vmf->vma, vmf->pgoff))
		return 0;
	return vmf->flags & not_mlock ? 0 : VM_FAULT_SIGBUS;
}

/**
 * fb_fault() - a page of a mapping is missing
 * @vmf: the fault
 *
 * Return: VM_FAULT_*, as of any fault handler.
 */
vm_fault_t fb_fault(struct vm_fault *vmf)
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

/**
 * fb_map_pages() - map lower folios around a fault that the page cache has
 * @vmf: the fault
 * @start: first page
 * @end: last page
 *
 * Context: under RCU, doesn't sleep.
 * Return: VM_FAULT_NOPAGE if the page is mapped now; 0: fb_fault() follows.
 */
vm_fault_t fb_map_pages(struct vm_fault *vmf, pgoff_t start, pgoff_t end)
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
