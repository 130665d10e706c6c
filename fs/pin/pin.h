/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Ranges of a file that belong in PMem, and whose they are: pin.c
 *
 * Floor 4, pin: which ranges belong in PMem, by a user's call or by a mapping, and which user is charged.
 * May use: page and what is below. Used by: sync, writeback, vfs.
 */
#ifndef FOREBAY_PIN_PIN_H
#define FOREBAY_PIN_PIN_H

#include <linux/mm.h>

#include "../forebay.h"
#include "tree.h"

int fb_pin_range(struct fb_inode *fi, const struct fb_pin_owner *owner, pgoff_t first, pgoff_t last,
		 u64 *mark);
void fb_unpin_range(struct fb_inode *fi, const struct fb_pin_owner *owner, pgoff_t first, pgoff_t last);
void fb_pin_undo(struct fb_inode *fi, u64 mark);
void fb_pins_closed(struct fb_inode *fi, const struct file *file);
void fb_pins_truncate(struct fb_inode *fi, pgoff_t beyond);
int fb_pin_locked_vma(struct fb_inode *fi, struct vm_area_struct *vma, pgoff_t index);
void fb_pins_end(struct fb_inode *fi);
void fb_pins_end_all(struct fb_sb *fsb);

#endif
