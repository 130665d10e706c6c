/* SPDX-License-Identifier: GPL-2.0-only */
/* Locks of mlock() that the kernel doesn't report: lock.c */
#ifndef FOREBAY_PIN_LOCK_H
#define FOREBAY_PIN_LOCK_H

#include "../forebay.h"

void fb_pins_refresh(struct fb_inode *fi);
void fb_pins_refresh_all(struct fb_sb *fsb);
bool fb_pin_locked_page(struct fb_inode *fi, pgoff_t index);

#endif
