// SPDX-License-Identifier: GPL-2.0-only
/*
 * The content of a lower file that replay of the name log makes again.
 *
 * A crash has lost the file's creation below, and left its record and pages in the table of found.c under
 * the handle that the file had. That handle is only a name here, and is never decoded. Replay makes a new
 * file, and this file copies the pages into it. The inode can't take them over, as in recover.c, because the
 * record has the wrong handle.
 *
 * The copy can be made any number of times. The record is freed by fb_restore_free(), after the caller has
 * made the new file durable.
 */
#include <linux/cred.h>
#include <linux/file.h>
#include <linux/list_sort.h>
#include <linux/uio.h>

#include "../lower/attr.h"
#include "../lower/lower.h"
#include "../page/bad.h"
#include "found.h"
#include "restore.h"

#define FB_RESTORE_PAGES	32	/* copied, and written, at once */

struct fb_restore {
	struct fb_sb *fsb;
	struct fb_found *found;
	struct file *file;
	loff_t size;			/* as the record has it */
	struct fb_restored done;
	pgoff_t first;			/* of the pages in @bounce */
	unsigned int nr;		/* how many */
	u8 bounce[FB_RESTORE_PAGES * PAGE_SIZE];
};

static int fb_restore_order(void *arg, const struct list_head *a, const struct list_head *b)
{
	pgoff_t first = list_entry(a, struct fb_page, lru)->index;
	pgoff_t second = list_entry(b, struct fb_page, lru)->index;

	return first == second ? 0 : first < second ? -1 : 1;
}

/* Writes the pages that have been copied out of PMem. */
static int fb_restore_flush(struct fb_restore *restore)
{
	loff_t pos = (loff_t)restore->first << PAGE_SHIFT;
	size_t len = min_t(loff_t, restore->nr * PAGE_SIZE, restore->size - pos);
	struct kvec bounce = { .iov_base = restore->bounce, .iov_len = len };
	struct iov_iter iter;
	ssize_t ret;

	if (!restore->nr)
		return 0;
	iov_iter_kvec(&iter, ITER_SOURCE, &bounce, 1, len);
	while (iov_iter_count(&iter)) {
		ret = vfs_iter_write(restore->file, &iter, &pos, 0);
		if (ret <= 0)
			return ret ?: -EIO;
	}
	restore->done.copied += restore->nr;
	restore->nr = 0;
	return 0;
}

/* A page out of PMem. One that can't be read is left out: it becomes a hole. */
static int fb_restore_page(struct fb_restore *restore, const struct fb_page *page)
{
	int err;

	if (restore->nr == FB_RESTORE_PAGES || (restore->nr && page->index != restore->first + restore->nr)) {
		err = fb_restore_flush(restore);
		if (err)
			return err;
	}
	if (!fb_bad_copy(restore->fsb, page, restore->bounce + restore->nr * PAGE_SIZE)) {
		pr_err("%s: a file that is made again has lost %lu bytes at %llu: the device can't read them\n",
		       restore->fsb->cache_name, PAGE_SIZE, (u64)page->index << PAGE_SHIFT);
		restore->done.lost++;
		return fb_restore_flush(restore);
	}
	if (!restore->nr++)
		restore->first = page->index;
	return 0;
}

/*
 * In a kernel thread, see fb_run_as_mounter(), but with all rights of the mounter: a sync call has promised
 * this content, so it may take reserved blocks.
 */
static int fb_restore_pages(void *arg)
{
	struct fb_restore *restore = arg;
	pgoff_t end = DIV_ROUND_UP_ULL(restore->size, PAGE_SIZE);
	const struct cred *old = override_creds(restore->fsb->cred);
	struct fb_page *page;
	int err = 0;

	/* Pages beyond the end of the file were never acknowledged. */
	list_for_each_entry(page, &restore->found->pages, lru) {
		if (page->index < end)
			err = fb_restore_page(restore, page);
		if (err)
			break;
		cond_resched();
	}
	if (!err)
		err = fb_restore_flush(restore);
	revert_creds(old);
	return err;
}

static int fb_restore_found(struct fb_sb *fsb, struct fb_found *found, const struct path *lower,
			    struct fb_restored *restored)
{
	struct fb_restore *restore = kvzalloc(sizeof(*restore), GFP_KERNEL);
	int err;

	if (!restore)
		return -ENOMEM;
	restore->fsb = fsb;
	restore->found = found;
	restore->size = found->info.size & ~PS_SIZE_EXACT;
	restore->file = fb_open_quietly(fsb, lower);
	if (IS_ERR(restore->file)) {
		err = PTR_ERR(restore->file);
		goto out;
	}
	list_sort(NULL, &found->pages, fb_restore_order);
	err = fb_run_as_mounter(fsb, fb_restore_pages, restore);
	if (!err && i_size_read(file_inode(restore->file)) != restore->size)
		err = fb_set_lower_size(fsb, restore->file, restore->size);
	__fput_sync(restore->file);
	*restored = restore->done;
out:
	kvfree(restore);
	return err;
}

/**
 * fb_restore_content() - copy what a lost file had in PMem into the file that was made in its place
 * @fsb: the mount, scanned
 * @handle: of the lost file
 * @lower: the new file, a regular one
 * @restored: set
 *
 * The record stays. A page that the device can't read is counted, and becomes a hole.
 *
 * Context: process. Sleeps.
 * Return: 0, also if there is no record; or an error of the lower file system.
 */
int fb_restore_content(struct fb_sb *fsb, const struct ps_handle *handle, const struct path *lower,
		       struct fb_restored *restored)
{
	struct fb_found *found = fb_found_take(fsb->recovered, handle);
	int err;

	*restored = (struct fb_restored){ };
	if (!found)
		return 0;
	err = fb_restore_found(fsb, found, lower, restored);
	fb_found_give_back(fsb, found);
	return err;
}

/**
 * fb_restore_time() - when a lost file was last changed
 * @fsb: the mount, scanned
 * @handle: of the lost file
 *
 * Context: takes the table's lock.
 * Return: its mtime in nanoseconds since 1970; 0: there is no record, or the record has none.
 */
s64 fb_restore_time(struct fb_sb *fsb, const struct ps_handle *handle)
{
	struct fb_recovered *rec = fsb->recovered;
	struct fb_found *found;
	s64 time;

	spin_lock(&rec->lock);
	found = fb_found_look_up(rec, handle);
	time = found ? found->info.time : 0;
	spin_unlock(&rec->lock);
	return time;
}

/**
 * fb_restore_free() - free the record and the pages of a lost file
 * @fsb: the mount, scanned
 * @handle: of the lost file
 *
 * Context: process. Sleeps. Durable on return.
 * Return: how many pages the file had.
 */
unsigned long fb_restore_free(struct fb_sb *fsb, const struct ps_handle *handle)
{
	struct fb_recovered *rec = fsb->recovered;
	struct fb_found *found;
	unsigned long pages;

	spin_lock(&rec->lock);
	found = fb_found_look_up(rec, handle);
	if (found)
		fb_found_remove(rec, found);
	spin_unlock(&rec->lock);
	if (!found)
		return 0;
	pages = found->nr_pages;
	fb_found_free(fsb, found);
	return pages;
}
