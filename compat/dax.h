/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * DAX pages in page tables.
 *
 * A page table entry holds a reference on a DAX page and is counted in the page, as for other pages. A DAX
 * page that is in no page table and held by no task has no reference since Linux 6.15. Before, it has one.
 *
 * Before 6.15 the kernel itself marks its entries of DAX pages as a device's. They hold nothing. In a mapping
 * of a file whose other pages are ordinary ones, reclaim warns of such an entry (MGLRU, get_pte_pfn()): it
 * leaves out the mappings of DAX files alone. So there are entries of that kind only in mappings that reclaim
 * leaves out for another reason, compat_maps_by_number().
 *
 * A page of ordinary memory (an emulated device) has a special entry in all kernels, except in private
 * mappings. Its mappings have VM_MIXEDMAP, so reclaim leaves them out.
 *
 * A private mapping may be written by another task: a debugger sets a breakpoint. The kernel would copy a
 * page that has only a number from that address of the other task's memory (__wp_page_copy_user()). So all
 * entries in private mappings are counted.
 */
#ifndef FOREBAY_COMPAT_DAX_H
#define FOREBAY_COMPAT_DAX_H

#include <linux/memremap.h>
#include <linux/mm.h>
#include <linux/pagemap.h>

#include "compat.h"
#include "pfn.h"

/* The references of a device's DAX page that is in no page table and held by no task. */
#ifdef COMPAT_HAS_COUNTED_DAX
#define COMPAT_DAX_IDLE	0
#else
#define COMPAT_DAX_IDLE	1
#endif

/*
 * True if hardware holds a DAX page, or a task that took it with get_user_pages(). @is_device: it is a
 * device's page; otherwise ordinary memory. The answer may be wrong for a page that is being mapped
 * meanwhile. A page that is being unmapped may be taken for busy: its entry is uncounted first, and gives
 * its reference back later. So references are read first.
 *
 * In memory that mlock() has locked, the kernel may hold a page whose entry was counted for some time after
 * it was unmapped. It is in a batch of the processor that unmapped it then.
 */
static inline bool compat_dax_is_busy(struct page *page, bool is_device)
{
	int references = page_ref_count(page);

	smp_rmb();	/* see above; the kernel changes both by atomic operations that are ordered */
	return references > (is_device ? COMPAT_DAX_IDLE : 1) + folio_mapcount(page_folio(page));
}

/* True if a device's DAX page has references: of tasks, hardware and page tables. */
static inline bool compat_dax_has_references(struct page *page)
{
	return page_ref_count(page) > COMPAT_DAX_IDLE;
}

/* Takes a reference, perhaps the first one, for put_page(). */
static inline void compat_dax_get(struct page *page)
{
#ifdef COMPAT_HAS_COUNTED_DAX
	page_ref_inc(page);
#else
	get_page(page);
#endif
}

/* What maps the device's page with this number, with a reference; NULL: none, or it is going away. */
static inline struct dev_pagemap *compat_get_pagemap(unsigned long number)
{
#ifdef COMPAT_HAS_PAGEMAP_HINT
	return get_dev_pagemap(number, NULL);
#else
	return get_dev_pagemap(number);
#endif
}

static inline void compat_set_page_index(struct page *page, pgoff_t index)
{
#ifdef COMPAT_HAS_FOLIO_INDEX
	page_folio(page)->index = index;
#else
	page->index = index;
#endif
}

/*
 * Maps a page by its number alone, with a special entry or one for devices. vmf_insert_mixed_mkwrite() isn't
 * exported. vmf_insert_mixed() takes the protection from the mapping, which is that of pages whose first
 * store must fault. So to map a page writable, it is given a copy of the mapping, which it only reads.
 */
#ifdef COMPAT_HAS_PFN_T
#define compat_insert(vma, address, number, is_device)	\
	vmf_insert_mixed(vma, address, __pfn_to_pfn_t(number, (is_device) ? PFN_DEV | PFN_MAP : PFN_SPECIAL))
#else
#define compat_insert(vma, address, number, is_device)	vmf_insert_mixed(vma, address, number)
#endif

/*
 * The protection of an entry that is inserted as writable. Such an entry is dirty, as the kernel's own are.
 * So the page counts as stored to in /proc/PID/pagemap (soft-dirty), which no processor sees to.
 */
static inline pgprot_t compat_writable(const struct vm_area_struct *vma)
{
	return pte_pgprot(pte_mkdirty(pfn_pte(0, vm_get_page_prot(vma->vm_flags))));
}

static inline vm_fault_t compat_insert_writable(struct vm_fault *vmf, unsigned long number, bool is_device)
{
	struct vm_area_struct vma = *vmf->vma;

	vma.vm_page_prot = compat_writable(&vma);
	return compat_insert(&vma, vmf->address, number, is_device);
}

/*
 * Has reclaim leave out the mappings of @file, a mapping's own. Called before such an entry is there: in
 * fb_mmap(); or while the mapping is locked, which reclaim leaves out, too, until it isn't locked any more.
 */
static inline void compat_no_recency(struct file *file)
{
#ifndef COMPAT_HAS_COUNTED_DAX
	if (READ_ONCE(file->f_mode) & FMODE_NOREUSE)
		return;
	spin_lock(&file->f_lock);
	file->f_mode |= FMODE_NOREUSE;
	spin_unlock(&file->f_lock);
#endif
}

#ifdef COMPAT_HAS_COUNTED_DAX
/* The page has a reference while its entry takes one; without any it would be refused. */
static inline vm_fault_t compat_map_page(struct vm_fault *vmf, unsigned long address, unsigned long number,
					 bool write)
{
	struct page *page = pfn_to_page(number);
	vm_fault_t ret;

	compat_dax_get(page);
	ret = vmf_insert_page_mkwrite(vmf, page, write);
	put_page(page);
	return ret;
}
#else
/*
 * True for a shared mapping whose recency is of no use: there are only DAX pages, or nothing is reclaimed.
 * Entries that hold nothing cost less. Of counted ones in locked memory, see compat_dax_is_busy(). And
 * without a page_mkwrite, the kernel would tell no file system of the first store to a counted page.
 */
static inline bool compat_maps_by_number(const struct vm_area_struct *vma)
{
	return (vma->vm_flags & VM_MAYSHARE) &&
	       ((vma->vm_flags & (VM_SYNC | VM_LOCKED)) || !vma->vm_ops->page_mkwrite);
}

/*
 * vm_insert_page() wants VM_MIXEDMAP for a page that a fault maps. The mapping itself must not have it:
 * mlock() would do nothing. So the function is given a copy, as in compat_insert_writable().
 */
static inline vm_fault_t compat_map_page(struct vm_fault *vmf, unsigned long address, unsigned long number,
					 bool write)
{
	struct vm_area_struct vma = *vmf->vma;
	int err;

	if (compat_maps_by_number(&vma)) {
		compat_no_recency(vma.vm_file);
		return write ? compat_insert_writable(vmf, number, true)
			     : compat_insert(vmf->vma, address, number, true);
	}
	if (write)
		vma.vm_page_prot = compat_writable(&vma);
	vm_flags_init(&vma, vma.vm_flags | VM_MIXEDMAP);
	err = vm_insert_page(&vma, address, pfn_to_page(number));
	if (err == -ENOMEM)
		return VM_FAULT_OOM;
	return err && err != -EBUSY ? VM_FAULT_SIGBUS : VM_FAULT_NOPAGE;
}
#endif

static inline int compat_drop_entry(pte_t *entry, unsigned long address, void *arg)
{
	struct vm_fault *vmf = arg;

	if (pte_same(ptep_get(entry), vmf->orig_pte))
		pte_clear(vmf->vma->vm_mm, address, entry);
	return 0;
}

/*
 * userfaultfd leaves a marker in place of an entry that has gone, or never was, to have the next store noted
 * (UFFD_FEATURE_WP_ASYNC). The kernel's functions that insert an entry take a marker for one that is there,
 * so the fault would come back for ever. Without the marker the page counts as stored to, at worst too early.
 */
static inline void compat_drop_marker(struct vm_fault *vmf)
{
	if (vmf->flags & FAULT_FLAG_ORIG_PTE_VALID && !pte_none(vmf->orig_pte) && !pte_present(vmf->orig_pte))
		apply_to_page_range(vmf->vma->vm_mm, vmf->address & PAGE_MASK, PAGE_SIZE, compat_drop_entry,
				    vmf);
}

/* Maps a page, not writable, at @address: that of @vmf, or before 6.15 another one of the mapping. */
static inline vm_fault_t compat_map_at(struct vm_fault *vmf, unsigned long address, unsigned long number,
				       bool is_device)
{
	if (is_device || !(vmf->vma->vm_flags & VM_MAYSHARE))
		return compat_map_page(vmf, address, number, false);
	return compat_insert(vmf->vma, address, number, false);
}

/*
 * Maps a page where @vmf says, not writable: the first store comes back as pfn_mkwrite. @is_device: it is a
 * device's DAX page; else ordinary memory.
 */
static inline vm_fault_t compat_map_dax(struct vm_fault *vmf, unsigned long number, bool is_device)
{
	compat_drop_marker(vmf);
	return compat_map_at(vmf, vmf->address, number, is_device);
}

/* The same, writable at once; no entry is there. */
static inline vm_fault_t compat_map_dax_writable(struct vm_fault *vmf, unsigned long number, bool is_device)
{
	compat_drop_marker(vmf);
	if (is_device)
		return compat_map_page(vmf, vmf->address, number, true);
	return compat_insert_writable(vmf, number, false);
}

/*
 * Called after the lower file system's fault has returned a large folio. Newer kernels would map all of it,
 * writable if a task stores. That would hide DAX pages among its pages, or allow stores that no page_mkwrite
 * tells of. So this maps the one page, not writable; a store then comes as page_mkwrite. A private copy is
 * of one page anyway. True if the fault is done, and @ret is what it returns.
 *
 * In older kernels only a huge entry maps more than one page. The caller prevents that by mapping a DAX
 * page that it would hide (compat_map_dax_near()).
 */
static inline bool compat_map_alone(struct vm_fault *vmf, vm_fault_t *ret)
{
#ifdef COMPAT_HAS_COUNTED_DAX
	vm_fault_t major = *ret & VM_FAULT_MAJOR;

	if (vmf->cow_page)
		return true;
	compat_drop_marker(vmf);
	*ret = vmf_insert_page_mkwrite(vmf, vmf->page, false) | major;
	unlock_page(vmf->page);
	put_page(vmf->page);
	vmf->page = NULL;
	return true;
#else
	return false;
#endif
}

/* Maps a device's or an emulated device's page at another @address of the mapping. */
static inline void compat_map_dax_near(struct vm_fault *vmf, unsigned long address, unsigned long number,
				       bool is_device)
{
#ifndef COMPAT_HAS_COUNTED_DAX
	compat_map_at(vmf, address, number, is_device);
#endif
}

#endif
