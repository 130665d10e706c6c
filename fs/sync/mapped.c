// SPDX-License-Identifier: GPL-2.0-only
/*
 * Stores to DAX pages through mappings: how a sync call makes them durable, and how the file's times hear
 * of them.
 *
 * Where CPU caches are lost with the power, a page that is made writable in a mapping is dirty. A sync call
 * writes its lines back. Then there are two ways to learn of the next store:
 *   - The sync call takes the page's mappings away, and the page isn't dirty any more. The next store faults.
 *   - The page stays mapped, and dirty: it is hot. Each later sync call writes its lines back again, whether
 *     there was a store or not.
 * A fault costs as much as many such flushes. So a page that is stored to again soon after it lost its
 * mappings stays mapped for one sync call, the next time for two, and so on (fb_page_heat()). Then it loses
 * them again. A page that is no longer stored to is flushed in vain as often as flushes have saved faults
 * before, at most.
 *
 * Where CPU caches are persistent no page is dirty. Pages stay mapped, and sync calls do nothing with them.
 *
 * Either way no fault tells of a store to a page that is mapped writable since before the last sync call.
 * FB_STORED_DAX says that there may be such a page. Then a sync call moves the file's times as if there was
 * a store. stat() and utimes() take the mappings away, and so does a sync call if the flag has been set for
 * FB_STORES_LOOK: a program that still stores faults and sets the flag again, an idle mapping doesn't.
 * utimes() takes those of all dirty pages away: the next sync call may leave them mapped, and set the flag.
 *
 * sync_lock protects all of this. A fault that sets the flag, where CPU caches are persistent, holds io_sem.
 */
#include "../../compat/attr.h"
#include "../lower/lower.h"
#include "../page/copies.h"
#include "../page/index.h"
#include "../page/record.h"
#include "mapped.h"

/* Pages that are flushed under one hold of io_sem. */
#define FB_FLUSH_BATCH	128

#define FB_STORES_LOOK	(30 * HZ)

static bool fb_stored_for(struct fb_inode *fi, unsigned long interval)
{
	return test_bit(FB_STORED_DAX, &fi->flags) &&
	       time_after_eq(jiffies, READ_ONCE(fi->stored_since) + interval);
}

/**
 * fb_note_store() - a DAX page is mapped writable, and no fault will tell of stores
 * @fi: the inode; the page is mapped, or left so, under the same hold of io_sem
 */
void fb_note_store(struct fb_inode *fi)
{
	lockdep_assert_held(&fi->io_sem);
	if (!test_and_set_bit(FB_STORED_DAX, &fi->flags))
		WRITE_ONCE(fi->stored_since, jiffies);
}

/*
 * Makes stores through mappings durable: the lines of dirty pages leave the CPU caches. Pages that are not
 * hot, or all (@unmap), lose their mappings. Returns whether there may be more, from *first on.
 */
static bool fb_flush_batch(struct fb_inode *fi, unsigned long *first, pgoff_t last, bool unmap)
{
	struct fb_sb *fsb = FB_SB(fi->vfs_inode.i_sb);
	struct fb_page *pages[FB_FLUSH_BATCH], *page;
	unsigned int nr = 0, seen, from, to;

	down_write(&fi->io_sem);
	for (seen = 0; seen < FB_FLUSH_BATCH; seen++, ++*first) {
		page = xa_find(&fi->index, first, last, FB_MARK_DIRTY);
		if (!page)
			break;
		if (unmap || !fb_page_flush_mapped(fi, page))
			pages[nr++] = page;
	}
	/* Neighbours in one go: each costs an interrupt of the other processors. */
	for (from = 0; from < nr; from = to) {
		for (to = from + 1; to < nr && pages[to]->index == pages[to - 1]->index + 1; to++)
			;
		unmap_mapping_pages(fi->lower->i_mapping, pages[from]->index, to - from, false);
	}
	for (from = 0; from < nr; from++)
		fb_page_flush(fi, pages[from]);
	if (seen > nr) {
		fb_note_store(fi);
		fb_copied(fsb, FB_MAPPED_STORES, (seen - nr) * PAGE_SIZE);
	}
	ps_fence(&fsb->ps);
	up_write(&fi->io_sem);
	return seen == FB_FLUSH_BATCH;
}

static void fb_flush_pages(struct fb_inode *fi, pgoff_t first, pgoff_t last, bool unmap)
{
	unsigned long index = first;

	if (!xa_marked(&fi->index, FB_MARK_DIRTY))
		return;
	WRITE_ONCE(fi->flushes, fi->flushes + 1);
	while (fb_flush_batch(fi, &index, last, unmap) && xa_marked(&fi->index, FB_MARK_DIRTY))
		cond_resched();
}

/**
 * fb_sync_pages() - make mapped stores to DAX pages durable
 * @fi: the inode
 * @first: first page
 * @last: last page
 *
 * Touches only pages that are dirty: stored to since the last sync of the range, or hot. There are none where
 * CPU caches are in the persistence domain.
 *
 * Context: process, under sync_lock; takes io_sem. Sleeps.
 */
void fb_sync_pages(struct fb_inode *fi, pgoff_t first, pgoff_t last)
{
	lockdep_assert_held(&fi->sync_lock);
	if (fb_stored_for(fi, FB_STORES_LOOK))
		fb_flush_pages(fi, 0, ULONG_MAX, true);
	else
		fb_flush_pages(fi, first, last, false);
}

/* Where CPU caches are lost: after a flush. */
static void fb_stores_seen(struct fb_inode *fi)
{
	if (!READ_ONCE(fi->nr_hot))
		clear_bit(FB_STORED_DAX, &fi->flags);
}

/* Where they are persistent. From now on only stores that come later set the flag. */
static void fb_look_for_stores(struct fb_inode *fi)
{
	down_write(&fi->io_sem);
	clear_bit(FB_STORED_DAX, &fi->flags);
	unmap_mapping_pages(fi->lower->i_mapping, 0, 0, false);
	up_write(&fi->io_sem);
}

/* Returns whether that was possible. The record may have gone with the last of the pages. */
static bool fb_move_time_now(struct fb_inode *fi, struct file *lower)
{
	lower = lower ? get_file(lower) : fb_record_file(fi) ?: fb_open_below(fi);
	if (IS_ERR(lower))
		return false;
	compat_update_time(lower);
	__fput_sync(lower);	/* as fb_record_forget() does, if the record went meanwhile */
	return true;
}

/*
 * Moves the time. syncfs(2) holds what a thaw needs. So this doesn't wait for a thaw: the next sync call
 * moves the time. Returns false if the lower file system is frozen.
 */
static bool fb_move_time(struct fb_inode *fi, struct file *lower)
{
	struct super_block *sb = fi->lower->i_sb;
	bool thawed = sb_start_write_trylock(sb), moved = false;

	if (thawed) {
		moved = fb_move_time_now(fi, lower);
		sb_end_write(sb);
	}
	if (!moved) {
		down_read(&fi->io_sem);
		fb_note_store(fi);
		up_read(&fi->io_sem);
	}
	return thawed;
}

/**
 * fb_time_of_stores() - a sync call moves the file's time if a mapping may have been stored to
 * @fi: the inode, after fb_sync_pages()
 * @lower: an open lower file; NULL: that of the file's record, or one that is opened for this
 *
 * Pages are unmapped before the time moves: each store is before that, or is seen by a fault.
 *
 * Context: process, under sync_lock; takes io_sem. Sleeps.
 */
void fb_time_of_stores(struct fb_inode *fi, struct file *lower)
{
	lockdep_assert_held(&fi->sync_lock);
	if (!test_bit(FB_STORED_DAX, &fi->flags) || IS_IMMUTABLE(&fi->vfs_inode))
		return;
	if (FB_SB(fi->vfs_inode.i_sb)->ps.flush_caches)
		fb_stores_seen(fi);
	else if (fb_stored_for(fi, FB_STORES_LOOK))
		fb_look_for_stores(fi);
	fb_move_time(fi, lower);
}

/* Has the times tell of the stores so far, unless it returns false. No mapping is left writable. */
static bool fb_take_stores(struct fb_inode *fi)
{
	lockdep_assert_held(&fi->sync_lock);
	if (FB_SB(fi->vfs_inode.i_sb)->ps.flush_caches) {
		fb_flush_pages(fi, 0, ULONG_MAX, true);
		fb_stores_seen(fi);
	} else {
		fb_look_for_stores(fi);
	}
	return fb_move_time(fi, NULL);
}

/**
 * fb_see_stores() - have the file's times tell of the stores so far, and the next store by a fault
 * @fi: the inode
 * @interval: in jiffies; does nothing if the flag is set for less
 *
 * A sync call that is under way does the same, so this doesn't wait for it.
 *
 * Context: process; tries to take sync_lock, and takes io_sem. Sleeps.
 */
void fb_see_stores(struct fb_inode *fi, unsigned long interval)
{
	if (!fb_stored_for(fi, interval) || IS_IMMUTABLE(&fi->vfs_inode) || !mutex_trylock(&fi->sync_lock))
		return;
	fb_take_stores(fi);
	mutex_unlock(&fi->sync_lock);
}

/**
 * fb_end_stores() - the file's times are about to be set: no sync call moves them for a store from before
 * @fi: the inode, locked
 *
 * A sync call that is under way may be about to move the times, so this waits for it. It also waits for a
 * thaw of the lower file system, without sync_lock, as the caller will have to anyway. Otherwise the next
 * sync call would move the times for these stores, after they were set.
 *
 * Context: process; takes sync_lock, and io_sem. Sleeps.
 * Return: 0, or -EINTR if the task is killed.
 */
int fb_end_stores(struct fb_inode *fi)
{
	struct super_block *sb = fi->lower->i_sb;
	bool ended;

	lockdep_assert_held_write(&fi->vfs_inode.i_rwsem);
	for (;;) {
		if (mutex_lock_killable(&fi->sync_lock))
			return -EINTR;
		/* The next sync call may leave dirty pages mapped, and then set the flag. */
		ended = (!test_bit(FB_STORED_DAX, &fi->flags) && !xa_marked(&fi->index, FB_MARK_DIRTY)) ||
			IS_IMMUTABLE(&fi->vfs_inode) || fb_take_stores(fi);
		mutex_unlock(&fi->sync_lock);
		if (ended)
			return 0;
		sb_start_write(sb);
		sb_end_write(sb);
	}
}
