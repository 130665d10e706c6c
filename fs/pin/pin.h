/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Ranges of a file that belong in PMem, and whose they are: pin.c
 *
 * Floor 3, pin: which ranges belong in PMem, by a user's call or by a mapping, and which user is charged.
 * May use: page and what is below. Used by: sync, writeback, vfs.
 */
#ifndef FOREBAY_PIN_PIN_H
#define FOREBAY_PIN_PIN_H

#include <linux/uidgid.h>

#include "../forebay.h"

/* The last page of any file. */
#define FB_LAST_PAGE	((pgoff_t)(LLONG_MAX >> PAGE_SHIFT))

/* Whose claims: the opener's, or with @file NULL the file's own; locks have a user. */
struct fb_claimant {
	enum fb_claim_kind kind;
	const struct file *file;
	kuid_t uid;			/* the user that is charged */
	bool privileged;		/* and isn't held to a user's limit */
};

bool fb_is_pinned(struct fb_inode *fi, pgoff_t index);
bool fb_belongs_in_pmem(struct fb_inode *fi, pgoff_t first, pgoff_t last);
bool fb_belongs_in_pmem_nowait(struct fb_inode *fi, pgoff_t first, pgoff_t last);
bool fb_claimed_next(struct fb_inode *fi, enum fb_claim_kind kind, pgoff_t *first, pgoff_t *last);
void fb_claims_refresh(struct fb_inode *fi);
void fb_claims_refresh_all(struct fb_sb *fsb);
int fb_claim(struct fb_inode *fi, const struct fb_claimant *owner, pgoff_t first, pgoff_t last, u64 *mark);
void fb_unclaim(struct fb_inode *fi, const struct fb_claimant *owner, pgoff_t first, pgoff_t last);
void fb_claim_undo(struct fb_inode *fi, u64 mark);
void fb_claims_closed(struct fb_inode *fi, const struct file *file);
void fb_claims_cut(struct fb_inode *fi, pgoff_t beyond);
int fb_claim_locked_vma(struct fb_inode *fi, struct vm_area_struct *vma, pgoff_t index);
bool fb_claim_locked_page(struct fb_inode *fi, pgoff_t index);
void fb_claims_end(struct fb_inode *fi);
void fb_claims_end_all(struct fb_sb *fsb);

static inline bool fb_has_claims(const struct fb_inode *fi)
{
	for (unsigned int i = 0; i < FB_NR_CLAIM_KINDS; i++) {
		if (!RB_EMPTY_ROOT(&fi->claims[i].rb_root))
			return true;
	}
	return false;
}

#endif
