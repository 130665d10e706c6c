/* SPDX-License-Identifier: GPL-2.0-only */
/* What the mappings of a file say: vma.c */
#ifndef FOREBAY_PIN_VMA_H
#define FOREBAY_PIN_VMA_H

#include <linux/mm.h>
#include <linux/uidgid.h>

#include "../forebay.h"

/* The operations of mappings. All regular files of one lower file system share one set. */
struct fb_vm_ops {
	struct vm_operations_struct ops;
	const struct vm_operations_struct *lower;
};

bool fb_vma_is_dax(const struct fb_sb *fsb, const struct vm_area_struct *vma);
kuid_t fb_vma_user(const struct vm_area_struct *vma);
bool fb_mapped_next(struct fb_inode *fi, pgoff_t *first, pgoff_t *last, unsigned long flags,
		    const kuid_t *uid);
bool fb_locker_next(struct fb_inode *fi, pgoff_t index, kuid_t *uid);
bool fb_mapped_nowait(struct fb_inode *fi, pgoff_t first, pgoff_t last);

#endif
