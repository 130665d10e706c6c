// SPDX-License-Identifier: GPL-2.0-only
/*
 * What a user can see of a range of a file: how many pages are where, in what state; and which parts are
 * attached, pinned, mapped, locked.
 *
 * A large range is looked at in pieces, so that no task waits for all of it. The answer is not of one
 * instant.
 */
#include <linux/mm.h>
#include <linux/sched/signal.h>
#include <linux/xarray.h>

#include "../page/index.h"
#include "../page/page.h"
#include "../pin/lock.h"
#include "../pin/tree.h"
#include "../pin/vma.h"
#include "info.h"

/* Pages looked at under one hold of io_sem. */
#define FB_INFO_LOOK	256

/* The next stretch that has an attribute, as fb_mapped_next() has it. Of locks the mappings know best. */
static bool fb_attribute_next(struct fb_inode *fi, u32 bit, pgoff_t *first, pgoff_t *last)
{
	switch (bit) {
	case FOREBAY_RANGE_ATTACHED:
		return fb_pin_next(fi, FB_ATTACHED, first, last);
	case FOREBAY_RANGE_PINNED:
		return fb_pin_next(fi, FB_PINNED_RANGE, first, last);
	default:
		return fb_mapped_next(fi, first, last, bit == FOREBAY_RANGE_LOCKED ? VM_LOCKED : 0, NULL);
	}
}

/*
 * The attributes of any page of a range; or with @run of its first page, and *@until becomes the last one
 * up to which they are the same.
 */
static u32 fb_attributes(struct fb_inode *fi, pgoff_t index, pgoff_t *until, bool run)
{
	pgoff_t first, last;
	u32 bits = 0;

	for (u32 bit = FOREBAY_RANGE_ATTACHED; bit <= FOREBAY_RANGE_LOCKED; bit <<= 1) {
		first = index;
		last = *until;
		if (!fb_attribute_next(fi, bit, &first, &last))
			continue;
		if (!run || first == index)
			bits |= bit;
		if (run)
			*until = first == index ? last : first - 1;
	}
	return bits;
}

static void fb_count_dax(struct fb_inode *fi, pgoff_t first, pgoff_t last, struct forebay_info *info)
{
	struct fb_sb *fsb = FB_SB(fi->vfs_inode.i_sb);
	struct fb_page *page;
	unsigned long index;
	u32 status;

	xa_for_each_range(&fi->index, index, page, first, last) {
		status = READ_ONCE(page->status);
		info->clean += (status & FB_STATUS_STATE) == FB_STATUS_CLEAN;
		info->out_of_sync += (status & FB_STATUS_STATE) == FB_STATUS_OUT_OF_SYNC;
		info->dirty += !!(status & FB_STATUS_DIRTY);
		info->pinned += page->resident;
		info->busy += fb_page_is_busy(fsb, page);
		info->lost += page->bad;
	}
}

/*
 * Takes no reference on a folio: a task that moves the page would take it for hardware's. The folios may
 * change while they are counted.
 */
static void fb_count_volatile(struct fb_inode *fi, pgoff_t first, pgoff_t last, struct forebay_info *info)
{
	struct xarray *folios = &fi->lower->i_mapping->i_pages;
	unsigned long end, index = first;
	void *folio;

	while (index <= last && (folio = xa_find(folios, &index, last, XA_PRESENT))) {
		end = index;
		if (!xa_is_value(folio))	/* else what the kernel remembers of one that is gone */
			end = min(last, index | ((1UL << xa_get_order(folios, index)) - 1));
		for (; index <= end; index++)
			info->volatile_pages += !xa_is_value(folio) && !fb_page_find(fi, index);
	}
}

/* The first page from @first on that may count; ULONG_MAX if there is none. */
static pgoff_t fb_next_present(struct fb_inode *fi, pgoff_t first, pgoff_t last, bool volatile_too)
{
	unsigned long in_pmem = first, in_memory = first;

	if (!fb_page_next(fi, &in_pmem, last))
		in_pmem = ULONG_MAX;
	if (!volatile_too || !xa_find(&fi->lower->i_mapping->i_pages, &in_memory, last, XA_PRESENT))
		in_memory = ULONG_MAX;
	return min(in_pmem, in_memory);
}

/**
 * fb_count_pages() - count the pages of a range by state
 * @fi: the inode; takes io_sem, again for every FB_INFO_LOOK pages
 * @first: first page
 * @last: last page
 * @volatile_too: count those of the lower page cache as well
 * @info: what is counted is added to it; pages may move while others are counted
 *
 * Return: 0; -EINTR if the task is killed.
 */
int fb_count_pages(struct fb_inode *fi, pgoff_t first, pgoff_t last, bool volatile_too,
		   struct forebay_info *info)
{
	pgoff_t end;

	for (;;) {
		if (fatal_signal_pending(current) || down_read_killable(&fi->io_sem))
			return -EINTR;
		first = fb_next_present(fi, first, last, volatile_too);
		if (first > last)
			break;
		end = last - first < FB_INFO_LOOK ? last : first + FB_INFO_LOOK - 1;
		fb_count_dax(fi, first, end, info);
		if (volatile_too)
			fb_count_volatile(fi, first, end, info);
		if (end == last)
			break;
		first = end + 1;
		up_read(&fi->io_sem);
		cond_resched();
	}
	up_read(&fi->io_sem);
	return 0;
}

/**
 * fb_info() - look at a range of a file
 * @fi: the inode
 * @info: says which range; is filled in
 *
 * Return: 0; -EINVAL; -EINTR if the task is killed.
 */
int fb_info(struct fb_inode *fi, struct forebay_info *info)
{
	loff_t size = i_size_read(&fi->vfs_inode);
	pgoff_t first = info->offset >> PAGE_SHIFT, last;
	u64 end;

	if ((info->flags & ~FOREBAY_INFO_RUN) || info->offset > LLONG_MAX ||
	    check_add_overflow(info->offset, info->length, &end) || end > LLONG_MAX)
		return -EINVAL;
	if (!info->length)
		end = size;
	*info = (struct forebay_info) { .size = info->size, .flags = info->flags,
					.offset = (u64)first << PAGE_SHIFT };
	if (end <= info->offset)
		return 0;
	last = (end - 1) >> PAGE_SHIFT;
	fb_pins_refresh(fi);
	if (down_read_killable(&fi->io_sem))
		return -EINTR;
	info->attributes = fb_attributes(fi, first, &last, info->flags & FOREBAY_INFO_RUN);
	up_read(&fi->io_sem);
	if (fb_count_pages(fi, first, last, true, info))
		return -EINTR;
	info->length = min_t(u64, end, ((u64)last + 1) << PAGE_SHIFT) - info->offset;
	return 0;
}
