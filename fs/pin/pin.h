/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Ranges of a file that belong in PMem, and whose they are: pin.c
 *
 * Floor 3, pin: which ranges belong in PMem, by a user's call or by a mapping, and which user is charged.
 * May use: page and what is below. Used by: sync, writeback, vfs.
 */
#ifndef FOREBAY_PIN_PIN_H
#define FOREBAY_PIN_PIN_H

#include <linux/mm.h>

#include "../forebay.h"
#include "claim.h"

int fb_claim(struct fb_inode *fi, const struct fb_claimant *owner, pgoff_t first, pgoff_t last, u64 *mark);
void fb_unclaim(struct fb_inode *fi, const struct fb_claimant *owner, pgoff_t first, pgoff_t last);
void fb_claim_undo(struct fb_inode *fi, u64 mark);
void fb_claims_closed(struct fb_inode *fi, const struct file *file);
void fb_claims_cut(struct fb_inode *fi, pgoff_t beyond);
int fb_claim_locked_vma(struct fb_inode *fi, struct vm_area_struct *vma, pgoff_t index);
void fb_claims_end(struct fb_inode *fi);
void fb_claims_end_all(struct fb_sb *fsb);

#endif
