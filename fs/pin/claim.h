/* SPDX-License-Identifier: GPL-2.0-only */
/* Which ranges of a file are claimed, and for whom: claim.c */
#ifndef FOREBAY_PIN_CLAIM_H
#define FOREBAY_PIN_CLAIM_H

#include <linux/list.h>
#include <linux/rbtree.h>
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

static inline bool fb_has_claims(const struct fb_inode *fi)
{
	for (unsigned int i = 0; i < FB_NR_CLAIM_KINDS; i++) {
		if (!RB_EMPTY_ROOT(&fi->claims[i].rb_root))
			return true;
	}
	return false;
}

/* What follows is of this floor: for pin.c and lock.c. */

/* Claims, or pages, looked at under one hold of io_sem. */
#define FB_CLAIM_LOOK	256

struct fb_claim {
	struct rb_node rb;
	unsigned long first, last, subtree_last;
	struct fb_claimant owner;
	struct fb_account *account;	/* NULL: costs nothing */
	u64 mark;			/* of the call that made it */
	struct list_head list;
};

/* Which claims are to be given up. */
struct fb_claim_filter {
	bool (*unwanted)(const struct fb_claim *claim, const void *arg);
	const void *arg;
};

struct fb_account;
struct fb_claim *fb_claims_iter_first(struct rb_root_cached *claims, unsigned long first, unsigned long last);
struct fb_claim *fb_claims_iter_next(struct fb_claim *claim, unsigned long first, unsigned long last);
void fb_claims_insert(struct fb_claim *claim, struct rb_root_cached *claims);
void fb_claims_remove(struct fb_claim *claim, struct rb_root_cached *claims);
bool fb_has_claimed(struct fb_inode *fi, const struct fb_claimant *owner, pgoff_t index);
int __fb_claim(struct fb_inode *fi, const struct fb_claimant *owner, pgoff_t first, pgoff_t *last, u64 mark);
bool fb_claims_apply_some(struct fb_inode *fi, unsigned long *first, pgoff_t last, bool whole);
void fb_claim_free(struct fb_inode *fi, struct fb_claim *claim);
void fb_claim_shrink(struct fb_inode *fi, struct fb_claim *claim, pgoff_t first, pgoff_t last);
bool fb_claims_hold_inode(struct fb_inode *fi);
bool fb_claim_is_of_owner(const struct fb_claim *claim, const void *owner);
bool fb_claims_give_up(struct fb_inode *fi, enum fb_claim_kind kind, pgoff_t *from, pgoff_t first,
		       pgoff_t last, const struct fb_claim_filter *filter);

#endif
