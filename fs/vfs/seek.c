// SPDX-License-Identifier: GPL-2.0-only
/* lseek(2): data is what PMem or the lower file has. */
#include <linux/fs.h>

#include "../page/index.h"
#include "seek.h"

/*
 * The first byte at or after @pos that is data here or below; -ENXIO if there is none. The index is looked
 * at first: a page that leaves PMem after that is data below by then.
 */
static loff_t fb_seek_data(struct fb_inode *fi, struct file *lower, loff_t pos)
{
	unsigned long index = pos >> PAGE_SHIFT;
	bool any = fb_page_next(fi, &index, ULONG_MAX);
	loff_t data;

	smp_rmb();	/* pairs with the index's lock where pages leave */
	data = vfs_llseek(lower, pos, SEEK_DATA);
	if (data < 0 && data != -ENXIO)
		return data;
	if (any) {
		pos = max(pos, (loff_t)index << PAGE_SHIFT);
		data = data < 0 ? pos : min(data, pos);
	}
	return data;
}

/* What the lower file calls a hole; behind its end everything is. */
static loff_t fb_lower_hole(struct file *lower, loff_t pos)
{
	loff_t hole = vfs_llseek(lower, pos, SEEK_HOLE);

	return hole == -ENXIO ? pos : hole;
}

/* A hole is where neither the lower file nor PMem has data. */
static loff_t fb_seek_hole(struct fb_inode *fi, struct file *lower, loff_t pos)
{
	loff_t hole, again;

	for (;;) {
		hole = fb_lower_hole(lower, pos);
		if (hole < 0)
			return hole;
		if (fb_page_find(fi, hole >> PAGE_SHIFT)) {
			pos = ((hole >> PAGE_SHIFT) + 1) << PAGE_SHIFT;
			continue;
		}
		/* A page may have left PMem for it between the two looks. */
		again = fb_lower_hole(lower, hole);
		if (again == hole)
			return hole;
		pos = hole;
	}
}

loff_t fb_llseek(struct file *file, loff_t offset, int whence)
{
	struct inode *inode = file_inode(file);
	struct fb_inode *fi = FB_I(inode);
	loff_t size = i_size_read(inode), pos;

	if (whence != SEEK_DATA && whence != SEEK_HOLE)
		return generic_file_llseek(file, offset, whence);
	if (offset < 0 || offset >= size)
		return -ENXIO;
	if (whence == SEEK_DATA)
		pos = fb_seek_data(fi, fb_lower_file(file), offset);
	else
		pos = min(fb_seek_hole(fi, fb_lower_file(file), offset), size);
	if (pos >= size && whence == SEEK_DATA)
		return -ENXIO;
	return pos < 0 ? pos : vfs_setpos(file, pos, inode->i_sb->s_maxbytes);
}
