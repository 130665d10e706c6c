// SPDX-License-Identifier: GPL-2.0-only
/* What lies behind the end of a file, in its last page, becomes zeros. */
#include "index.h"
#include "page.h"
#include "zero.h"

/**
 * fb_zero_tail() - what lies behind the end of the file in its last page becomes zeros
 * @fi: the inode; io_sem is held, or no other task has it
 * @size: the end of the file, in bytes
 *
 * For a DAX page; the lower file system does it for its folios.
 */
void fb_zero_tail(struct fb_inode *fi, loff_t size)
{
	struct fb_sb *fsb = FB_SB(fi->vfs_inode.i_sb);
	struct fb_page *page;

	if (!offset_in_page(size))
		return;
	page = fb_page_find(fi, size >> PAGE_SHIFT);
	if (!page || page->bad)
		return;
	/* A page that can't become out-of-sync gets the zeros as well: the lower file has them. */
	fb_page_touch(fi, page);
	ps_page_zero(&fsb->ps, fb_page_number(fsb, page), offset_in_page(size),
		     PAGE_SIZE - offset_in_page(size));
	ps_fence(&fsb->ps);
}

/**
 * fb_zero_last() - the same before the file becomes longer
 * @fi: the inode; takes io_sem
 */
void fb_zero_last(struct fb_inode *fi)
{
	down_read(&fi->io_sem);
	fb_zero_tail(fi, i_size_read(&fi->vfs_inode));
	up_read(&fi->io_sem);
}
