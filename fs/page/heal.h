/* SPDX-License-Identifier: GPL-2.0-only */
/* File records whose line the device has lost: heal.c */
#ifndef FOREBAY_PAGE_HEAL_H
#define FOREBAY_PAGE_HEAL_H

#include "../forebay.h"

enum ps_file_state fb_record_state(const struct fb_inode *fi);
void fb_record_heal(struct fb_inode *fi, u64 size);

/* What the record says of the file's size. */
static inline u64 fb_record_size_word(const struct fb_inode *fi)
{
	return fi->record_size | (test_bit(FB_SIZE_EXACT, &fi->flags) ? PS_SIZE_EXACT : 0);
}

#endif
