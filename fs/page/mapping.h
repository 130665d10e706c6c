/* SPDX-License-Identifier: GPL-2.0-only */
/* How the kernel sees a DAX page's struct page: mapping.c */
#ifndef FOREBAY_PAGE_MAPPING_H
#define FOREBAY_PAGE_MAPPING_H

#include "../forebay.h"

void fb_mapping_init_once(struct address_space *mapping);
void fb_page_name(struct fb_inode *fi, const struct fb_page *page, pgoff_t index);
void fb_page_gone(struct fb_sb *fsb, const struct fb_page *page);
void fb_page_unname(struct fb_sb *fsb, const struct fb_page *page);

#endif
