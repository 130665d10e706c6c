/* SPDX-License-Identifier: GPL-2.0-only */
/* The last page of a file, behind its end: zero.c */
#ifndef FOREBAY_PAGE_ZERO_H
#define FOREBAY_PAGE_ZERO_H

#include "../forebay.h"

void fb_zero_tail(struct fb_inode *fi, loff_t size);
void fb_zero_last(struct fb_inode *fi);

#endif
