/* SPDX-License-Identifier: GPL-2.0-only */
/* Asks the mappings of a file: mapped.c */
#ifndef FOREBAY_MAPPED_H
#define FOREBAY_MAPPED_H

#include <linux/uidgid.h>

#include "forebay.h"

bool fb_mapped_next(struct fb_inode *fi, pgoff_t *first, pgoff_t *last, unsigned long flags,
		    const kuid_t *uid);
bool fb_locker_next(struct fb_inode *fi, pgoff_t index, kuid_t *uid);
bool fb_belongs_in_pmem(struct fb_inode *fi, pgoff_t first, pgoff_t last);
bool fb_belongs_in_pmem_nowait(struct fb_inode *fi, pgoff_t first, pgoff_t last);

/* mmap.c */
bool fb_vma_is_dax(const struct vm_area_struct *vma);
kuid_t fb_vma_user(const struct vm_area_struct *vma);

#endif
