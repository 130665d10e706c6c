/* SPDX-License-Identifier: GPL-2.0-only */
/* Whether a range belongs in PMem: belong.c */
#ifndef FOREBAY_PIN_BELONG_H
#define FOREBAY_PIN_BELONG_H

#include "../forebay.h"

bool fb_belongs_in_pmem(struct fb_inode *fi, pgoff_t first, pgoff_t last);
bool fb_belongs_in_pmem_nowait(struct fb_inode *fi, pgoff_t first, pgoff_t last);
bool fb_skip_stretch(struct fb_inode *fi, pgoff_t *at, pgoff_t last);

#endif
