/* SPDX-License-Identifier: GPL-2.0-only */
/* Pages that the device can't read: bad.c */
#ifndef FOREBAY_PAGE_BAD_H
#define FOREBAY_PAGE_BAD_H

#include "../../compat/pfn.h"
#include "../forebay.h"

long fb_bad_step(struct fb_sb *fsb, u64 done, u64 all, void **addr, compat_pfn_t *pfn);
void fb_bad_find(struct fb_sb *fsb);
void fb_bad_page(struct fb_inode *fi, struct fb_page *page);
bool fb_bad_copy(struct fb_sb *fsb, const struct fb_page *page, void *to);

#endif
