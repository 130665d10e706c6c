// SPDX-License-Identifier: GPL-2.0-only
/*
 * Deleted and truncated files, here called orphans, as in the lists that ext4 and others have of both. Their
 * change must become durable below before PMem may forget what it has.
 *
 *   - A deletion. Until it is durable a crash may bring the file back, and the file must come back with the
 *     bytes that were synced, not with older ones. The file's pages wait here, in no index, with their
 *     records in place.
 *   - A truncation. The file's record says how long the file is (FB_SIZE_EXACT), and recovery would truncate
 *     the file to that size again. Bytes that were appended later and not synced would be lost with that.
 *     So a lower fsync, which ends this, comes soon, whether or not a program asks for one.
 *   - A truncation that the record doesn't tell of yet (FB_TRUNCATED): a sync of all files must not note a
 *     size without it.
 *
 * All are done by one worker, about a second after the first of a group came in. A truncation is one file's,
 * and takes as long as what its users wrote: the worker gives the file a turn (turn.c).
 */
#include "../names/log.h"
#include "../page/alloc.h"
#include "../page/entry.h"
#include "../page/index.h"
#include "../page/mapping.h"
#include "../page/record.h"
#include "../page/size.h"
#include "../page/walk.h"
#include "../sync/sync.h"
#include "deferred.h"
#include "turn.h"

struct fb_deleted {
	struct list_head list;
	struct list_head pages;		/* fb_page->lru */
	u32 file;
};

/**
 * fb_orphan_deleted() - keep a deleted file's pages until that is durable
 * @fi: the inode, being evicted: no other task has it, nothing maps it
 */
void fb_orphan_deleted(struct fb_inode *fi)
{
	struct fb_sb *fsb = FB_SB(fi->vfs_inode.i_sb);
	struct fb_deleted *deleted = kmalloc(sizeof(*deleted), GFP_NOFS | __GFP_NOFAIL);
	struct fb_page *page;
	unsigned long index;

	INIT_LIST_HEAD(&deleted->pages);
	deleted->file = fi->file;
	xa_for_each(&fi->index, index, page) {
		fb_page_detach(fi, page);
		list_add_tail(&page->lru, &deleted->pages);
	}
	__fput_sync(fb_record_forget(fi));
	spin_lock(&fsb->inodes_lock);
	list_add_tail(&deleted->list, &fsb->deleted);
	spin_unlock(&fsb->inodes_lock);
	fb_flush_orphans_soon(fsb);
}

/* Under fb_sb.deleted_lock. */
static int fb_flush_group(struct fb_sb *fsb)
{
	struct fb_deleted *deleted, *next;
	LIST_HEAD(group);
	int err;

	lockdep_assert_held(&fsb->deleted_lock);
	spin_lock(&fsb->inodes_lock);
	list_splice_init(&fsb->deleted, &group);
	spin_unlock(&fsb->inodes_lock);
	if (list_empty(&group))
		return 0;
	err = fb_names_commit_lower(fsb);
	if (err) {
		spin_lock(&fsb->inodes_lock);
		list_splice(&group, &fsb->deleted);
		spin_unlock(&fsb->inodes_lock);
		return err;
	}
	list_for_each_entry_safe(deleted, next, &group, list) {
		fb_file_record_free(fsb, deleted->file);	/* frees all pages at once */
		fb_pages_free(fsb, &deleted->pages);
		kfree(deleted);
	}
	return 0;
}

/* A group that another task is making durable is waited for: drain relies on it. */
static int fb_flush_deleted(struct fb_sb *fsb)
{
	int err;

	mutex_lock(&fsb->deleted_lock);
	err = fb_flush_group(fsb);
	mutex_unlock(&fsb->deleted_lock);
	return err;
}

/**
 * fb_flush_orphans() - make deletions and truncations durable below now
 * @fsb: the mount
 *
 * Return: 0 or the lower file system's error; what could not be made durable waits.
 */
int fb_flush_orphans(struct fb_sb *fsb)
{
	int err = fb_flush_deleted(fsb), err2;
	struct fb_walk walk;
	struct fb_inode *fi;

	fb_walk_begin(fsb, &fsb->inodes, &walk);
	while ((fi = fb_walk_next(fsb, &walk))) {
		err2 = fb_is_truncated(fi) ? fb_flush_truncation(fi) : 0;
		err = err ?: err2;
		iput(&fi->vfs_inode);
	}
	return err;
}

/* Gives each truncated file a turn, in which no pages are written. Returns whether one is truncated still. */
static bool fb_turns_of_truncated(struct fb_sb *fsb)
{
	unsigned long no_pages = 0;
	struct fb_walk walk;
	struct fb_inode *fi;
	bool left = false;

	fb_walk_begin(fsb, &fsb->inodes, &walk);
	while ((fi = fb_walk_next(fsb, &walk))) {
		if (fb_is_truncated(fi)) {
			fb_turn(fi, &no_pages);
			left = left || fb_is_truncated(fi);
		}
		iput(&fi->vfs_inode);
	}
	return left;
}

/**
 * fb_orphan_work() - the worker
 * @work: fb_sb->orphan_work
 */
void fb_orphan_work(struct work_struct *work)
{
	struct fb_sb *fsb = container_of(to_delayed_work(work), struct fb_sb, orphan_work);
	bool again = fb_flush_deleted(fsb) != 0;

	if (fb_turns_of_truncated(fsb) || again)
		queue_delayed_work(fsb->wq, &fsb->orphan_work, FB_RETRY_DELAY);
}

/**
 * fb_orphans_free() - forget, in DRAM, the deletions that are not durable below
 * @fsb: the mount, being taken down; the records stay for the next mount
 */
void fb_orphans_free(struct fb_sb *fsb)
{
	struct fb_deleted *deleted, *next;
	struct fb_page *page;

	list_for_each_entry_safe(deleted, next, &fsb->deleted, list) {
		list_for_each_entry(page, &deleted->pages, lru)
			fb_page_unname(fsb, page);
		kfree(deleted);
	}
}
