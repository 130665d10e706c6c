/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * One page of the cache device.
 *
 * Floor 3, page: the DAX pages of a mount, where they are, and in what state; the file records, with the
 * sizes and times that PMem keeps for a file. Every change of a page's state is made here.
 * May use: core/, lower, names. Used by: pin, sync, writeback, vfs.
 */
#ifndef FOREBAY_PAGE_PAGE_H
#define FOREBAY_PAGE_PAGE_H

#include <linux/mm.h>
#include <linux/vmalloc.h>

#include "../../compat/dax.h"
#include "../forebay.h"

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

/* A page is busy while hardware holds it, or a task or pipe that took it with get_user_pages(). */
static inline bool fb_page_is_busy(const struct fb_sb *fsb, const struct fb_page *page)
{
	return compat_dax_is_busy(pfn_to_page(fb_page_pfn(fsb, page)), !fsb->is_volatile);
}

#endif
