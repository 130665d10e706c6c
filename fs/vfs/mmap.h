/* SPDX-License-Identifier: GPL-2.0-only */
/* Mappings: mmap.c */
#ifndef FOREBAY_VFS_MMAP_H
#define FOREBAY_VFS_MMAP_H

#include "../forebay.h"

void fb_vm_ops_free(struct fb_sb *fsb);
int fb_mmap(struct file *file, struct vm_area_struct *vma);

#endif
