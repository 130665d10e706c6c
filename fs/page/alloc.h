/* SPDX-License-Identifier: GPL-2.0-only */
/* Free pages and free file records: alloc.c */
#ifndef FOREBAY_PAGE_ALLOC_H
#define FOREBAY_PAGE_ALLOC_H

#include "../forebay.h"

bool fb_cache_low(struct fb_sb *fsb);
unsigned long fb_cache_room(const struct fb_sb *fsb);
void fb_cache_want_room(struct fb_sb *fsb, unsigned long pages);
void fb_writeback_kick(struct fb_sb *fsb);
unsigned long fb_age_step(unsigned int age);
void fb_age_begin(struct fb_inode *fi);
void fb_flush_orphans_soon(struct fb_sb *fsb);
struct fb_page *fb_page_alloc(struct fb_inode *fi);
void fb_page_put_free(struct fb_sb *fsb, struct fb_page *page);
bool fb_take_busy(struct fb_sb *fsb);
void fb_pages_free(struct fb_sb *fsb, struct list_head *pages);
bool fb_records_low(struct fb_sb *fsb);
u32 fb_file_record_alloc(struct fb_sb *fsb);
void fb_file_record_free(struct fb_sb *fsb, u32 file);
int fb_wait_for_space(struct fb_inode *fi, int err, unsigned long *deadline);

/*
 * One in @of of the cache's pages, rounded up. Resident ones don't count: they can't be made free. Inline, as
 * each page that is taken asks for two parts, under a spinlock: the divisors are constants.
 */
static inline unsigned long fb_cache_part(const struct fb_sb *fsb, unsigned int of)
{
	return DIV_ROUND_UP(fsb->ps.nr_pages - READ_ONCE(fsb->nr_resident), of);
}

#endif
