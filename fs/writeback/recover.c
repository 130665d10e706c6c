// SPDX-License-Identifier: GPL-2.0-only
/*
 * Recovery: pages that a crash left in PMem meet their files again.
 *
 * Mount scans the tables once. It frees clean pages, for the lower file has the same bytes. It collects
 * out-of-sync pages by file record, under the handle of their lower file. These pages stay where they are:
 * the cache is warm. A new upper inode looks its handle up and takes its pages before another task can see
 * the inode (fb_recover_attach()). A worker instantiates the inodes of files that no task opens
 * (vfs/place.c), so that their pages can be written back like any others. Where the cache has a name log,
 * replay has looked at the table before all of them (restore.c).
 *
 * A record whose lower file does not exist is freed if it is marked unlinked: the file was deleted, or
 * its creation was never durable. Otherwise the file was removed past this mount, or its file system can't
 * read it. Then the pages are kept and counted as unplaced. Drain and the next mount try again, until the
 * administrator discards the pages.
 */
#include <linux/cred.h>
#include <linux/exportfs.h>
#include <linux/file.h>

#include "../fail.h"
#include "../lower/attr.h"
#include "../lower/lower.h"
#include "../page/alloc.h"
#include "../page/bad.h"
#include "../page/entry.h"
#include "../page/index.h"
#include "../page/page.h"
#include "../page/record.h"
#include "../page/times.h"
#include "../page/zero.h"
#include "../trace.h"
#include "found.h"
#include "recover.h"

static int fb_scan_files(struct fb_sb *fsb, struct fb_found **files)
{
	struct ps_file_info info;
	u32 file;
	int err;

	for (file = 0; file < fsb->ps.nr_files; file++) {
		err = ps_file_read(&fsb->ps, file, &info);
		if (err)
			return err;
		if (info.state == PS_FILE_FREE)
			continue;
		files[file] = kzalloc(sizeof(**files), GFP_KERNEL);
		if (!files[file])
			return -ENOMEM;
		files[file]->info = info;
		files[file]->file = file;
		INIT_LIST_HEAD(&files[file]->pages);
		__set_bit(file, fsb->files_used);
		fsb->nr_files_used++;
		cond_resched();
	}
	return 0;
}

/*
 * Sorts the pages: those that wait for their files, those that are free, and in @stale those
 * that are to be freed. From the last to the first, so that the free list begins with the first.
 */
static int fb_scan_pages(struct fb_sb *fsb, struct fb_found **files, struct list_head *stale)
{
	struct ps_page_info info;
	struct fb_page *page;
	u32 i = fsb->ps.nr_pages;
	int err;

	while (i-- > 0) {
		page = &fsb->pages[i];
		err = ps_page_read(&fsb->ps, i, &info);
		if (err && err != -ESTALE)
			return err;
		if (err || info.state == PS_PAGE_CLEAN) {
			list_add(&page->lru, stale);
		} else if (info.state == PS_PAGE_FREE) {
			fb_page_put_free(fsb, page);
		} else {
			page->index = info.index;
			list_add(&page->lru, &files[info.file]->pages);
			files[info.file]->nr_pages++;
		}
		cond_resched();
	}
	return 0;
}

/*
 * Keeps the files that have pages, a size or times, until their inodes are known. The records of the others
 * become free, unless the scan has failed. Returns how many pages the files have.
 */
static unsigned long fb_keep_found(struct fb_sb *fsb, struct fb_found **files, bool failed)
{
	unsigned long pages = 0;
	struct fb_found *found;

	for (u32 file = 0; file < fsb->ps.nr_files; file++) {
		cond_resched();
		found = files[file];
		if (!found)
			continue;
		pages += found->nr_pages;
		if (!failed && !found->nr_pages && !found->info.size && !found->info.time)
			fb_found_free(fsb, found);
		else
			fb_found_add(fsb->recovered, found);
	}
	return pages;
}

/**
 * fb_recover_scan() - find what a crash left
 * @fsb: the mount; its store is open, no page is in use yet
 * @fc: for messages
 *
 * Return: 0; -EUCLEAN if a record is damaged, -ENOMEM.
 */
int fb_recover_scan(struct fb_sb *fsb, struct fs_context *fc)
{
	struct fb_found **files;
	unsigned long pages;
	LIST_HEAD(stale);
	int err;

	fsb->recovered = kzalloc(sizeof(*fsb->recovered), GFP_KERNEL);
	files = kvcalloc(fsb->ps.nr_files, sizeof(*files), GFP_KERNEL);
	if (!fsb->recovered || !files) {
		kvfree(files);
		return -ENOMEM;
	}
	spin_lock_init(&fsb->recovered->lock);
	err = fb_scan_files(fsb, files) ?: fb_scan_pages(fsb, files, &stale);
	if (!err)
		fb_pages_free(fsb, &stale);
	pages = fb_keep_found(fsb, files, err);
	kvfree(files);
	if (err == -EUCLEAN)
		fb_error(fc, "%s has damaged records; nothing was changed: see forebay check",
			 fsb->cache_name);
	if (!err && pages)
		pr_info("%s: recovered %lu pages\n", fsb->cache_name, pages);
	fb_count(fsb, FB_PAGES_RECOVERED, pages);
	return err;
}

/**
 * fb_recover_found_any() - whether the cache holds something for its lower directory
 * @fsb: the mount, scanned
 */
bool fb_recover_found_any(struct fb_sb *fsb)
{
	return atomic_read(&fsb->recovered->nr) != 0;
}

/* Stores what has changed of a file record in @found; @err: of the function that stored a word. */
static void fb_found_heal(struct fb_sb *fsb, struct fb_found *found, int err)
{
	if (err)	/* the device has lost the record since the scan */
		ps_file_rewrite(&fsb->ps, found->file, &found->info);
}

/* Brings the lower file to the size that the record promises. */
static int fb_recover_size(struct fb_inode *fi, struct fb_found *found, struct file *wb_file)
{
	struct fb_sb *fsb = FB_SB(fi->vfs_inode.i_sb);
	loff_t size = found->info.size & ~PS_SIZE_EXACT, lower = i_size_read(fi->lower);
	bool exact = found->info.size & PS_SIZE_EXACT;
	int err = 0;

	if (exact ? size != lower : size > lower)
		err = fb_set_lower_size(fsb, wb_file, size);
	if (!err && exact) {
		err = vfs_fsync(wb_file, 1);
		if (!err) {
			found->info.size = size;
			fb_found_heal(fsb, found, ps_file_set_size(&fsb->ps, found->file, size));
			ps_fence(&fsb->ps);
		}
	}
	if (!err)
		i_size_write(&fi->vfs_inode, i_size_read(fi->lower));
	return err;
}

/* Pages go into the index; those beyond the end of the file were never acknowledged. */
static int fb_recover_pages(struct fb_inode *fi, struct fb_found *found)
{
	struct fb_sb *fsb = FB_SB(fi->vfs_inode.i_sb);
	loff_t size = i_size_read(&fi->vfs_inode);
	pgoff_t beyond = DIV_ROUND_UP_ULL(size, PAGE_SIZE);
	struct fb_page *page, *next;

	list_for_each_entry(page, &found->pages, lru) {
		if (page->index < beyond && fb_page_reserve(fi, page->index))
			return -ENOMEM;
		cond_resched();
	}
	list_for_each_entry_safe(page, next, &found->pages, lru) {
		list_del_init(&page->lru);
		if (page->index < beyond) {
			page->has_space = true;	/* or was copied from below: that isn't known any more */
			fb_page_insert(fi, page, page->index, FB_STATUS_OUT_OF_SYNC, false);
			if (page->bad)
				fb_bad_page(fi, page);
		} else {
			ps_page_free(&fsb->ps, fb_page_number(fsb, page));
			ps_fence(&fsb->ps);
			fb_page_put_free(fsb, page);
		}
		cond_resched();
	}
	fb_zero_tail(fi, size);
	return 0;
}

static int fb_recover_file(struct fb_inode *fi, struct fb_found *found)
{
	struct fb_sb *fsb = FB_SB(fi->vfs_inode.i_sb);
	struct file *wb_file = fb_open_below(fi);
	int err;

	if (IS_ERR(wb_file))
		return PTR_ERR(wb_file);
	fb_recover_time(fi, found->info.time, wb_file);
	err = fb_recover_size(fi, found, wb_file) ?: fb_recover_pages(fi, found);
	if (err) {
		fput(wb_file);
		return err;
	}
	set_bit(FB_IS_BELOW, &fi->flags);
	/* Its deletion was not durable below: the file is back, and so are its pages. Or its creation was. */
	if (found->info.state == PS_FILE_UNLINKED && fi->vfs_inode.i_nlink) {
		found->info.state = PS_FILE_LIVE;
		fb_found_heal(fsb, found, ps_file_set_state(&fsb->ps, found->file, PS_FILE_LIVE));
	}
	fb_record_attach(fi, found->file, found->info.generation, found->info.size & ~PS_SIZE_EXACT, wb_file);
	trace_fb_recover(fi, found->nr_pages);
	return 0;
}

/**
 * fb_recover_attach() - give a new inode the pages that were found for it
 * @fi: the inode, not yet visible to others
 *
 * Return: 0, also if there are none; or why they can't be served: then the file must
 * not be used, for the lower file is older than what was acknowledged.
 */
int fb_recover_attach(struct fb_inode *fi)
{
	struct fb_sb *fsb = FB_SB(fi->vfs_inode.i_sb);
	const struct cred *old;
	struct ps_handle handle;
	struct fb_found *found;
	int err;

	if (!fb_recover_found_any(fsb) || fb_encode_handle(fi->lower, &handle))
		return 0;
	found = fb_found_take(fsb->recovered, &handle);
	if (!found)
		return 0;
	old = override_creds(fsb->cred);
	err = fb_recover_file(fi, found);
	revert_creds(old);
	fb_found_placed(fsb, found, !err);
	return err;
}

/**
 * fb_recover_tried() - a file's inode was looked for, and has taken its pages if it exists
 * @fsb: the mount
 * @handle: the file
 * @err: 0; -ESTALE: the file is gone; another error may pass
 *
 * A file doesn't leave the table for a moment before its inode has the pages: a task that opens it, drains or
 * freezes must find it there.
 *
 * Return: 0 if the table doesn't have the file any more, or why it has.
 */
int fb_recover_tried(struct fb_sb *fsb, const struct ps_handle *handle, int err)
{
	struct fb_recovered *rec = fsb->recovered;
	unsigned long pages = 0;
	struct fb_found *found;
	bool gone;

	spin_lock(&rec->lock);
	found = fb_found_look_up(rec, handle);
	gone = found && !found->taken && err == -ESTALE && found->info.state == PS_FILE_UNLINKED;
	if (gone) {
		fb_found_remove(rec, found);
	} else if (found && !found->taken) {
		pages = found->unplaced ? 0 : found->nr_pages;
		fb_set_unplaced(fsb, found, true);
	}
	spin_unlock(&rec->lock);
	if (gone)
		fb_found_free(fsb, found);
	if (gone || !found)	/* or a task has opened it meanwhile */
		return 0;
	if (pages)
		pr_warn("%s: %lu pages of a file that can't be opened below (error %d) stay in PMem\n",
			fsb->cache_name, pages, err);
	return err ?: -EUCLEAN;
}

/**
 * fb_recover_next() - a file that still waits for its inode
 * @fsb: the mount
 * @skip: so many of them are passed over
 * @handle: becomes its handle
 *
 * Return: whether there is one.
 */
bool fb_recover_next(struct fb_sb *fsb, unsigned int skip, struct ps_handle *handle)
{
	struct fb_recovered *rec = fsb->recovered;
	struct fb_found *found;
	unsigned int bucket;
	bool any = false;

	spin_lock(&rec->lock);
	hash_for_each(rec->by_handle, bucket, found, node) {
		if (skip-- == 0) {
			*handle = found->info.handle;
			any = true;
			break;
		}
	}
	spin_unlock(&rec->lock);
	return any;
}

/**
 * fb_recover_discard() - give up the pages that can't be placed
 * @fsb: the mount
 *
 * Return: how many pages were given up.
 */
unsigned long fb_recover_discard(struct fb_sb *fsb)
{
	struct fb_recovered *rec = fsb->recovered;
	unsigned long pages = 0;
	struct hlist_node *next;
	struct fb_found *found;
	unsigned int bucket;
	HLIST_HEAD(gone);

	spin_lock(&rec->lock);
	hash_for_each_safe(rec->by_handle, bucket, next, found, node) {
		if (!found->unplaced || found->taken)
			continue;
		fb_found_remove(rec, found);
		hlist_add_head(&found->node, &gone);
	}
	spin_unlock(&rec->lock);
	hlist_for_each_entry_safe(found, next, &gone, node) {
		pages += found->nr_pages;
		fb_found_free(fsb, found);
	}
	return pages;
}

/**
 * fb_recover_free() - forget, in DRAM, what could not be placed
 * @fsb: the mount, being taken down; the records stay for the next mount
 */
void fb_recover_free(struct fb_sb *fsb)
{
	struct hlist_node *next;
	struct fb_found *found;
	unsigned int bucket;

	if (!fsb->recovered)
		return;
	hash_for_each_safe(fsb->recovered->by_handle, bucket, next, found, node)
		kfree(found);
	kfree(fsb->recovered);
	fsb->recovered = NULL;
}
