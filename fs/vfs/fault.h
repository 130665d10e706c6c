/* SPDX-License-Identifier: GPL-2.0-only */
/* Faults of mappings: fault.c */
#ifndef FOREBAY_VFS_FAULT_H
#define FOREBAY_VFS_FAULT_H

#include <linux/mm.h>

#include "../forebay.h"

vm_fault_t fb_fault(struct vm_fault *vmf);
vm_fault_t fb_map_pages(struct vm_fault *vmf, pgoff_t start, pgoff_t end);

#endif
