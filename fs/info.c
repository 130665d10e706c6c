// SPDX-License-Identifier: GPL-2.0-only
/*
 * What a user can see of a range of a file: how many pages are where and in what state, and which parts of it
 * are attached, pinned, mapped, locked.
 */
#include <linux/mm.h>
#include <linux/pagevec.h>

#include "cache.h"
#include "claim.h"
#include "mapped.h"
#include "page_index.h"
#include "upgrade.h"

/* The next stretch that has an attribute, as fb_mapped_next() has it. Of locks the mappings know best. */
static bool fb_attribute_next(struct fb_inode *fi, u32 bit, pgoff_t *first, pgoff_t *last)
{
	switch (bit) {
	case FOREBAY_RANGE_ATTACHED:
		return fb_claimed_next(fi, FB_ATTACHED, first, last);
	case FOREBAY_RANGE_PINNED:
		return fb_claimed_next(fi, FB_PINNED_RANGE, first, last);
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
		info->busy += fb_page_pinned(fsb, page);
		cond_resched();
	}
}

static void fb_count_volatile(struct fb_inode *fi, pgoff_t first, pgoff_t last, struct forebay_info *info)
{
	struct address_space *mapping = fi->lower->i_mapping;
	struct folio_batch batch;
	pgoff_t next = first, index;

	folio_batch_init(&batch);
	while (filemap_get_folios(mapping, &next, last, &batch)) {
		for (unsigned int i = 0; i < folio_batch_count(&batch); i++) {
			struct folio *folio = batch.folios[i];
			pgoff_t end = min(last, folio_next_index(folio) - 1);

			for (index = max(first, folio->index); index <= end; index++)
				info->volatile_pages += !fb_page_find(fi, index);
		}
		folio_batch_release(&batch);
		cond_resched();
	}
}

/**
 * fb_info() - look at a range of a file
 * @fi: the inode
 * @info: says which range; is filled in
 *
 * Return: 0 or -EINVAL.
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
	fb_claims_refresh(fi);
	down_read(&fi->io_sem);
	info->attributes = fb_attributes(fi, first, &last, info->flags & FOREBAY_INFO_RUN);
	fb_count_dax(fi, first, last, info);
	fb_count_volatile(fi, first, last, info);
	up_read(&fi->io_sem);
	info->length = min_t(u64, end, ((u64)last + 1) << PAGE_SHIFT) - info->offset;
	return 0;
}
