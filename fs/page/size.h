/* SPDX-License-Identifier: GPL-2.0-only */
/* The sizes of a file: size.c */
#ifndef FOREBAY_PAGE_SIZE_H
#define FOREBAY_PAGE_SIZE_H

#include "../forebay.h"

/* What PMem says about the size, while the lower file is cut. */
struct fb_cut {
	loff_t old;			/* fb_inode->record_size, before */
	bool was_exact;
	bool concerns;			/* the cache: its record says "exactly" */
};

void fb_size_grew(struct inode *inode, loff_t size);
void fb_size_is_below(struct fb_inode *fi, loff_t size);
void fb_note_size(struct fb_inode *fi, u64 word);
int fb_size_end_exact(struct fb_inode *fi, loff_t size);
void fb_cut_begin(struct fb_inode *fi);
void fb_cut_end(struct fb_inode *fi, loff_t size);
int fb_cut_previous(struct fb_inode *fi, struct fb_cut *cut, loff_t size);
void fb_cut_note(struct fb_inode *fi, struct fb_cut *cut, loff_t size);
void fb_cut_failed(struct fb_inode *fi, const struct fb_cut *cut);
void fb_size_cut(struct fb_inode *fi, loff_t size);
int fb_flush_size(struct fb_inode *fi);
void fb_size_moved_below(struct fb_inode *fi, loff_t size);
void fb_size_to_record(struct fb_inode *fi, loff_t size);
void fb_size_synced_below(struct fb_inode *fi, const struct fb_size_seen *end);
void fb_size_record_gone(struct fb_inode *fi);

/* The size now. A cut that begins later, or goes on, shows by fb_inode->cuts (size.c). */
static inline struct fb_size_seen fb_see_size(const struct fb_inode *fi)
{
	struct fb_size_seen end;

	end.cuts = READ_ONCE(fi->cuts);
	smp_rmb();	/* pairs with fb_cut_end(): the size is that before a cut only if cuts is, too */
	end.size = i_size_read(&fi->vfs_inode);
	return end;
}

#endif
