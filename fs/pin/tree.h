/* SPDX-License-Identifier: GPL-2.0-only */
/* Ranges of a file that belong in PMem, in trees: tree.c */
#ifndef FOREBAY_PIN_TREE_H
#define FOREBAY_PIN_TREE_H

#include <linux/list.h>
#include <linux/rbtree.h>
#include <linux/uidgid.h>

#include "../forebay.h"

/* The last page of any file. */
#define FB_LAST_PAGE	((pgoff_t)(LLONG_MAX >> PAGE_SHIFT))

/* Whose pins: the opener's, or with @file NULL the file's own; locks have a user. */
struct fb_pin_owner {
	enum fb_pin_kind kind;
	const struct file *file;
	kuid_t uid;			/* the user that is charged */
	bool privileged;		/* and isn't held to a user's limit */
};

bool fb_is_pinned(struct fb_inode *fi, pgoff_t index);
bool fb_pin_next(struct fb_inode *fi, enum fb_pin_kind kind, pgoff_t *first, pgoff_t *last);

static inline bool fb_has_pins(const struct fb_inode *fi)
{
	for (unsigned int i = 0; i < FB_NR_PIN_KINDS; i++) {
		if (!RB_EMPTY_ROOT(&fi->pins[i].rb_root))
			return true;
	}
	return false;
}

/* What follows is of this floor: for pin.c, lock.c and belong.c. */

/* Pins, or pages, looked at under one hold of io_sem. */
#define FB_PIN_LOOK	256

struct fb_pin {
	struct rb_node rb;
	unsigned long first, last, subtree_last;
	struct fb_pin_owner owner;
	struct fb_account *account;	/* NULL: costs nothing */
	u64 mark;			/* of the call that made it */
	struct list_head list;
};

/* Which pins are to be given up. */
struct fb_pin_filter {
	bool (*unwanted)(const struct fb_pin *pin, const void *arg);
	const void *arg;
};

struct fb_pin *fb_pins_iter_first(struct rb_root_cached *pins, unsigned long first, unsigned long last);
struct fb_pin *fb_pins_iter_next(struct fb_pin *pin, unsigned long first, unsigned long last);
void fb_pins_insert(struct fb_pin *pin, struct rb_root_cached *pins);
void fb_pins_remove(struct fb_pin *pin, struct rb_root_cached *pins);
bool fb_is_in_a_pin(struct fb_inode *fi, pgoff_t first, pgoff_t last);
bool fb_owner_has(struct fb_inode *fi, const struct fb_pin_owner *owner, pgoff_t index);
int __fb_pin_range(struct fb_inode *fi, const struct fb_pin_owner *owner, pgoff_t first, pgoff_t *last,
		   u64 mark);
bool fb_pins_apply_some(struct fb_inode *fi, unsigned long *first, pgoff_t last, bool whole);
void fb_pin_free(struct fb_inode *fi, struct fb_pin *pin);
void fb_pin_shrink(struct fb_inode *fi, struct fb_pin *pin, pgoff_t first, pgoff_t last);
bool fb_pins_hold_inode(struct fb_inode *fi);
bool fb_pin_is_of_owner(const struct fb_pin *pin, const void *owner);
bool fb_pins_give_up(struct fb_inode *fi, enum fb_pin_kind kind, pgoff_t *from, pgoff_t first,
		     pgoff_t last, const struct fb_pin_filter *filter);

#endif
