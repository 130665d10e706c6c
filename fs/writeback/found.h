/* SPDX-License-Identifier: GPL-2.0-only */
/* The table of files whose pages mount has found: found.c */
#ifndef FOREBAY_WRITEBACK_FOUND_H
#define FOREBAY_WRITEBACK_FOUND_H

#include <linux/hashtable.h>

#include "../forebay.h"

struct fb_found {
	struct hlist_node node;
	struct list_head pages;		/* fb_page->lru; fb_page->index is set */
	unsigned long nr_pages;
	bool unplaced;
	bool taken;			/* an inode, or replay, is taking the pages */
	u32 file;
	struct ps_file_info info;
};

struct fb_recovered {
	spinlock_t lock;		/* by_handle, and in it: unplaced, taken */
	atomic_t nr;
	DECLARE_HASHTABLE(by_handle, 10);
};

void fb_found_add(struct fb_recovered *rec, struct fb_found *found);
struct fb_found *fb_found_look_up(struct fb_recovered *rec, const struct ps_handle *handle);
void fb_found_remove(struct fb_recovered *rec, struct fb_found *found);
struct fb_found *fb_found_take(struct fb_recovered *rec, const struct ps_handle *handle);
void fb_set_unplaced(struct fb_sb *fsb, struct fb_found *found, bool unplaced);
void fb_found_placed(struct fb_sb *fsb, struct fb_found *found, bool placed);
void fb_found_give_back(struct fb_sb *fsb, struct fb_found *found);
void fb_found_free(struct fb_sb *fsb, struct fb_found *found);

#endif
