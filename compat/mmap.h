/* SPDX-License-Identifier: GPL-2.0-only */
/* mmap() of a file by another one's operations. */
#ifndef FOREBAY_COMPAT_MMAP_H
#define FOREBAY_COMPAT_MMAP_H

#include <linux/fs.h>
#include <linux/mm.h>

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

#endif
