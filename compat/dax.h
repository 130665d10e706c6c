/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * DAX pages in page tables.
 *
 * Since Linux 6.15 they are like other pages. A page table entry holds a reference and is counted in the
 * page. A page that is in no page table and held by no task has no reference. Before 6.15, an entry was
 * marked as a device's and held nothing, and a free page had one reference.
 *
 * A page of ordinary memory (an emulated device) has a special entry in all kernels.
 */
#ifndef FOREBAY_COMPAT_DAX_H
#define FOREBAY_COMPAT_DAX_H

#include <linux/memremap.h>
#include <linux/mm.h>
#include <linux/pagemap.h>

#include "compat.h"
#include "pfn.h"

/*
 * True if hardware holds a DAX page, or a task that took it with get_user_pages(). @is_device: it is a
 * device's page; otherwise ordinary memory. The answer may be wrong for a page that is being mapped or
 * unmapped meanwhile.
 *
 * In memory that mlock() has locked, newer kernels may hold a page for some time after it was unmapped. It
 * is in a batch of the processor that unmapped it then.
 */
static inline bool compat_dax_is_busy(struct page *page, bool is_device)
{
#ifdef COMPAT_HAS_COUNTED_DAX
	if (is_device)
		return page_ref_count(page) > folio_mapcount(page_folio(page));
#endif
	return page_ref_count(page) > 1;
}

/* True if a device's DAX page has references: of tasks, hardware and, in newer kernels, page tables. */
static inline bool compat_dax_has_references(struct page *page)
{
#ifdef COMPAT_HAS_COUNTED_DAX
	return page_ref_count(page) > 0;
#else
	return page_ref_count(page) > 1;
#endif
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

static inline vm_fault_t compat_insert_writable(struct vm_fault *vmf, unsigned long number, bool is_device)
{
	struct vm_area_struct vma = *vmf->vma;

	vma.vm_page_prot = vm_get_page_prot(vma.vm_flags);
	return compat_insert(&vma, vmf->address, number, is_device);
}

#ifdef COMPAT_HAS_COUNTED_DAX
/* The page has a reference while its entry takes one; without any it would be refused. */
static inline vm_fault_t compat_map_device_page(struct vm_fault *vmf, unsigned long number, bool write)
{
	struct page *page = pfn_to_page(number);
	vm_fault_t ret;

	compat_dax_get(page);
	ret = vmf_insert_page_mkwrite(vmf, page, write);
	put_page(page);
	return ret;
}
#endif

/*
 * Maps a page where @vmf says, not writable: the first store comes back as pfn_mkwrite. @is_device: it is a
 * device's DAX page; else ordinary memory.
 */
static inline vm_fault_t compat_map_dax(struct vm_fault *vmf, unsigned long number, bool is_device)
{
#ifdef COMPAT_HAS_COUNTED_DAX
	if (is_device)
		return compat_map_device_page(vmf, number, false);
#endif
	return compat_insert(vmf->vma, vmf->address, number, is_device);
}

/* The same, writable at once; no entry is there. */
static inline vm_fault_t compat_map_dax_writable(struct vm_fault *vmf, unsigned long number, bool is_device)
{
#ifdef COMPAT_HAS_COUNTED_DAX
	if (is_device)
		return compat_map_device_page(vmf, number, true);
#endif
	return compat_insert_writable(vmf, number, is_device);
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
	compat_insert(vmf->vma, address, number, is_device);
#endif
}

#endif
