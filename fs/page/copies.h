/* SPDX-License-Identifier: GPL-2.0-only */
/* Copies between memory and PMem: copies.c */
#ifndef FOREBAY_PAGE_COPIES_H
#define FOREBAY_PAGE_COPIES_H

#include "../forebay.h"

void fb_copied(struct fb_sb *fsb, enum fb_counter which, size_t bytes);

#endif
