// SPDX-License-Identifier: GPL-2.0-only
/*
 * DAX upgrade: pages of a range that belongs in PMem go there, whoever has them in the lower page cache.
 *
 * A range belongs in PMem if it is in a MAP_SYNC mapping, attached or pinned (mapped.c, claim.c).
 * Its pages come
 *   - when that begins: those that the lower page cache has, dirty and mapped ones too, as long as free pages
 *     last (fb_upgrade());
 *   - at the next fault, or after the next write (mmap.c, file.c);
 *   - all of them, waiting for space, if the range is pinned (pin.c).
 * What can't move when a MAP_SYNC mapping is made is written back and dropped from the lower page
 * cache, so that it isn't in the way later. No fault on such a mapping ever maps a volatile page.
 *
 * Each page moves as in absorb.c.
 */
#include <linux/mm.h>

#include "cache.h"
#include "mapped.h"
#include "page_index.h"
#include "sync.h"
#include "upgrade.h"
#include "writeback.h"

/* How long somebody waits for a free page at a time, and in all. */
#define FB_SPACE_WAIT		(5 * HZ)
#define FB_SPACE_PATIENCE	(120 * HZ)
/* Pages looked at under one hold of io_sem. */
#define FB_UPGRADE_LOOK		64

/**
 * fb_bring_page() - move one page into PMem
 * @fi: the inode; takes io_sem
 * @index: the page; the lower page cache has had it just now
 *
 * Return: 0; -ENOSPC, -ENOENT, -EBUSY as fb_move_in(); -EINTR if the task is killed; -ENXIO if the file has
 * become shorter; -EPERM if it is immutable; or why there is no file record.
 */
int fb_bring_page(struct fb_inode *fi, pgoff_t index)
{
	struct fb_incoming in;
	int err = 0;

	if (down_write_killable(&fi->io_sem))
		return -EINTR;
	inode_dio_wait(fi->lower);
	if (index >= fb_pages_in_file(fi)) {
		err = -ENXIO;
	} else if (!fb_page_find(fi, index)) {
		err = fb_record_for_pages(fi) ?: fb_move_in(fi, index, false, &in);
		if (!err)
			fb_pages_publish(fi, &in, 1);
	}
	up_write(&fi->io_sem);
	return err;
}

/* Moves a batch from *index on, which becomes the next to look at. Returns -ENOSPC when no page is free. */
static int fb_upgrade_batch(struct fb_inode *fi, pgoff_t *index, pgoff_t last, bool whole)
{
	struct fb_incoming in[FB_MOVE_BATCH];
	pgoff_t beyond = fb_pages_in_file(fi);
	unsigned int nr = 0, looked = 0;
	int err = 0;

	if (*index >= beyond) {
		*index = last + 1;
		return 0;
	}
	last = min(last, beyond - 1);
	for (; *index <= last && nr < FB_MOVE_BATCH && looked < FB_UPGRADE_LOOK; ++*index, looked++) {
		if (!xa_find(&fi->lower->i_mapping->i_pages, index, last, XA_PRESENT)) {
			*index = last + 1;
			break;
		}
		if (fb_page_find(fi, *index) || (!whole && !fb_belongs_in_pmem(fi, *index, *index)))
			continue;
		err = fb_move_in(fi, *index, false, &in[nr]);
		if (!err)
			nr++;
		else if (err != -ENOENT && err != -EBUSY)	/* these stay volatile, for now */
			break;
		err = 0;
	}
	if (nr)
		fb_pages_publish(fi, in, nr);
	return err;
}

/**
 * fb_upgrade() - move the volatile pages of a range that are in memory into PMem
 * @fi: the inode; takes io_sem
 * @index: first page; becomes the one behind the last that was looked at
 * @last: last page
 * @whole: all of them; or only those that belong there
 *
 * Pages that hardware uses stay.
 *
 * Return: 0; -ENOSPC if no page is free; -EINTR; -EPERM if the file is immutable; or why there is no file
 * record.
 */
int fb_upgrade(struct fb_inode *fi, pgoff_t *index, pgoff_t last, bool whole)
{
	int err = 0;

	while (!err && *index <= last && fi->lower->i_mapping->nrpages) {
		down_write(&fi->io_sem);
		inode_dio_wait(fi->lower);
		err = fb_record_for_pages(fi) ?: fb_upgrade_batch(fi, index, last, whole);
		up_write(&fi->io_sem);
		if (fatal_signal_pending(current))
			err = -EINTR;
		cond_resched();
	}
	return err;
}

/**
 * fb_upgrade_mapped() - a MAP_SYNC mapping is made
 * @fi: the inode
 * @first: first page of the mapping
 * @last: last page
 *
 * What finds no free page leaves the lower page cache: written back if it is dirty.
 */
void fb_upgrade_mapped(struct fb_inode *fi, pgoff_t first, pgoff_t last)
{
	struct address_space *mapping = fi->lower->i_mapping;

	if (fb_upgrade(fi, &first, last, true) != -ENOSPC || first > last)
		return;
	/* Either may fail; then faults meet the pages where they are. */
	filemap_write_and_wait_range(mapping, (loff_t)first << PAGE_SHIFT,
				     ((loff_t)last << PAGE_SHIFT) + PAGE_SIZE - 1);
	invalidate_inode_pages2_range(mapping, first, last);
}

/**
 * fb_wait_for_space() - wait until there is a free page
 * @fsb: the mount
 * @deadline: 0 at first; in jiffies, when patience is over
 *
 * Return: 0 to try again; -ENOMEM when that has been going on for too long; -EINTR if the task is killed.
 */
int fb_wait_for_space(struct fb_sb *fsb, unsigned long *deadline)
{
	fb_writeback_kick(fsb);
	if (!*deadline)
		*deadline = jiffies + FB_SPACE_PATIENCE;
	else if (time_after(jiffies, *deadline))
		return -ENOMEM;
	if (wait_event_killable_timeout(fsb->space_wait, READ_ONCE(fsb->nr_free), FB_SPACE_WAIT) < 0)
		return -EINTR;
	return 0;
}
