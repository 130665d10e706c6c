// SPDX-License-Identifier: GPL-2.0-only
/*
 * Bad pages: the device has lost what was in a line of them.
 *
 * They are known from the device when it is mounted (bad blocks), or noticed when a page is read to
 * be written back. Nothing ever touches such a page again, for a plain load or store may bring the
 * machine down:
 *   - a free one is not handed out;
 *   - what a clean one held, the lower file has;
 *   - an out-of-sync one stays in its file's index: the range is lost. Reads, writes, faults and
 *     writeback of it fail, and drain and unmount with them, until the file is truncated or deleted.
 *     The lower file's older bytes never take the place of the lost ones.
 *
 * The records of pages and files are core's, which reads them with care as well.
 */
#include <linux/dax.h>

#include "bad.h"
#include "index.h"
#include "page.h"

/* In pages. How much of a device is asked about at once: the kernel counts bad sectors in an int. */
#define FB_BAD_STEP	((long)SZ_1G >> PAGE_SHIFT)

#ifdef FB_BREAK_PM_READ		/* a fault on purpose: pages that begin so can't be read */
#define FB_UNREADABLE	"FB_BREAK_PM_READ"
#else
#define FB_UNREADABLE	""
#endif

/**
 * fb_bad_step() - map a stretch of a device that may have bad blocks
 * @fsb: the mount
 * @done: how many pages have been mapped
 * @all: how many there are
 * @addr: becomes the address of the first page of the stretch
 * @pfn: becomes its page frame
 *
 * Context: between dax_read_lock() and dax_read_unlock().
 *
 * Return: how many pages; only the last of them may be bad. 0 or a negative errno: they can't be mapped.
 */
long fb_bad_step(struct fb_sb *fsb, u64 done, u64 all, void **addr, compat_pfn_t *pfn)
{
	long want = min_t(u64, all - done, FB_BAD_STEP);
	long got = dax_direct_access(fsb->dax, fsb->dax_start + done, want, DAX_RECOVERY_WRITE, addr, pfn);

	return min_t(long, got, want);
}

static void fb_say_lost(const struct fb_inode *fi, const struct fb_page *page)
{
	pr_err("%s: inode %llu has lost %lu bytes at %llu: the device can't read them\n",
	       FB_SB(fi->vfs_inode.i_sb)->cache_name, (u64)fi->vfs_inode.i_ino, PAGE_SIZE,
	       (u64)page->index << PAGE_SHIFT);
}

/* A page of the device is bad; returns whether it is one that holds data of files. */
static bool fb_bad_mark(struct fb_sb *fsb, const u8 *addr)
{
	u64 number = (addr - fsb->ps.data) >> PAGE_SHIFT;

	if (addr < fsb->ps.data || number >= fsb->ps.nr_pages)
		return false;	/* core notices */
	fsb->pages[number].bad = true;
	return true;
}

/**
 * fb_bad_find() - learn from the device which pages are bad
 * @fsb: the mount; its store is open, its pages are not in use yet
 */
void fb_bad_find(struct fb_sb *fsb)
{
	u64 all = fsb->ps.size >> PAGE_SHIFT, done = 0;
	unsigned long bad = 0;
	void *addr, *last;
	long got;
	int id;

	while (done < all) {
		id = dax_read_lock();
		got = fb_bad_step(fsb, done, all, &addr, NULL);
		if (got > 0 && dax_direct_access(fsb->dax, fsb->dax_start + done + got - 1, 1, DAX_ACCESS,
						 &last, NULL) == -EHWPOISON)
			bad += fb_bad_mark(fsb, addr + (got - 1) * PAGE_SIZE);
		dax_read_unlock(id);
		if (got <= 0)
			break;
		done += got;
		cond_resched();
	}
	if (bad)
		pr_warn("%s: %lu pages are bad and will not be used\n", fsb->cache_name, bad);
}

/**
 * fb_bad_page() - a page of a file turns out to be bad, or comes into the index being so
 * @fi: the inode; the page stays in its index, because wb_lock is held or no other task has the inode
 * @page: the page
 */
void fb_bad_page(struct fb_inode *fi, struct fb_page *page)
{
	fb_page_set_bad(fi, page);
	fb_say_lost(fi, page);
	mapping_set_error(fi->vfs_inode.i_mapping, -EIO);
}

/**
 * fb_bad_copy() - read a page that may be bad
 * @fsb: the mount
 * @page: the page
 * @to: where to
 *
 * Return: false if it can't be read.
 */
bool fb_bad_copy(struct fb_sb *fsb, const struct fb_page *page, void *to)
{
	const void *from = fb_page_address(fsb, page);

	if (page->bad || !pm_read(to, from, PAGE_SIZE))
		return false;
	return !*FB_UNREADABLE || memcmp(to, FB_UNREADABLE, sizeof(FB_UNREADABLE) - 1);
}
