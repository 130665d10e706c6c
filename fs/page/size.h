/* SPDX-License-Identifier: GPL-2.0-only */
/* The sizes of a file: size.c */
#ifndef FOREBAY_PAGE_SIZE_H
#define FOREBAY_PAGE_SIZE_H

#include "../forebay.h"

/* What the record said of the size before a truncation, and whether the truncation has changed that. */
struct fb_truncation {
	loff_t old_size;		/* fb_inode->record_size before */
	bool was_exact;			/* FB_SIZE_EXACT before */
	bool recorded;			/* the record says "exactly", because of this truncation */
};

void fb_size_grew(struct inode *inode, loff_t size);
void fb_size_is_below(struct fb_inode *fi, loff_t size);
void fb_note_size(struct fb_inode *fi, u64 word);
int fb_size_end_exact(struct fb_inode *fi, loff_t max);
void fb_truncate_begin(struct fb_inode *fi);
void fb_truncate_end(struct fb_inode *fi, loff_t size);
int fb_truncate_prepare(struct fb_inode *fi, loff_t size);
void fb_truncate_to_record(struct fb_inode *fi, struct fb_truncation *truncation, loff_t size);
void fb_truncate_failed(struct fb_inode *fi, const struct fb_truncation *truncation);
bool fb_truncate_is_later(struct fb_inode *fi, loff_t size);
void fb_size_truncated(struct fb_inode *fi, loff_t size);
int fb_flush_size(struct fb_inode *fi);
void fb_size_moved_below(struct fb_inode *fi, loff_t size);
int fb_size_to_record(struct fb_inode *fi, loff_t size);
void fb_size_synced_below(struct fb_inode *fi, const struct fb_size_seen *end);
void fb_size_record_gone(struct fb_inode *fi);

/* True if a truncation may not be durable below. Its record says so, or the next sync makes it durable. */
static inline bool fb_is_truncated(const struct fb_inode *fi)
{
	return test_bit(FB_SIZE_EXACT, &fi->flags) || test_bit(FB_TRUNCATED, &fi->flags);
}

/* The size now. A truncation that begins later, or has not ended, shows in truncate_seq (size.c). */
static inline struct fb_size_seen fb_see_size(const struct fb_inode *fi)
{
	struct fb_size_seen end;

	end.truncate_seq = READ_ONCE(fi->truncate_seq);
	smp_rmb();	/* pairs with fb_truncate_end(): a new truncate_seq comes with the new size */
	end.size = i_size_read(&fi->vfs_inode);
	return end;
}

#endif
