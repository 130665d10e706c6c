// SPDX-License-Identifier: GPL-2.0-only
/*
 * The table of files whose out-of-sync pages mount has found, by the handle of their lower file.
 *
 * A file is in the table from the scan (recover.c) until an inode has its pages, or until its record is
 * freed. Its record and pages on the device stay as they are meanwhile.
 */
#include <linux/jhash.h>

#include "../page/alloc.h"
#include "found.h"

static u32 fb_handle_hash(const struct ps_handle *handle)
{
	return jhash(handle->bytes, handle->len, handle->type);
}

/**
 * fb_found_add() - put a file into the table
 * @rec: table
 * @found: the file; the table's from now on
 *
 * Context: takes the table's lock.
 */
void fb_found_add(struct fb_recovered *rec, struct fb_found *found)
{
	spin_lock(&rec->lock);
	hash_add(rec->by_handle, &found->node, fb_handle_hash(&found->info.handle));
	atomic_inc(&rec->nr);
	spin_unlock(&rec->lock);
}

/**
 * fb_found_look_up() - find a file by its handle
 * @rec: table; its lock is held
 * @handle: of the lower file
 *
 * Return: the file, or NULL.
 */
struct fb_found *fb_found_look_up(struct fb_recovered *rec, const struct ps_handle *handle)
{
	struct fb_found *found;

	lockdep_assert_held(&rec->lock);
	hash_for_each_possible(rec->by_handle, found, node, fb_handle_hash(handle)) {
		if (found->info.handle.type == handle->type && found->info.handle.len == handle->len &&
		    !memcmp(found->info.handle.bytes, handle->bytes, handle->len))
			return found;
	}
	return NULL;
}

/**
 * fb_found_remove() - take a file out of the table
 * @rec: table; its lock is held
 * @found: the file; the caller's from now on
 */
void fb_found_remove(struct fb_recovered *rec, struct fb_found *found)
{
	lockdep_assert_held(&rec->lock);
	hash_del(&found->node);
	atomic_dec(&rec->nr);
}

/**
 * fb_found_take() - take the pages of one file
 * @rec: table
 * @handle: of the lower file
 *
 * fb_found_placed() or fb_found_give_back() ends that. Meanwhile the file stays in the table: a task that
 * drains or freezes finds it there, and waits for the inode.
 *
 * Context: takes the table's lock.
 * Return: the file, or NULL.
 */
struct fb_found *fb_found_take(struct fb_recovered *rec, const struct ps_handle *handle)
{
	struct fb_found *found;

	spin_lock(&rec->lock);
	found = fb_found_look_up(rec, handle);
	if (found) {
		WARN_ON_ONCE(found->taken);	/* a handle has one inode, and others wait while it is new */
		found->taken = true;
	}
	spin_unlock(&rec->lock);
	return found;
}

/**
 * fb_set_unplaced() - say whether a file's pages could not be placed
 * @fsb: the mount
 * @found: the file
 * @unplaced: whether
 *
 * Context: under the table's spinlock, or no other task has the file.
 */
void fb_set_unplaced(struct fb_sb *fsb, struct fb_found *found, bool unplaced)
{
	if (found->unplaced != unplaced)
		atomic_long_add(unplaced ? found->nr_pages : -found->nr_pages, &fsb->nr_unplaced);
	found->unplaced = unplaced;
}

/**
 * fb_found_placed() - the inode has the pages, or can't have them: then they wait on
 * @fsb: the mount
 * @found: from fb_found_take(); freed if @placed
 * @placed: whether
 *
 * Context: takes the table's lock.
 */
void fb_found_placed(struct fb_sb *fsb, struct fb_found *found, bool placed)
{
	spin_lock(&fsb->recovered->lock);
	found->taken = false;
	fb_set_unplaced(fsb, found, !placed);
	if (placed)
		fb_found_remove(fsb->recovered, found);
	spin_unlock(&fsb->recovered->lock);
	if (placed)
		kfree(found);
}

/**
 * fb_found_give_back() - the pages were only read, and wait as before
 * @fsb: the mount
 * @found: from fb_found_take()
 *
 * Context: takes the table's lock.
 */
void fb_found_give_back(struct fb_sb *fsb, struct fb_found *found)
{
	spin_lock(&fsb->recovered->lock);
	found->taken = false;
	spin_unlock(&fsb->recovered->lock);
}

/**
 * fb_found_free() - free the record and the pages; nothing of the file is wanted any more
 * @fsb: the mount
 * @found: the file, not in the table
 *
 * Context: process. Sleeps. Durable on return.
 */
void fb_found_free(struct fb_sb *fsb, struct fb_found *found)
{
	fb_set_unplaced(fsb, found, false);
	fb_file_record_free(fsb, found->file);
	fb_pages_free(fsb, &found->pages);
	kfree(found);
}
