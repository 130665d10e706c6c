/* SPDX-License-Identifier: GPL-2.0-only */
/* Pages that a task or a device may store to by a reference: stored.c */
#ifndef FOREBAY_SYNC_STORED_H
#define FOREBAY_SYNC_STORED_H

#include <linux/mm.h>

#include "../forebay.h"

bool fb_was_stored(struct fb_inode *fi, pgoff_t index);
void fb_stored_below(struct fb_inode *fi, const struct vm_fault *vmf);
bool fb_lower_is_stored(struct fb_inode *fi, struct folio *folio, pgoff_t index, bool alone);
void fb_left_forget(struct fb_sb *fsb);
void fb_stored_leave(struct fb_inode *fi);
void fb_stored_come(struct fb_inode *fi);

#endif
