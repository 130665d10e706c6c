/* SPDX-License-Identifier: GPL-2.0-only */
/* The cache device and what is free on it: cache.c */
#ifndef FOREBAY_CACHE_H
#define FOREBAY_CACHE_H

#include <linux/fs_context.h>
#include <linux/mm.h>
#include <linux/vmalloc.h>

#include "forebay.h"

int fb_cache_open(struct fb_sb *fsb, struct fs_context *fc, const char *path);
void fb_cache_close(struct fb_sb *fsb);
bool fb_cache_low(struct fb_sb *fsb);
struct fb_page *fb_page_alloc(struct fb_sb *fsb);
void fb_page_put_free(struct fb_sb *fsb, struct fb_page *page);
bool fb_take_held(struct fb_sb *fsb);
void fb_pages_drop(struct fb_sb *fsb, struct list_head *pages);
u32 fb_file_record_alloc(struct fb_sb *fsb);
void fb_file_record_free(struct fb_sb *fsb, u32 file);

/* The page's number in the cache device. */
static inline u32 fb_page_number(const struct fb_sb *fsb, const struct fb_page *page)
{
	return page - fsb->pages;
}

static inline void *fb_page_address(const struct fb_sb *fsb, const struct fb_page *page)
{
	return ps_page_addr(&fsb->ps, fb_page_number(fsb, page));
}

static inline unsigned long fb_page_pfn(const struct fb_sb *fsb, const struct fb_page *page)
{
	u8 *address = fb_page_address(fsb, page);

	return fsb->is_volatile ? vmalloc_to_pfn(address) : fsb->first_pfn + PHYS_PFN(address - fsb->ps.base);
}

/* Held by hardware, or by whoever took it with get_user_pages()? */
static inline bool fb_page_pinned(const struct fb_sb *fsb, const struct fb_page *page)
{
	return page_ref_count(pfn_to_page(fb_page_pfn(fsb, page))) > 1;
}

#endif
