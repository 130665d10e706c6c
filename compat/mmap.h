/* SPDX-License-Identifier: GPL-2.0-only */
/* mmap() of a file by another one's operations. */
#ifndef FOREBAY_COMPAT_MMAP_H
#define FOREBAY_COMPAT_MMAP_H

#include <linux/fs.h>
#include <linux/mm.h>
#include <linux/pagemap.h>

#include "compat.h"

/*
 * Maps @file as @ops do, which need not be its own. Since Linux 6.17 most file systems have
 * ->mmap_prepare() in place of ->mmap(): it fills in a description of the mapping.
 */
static inline int compat_mmap(const struct file_operations *ops, struct file *file,
			      struct vm_area_struct *vma)
{
#ifdef COMPAT_HAS_MMAP_PREPARE
	struct vm_area_desc desc;
	int err;

	if (ops->mmap_prepare) {
		compat_set_desc_from_vma(&desc, file, vma);
		err = ops->mmap_prepare(&desc);
		return err ?: __compat_vma_mmap(&desc, vma);
	}
#endif
	return ops->mmap(file, vma);
}

/*
 * Keeps the kernel from making huge pages of what the page cache has of a file. Called before a mapping can
 * have a DAX page.
 *
 * Since Linux 7.3 a program (MADV_COLLAPSE), or the kernel by itself (khugepaged), may have that done to any
 * file whose page cache may have pages of that size. The page tables of all the file's mappings are freed for
 * that, with the entries of DAX pages in them, and an entry for the huge page takes their place. Older
 * kernels leave out files that are open for writing, as a lower file with pages in PMem is; and Debian's
 * leave out all files.
 *
 * The kernel changes other bits of the flags meanwhile, each by an atomic operation.
 */
static inline void compat_no_huge_pages(struct address_space *mapping)
{
#ifdef COMPAT_HAS_PMD_FOLIO_SUPPORT
	const unsigned long mask = AS_FOLIO_ORDER_MAX_MASK, max = PMD_ORDER - 1;
	unsigned long flags = READ_ONCE(mapping->flags);

	do {
		if ((flags & mask) >> AS_FOLIO_ORDER_MAX <= max)
			return;
	} while (!try_cmpxchg(&mapping->flags, &flags, (flags & ~mask) | max << AS_FOLIO_ORDER_MAX));
#endif
}

#endif
