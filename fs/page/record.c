// SPDX-License-Identifier: GPL-2.0-only
/*
 * The file record of an inode: what binds it, and its pages, to its lower file across a crash.
 *
 * While an inode has a record it is on fb_sb->inodes and has a lower file open for writeback. While it has
 * a name besides, it is pinned in memory (FB_PINNED: a reference of its own), because the index of its
 * pages lives in it.
 *
 * fi->file, wb_file and record_size change under io_sem held exclusively, or while no other task can see
 * the inode.
 */
#include <linux/file.h>
#include <linux/ratelimit.h>
#include <linux/sched/mm.h>

#include "../lower/lower.h"
#include "../names/commit.h"
#include "alloc.h"
#include "heal.h"
#include "record.h"
#include "size.h"

/**
 * fb_record_attach() - a file record is this inode's
 * @fi: the inode; see at the top about locking
 * @file: the record's number
 * @generation: of its life
 * @size: the size in it
 * @wb_file: from fb_open_below()
 */
void fb_record_attach(struct fb_inode *fi, u32 file, u32 generation, u64 size, struct file *wb_file)
{
	struct inode *inode = &fi->vfs_inode;
	struct fb_sb *fsb = FB_SB(inode->i_sb);

	fi->file = file;
	fi->generation = generation;
	fi->record_size = size;
	fi->wb_file = wb_file;
	spin_lock(&fsb->inodes_lock);
	list_add_tail(&fi->sb_link.list, &fsb->inodes);
	spin_unlock(&fsb->inodes_lock);
	if (inode->i_nlink && !test_and_set_bit(FB_PINNED, &fi->flags))
		ihold(inode);
}

static void fb_records_full(struct fb_sb *fsb)
{
	static DEFINE_RATELIMIT_STATE(seldom, 600 * HZ, 1);

	if (__ratelimit(&seldom))
		pr_warn("%s: the table of file records is full (%u): until files are written back, other files' syncs go to storage, their MAP_SYNC mappings wait; forebay format --files makes a larger table\n",
			fsb->cache_name, fsb->ps.nr_files);
}

/* Takes a record for a file that has none; returns what became of @wb_file, which is used up. */
static int fb_record_new(struct fb_inode *fi, const struct ps_handle *handle, struct file *wb_file)
{
	struct fb_sb *fsb = FB_SB(fi->vfs_inode.i_sb);
	u32 file, generation;
	int err = 0;

	down_write(&fi->io_sem);
	if (fi->file == FB_NO_FILE) {
		file = fb_file_record_alloc(fsb);
		if (file == FB_NO_FILE) {
			err = -EXFULL;
		} else {
			generation = ps_file_create(&fsb->ps, file, handle, 0);
			fb_record_attach(fi, file, generation, 0, wb_file);
			fb_record_mark(fi);
			wb_file = NULL;
		}
	}
	up_write(&fi->io_sem);
	if (wb_file)
		__fput_sync(wb_file);
	if (err)
		fb_records_full(fsb);
	return err;
}

/**
 * fb_record_get() - see to it that a file has a record in the cache
 * @fi: the inode
 *
 * The worker may give the record up as soon as it has no pages: fb_record_lock() keeps it.
 *
 * Context: process; takes io_sem. Sleeps.
 * Return: 0; -EXFULL if the table is full, -EOPNOTSUPP if the file has no name
 * or no handle, or why the lower file can't be opened.
 */
static int fb_record_get(struct fb_inode *fi)
{
	struct ps_handle handle;
	struct file *wb_file;
	unsigned int nofs;
	int err;

	if (READ_ONCE(fi->file) != FB_NO_FILE)
		return 0;
	if (!fi->vfs_inode.i_nlink)
		return -EOPNOTSUPP;
	err = fb_encode_handle(fi->lower, &handle);
	if (err)
		return err;
	fb_names_keep_birth(fi);
	/* Lower folios may be locked: reclaim must not wait for a lower transaction that waits for them. */
	nofs = memalloc_nofs_save();
	wb_file = fb_open_below(fi);
	memalloc_nofs_restore(nofs);
	if (IS_ERR(wb_file))
		return PTR_ERR(wb_file);
	return fb_record_new(fi, &handle, wb_file);
}

/**
 * fb_record_file() - the lower file that is open for the file's record
 * @fi: the inode. Takes io_sem
 *
 * Context: process. Sleeps.
 * Return: a reference, for __fput_sync(), as fb_record_forget() has it; NULL if there is no record.
 */
struct file *fb_record_file(struct fb_inode *fi)
{
	struct file *file;

	down_read(&fi->io_sem);
	file = fi->wb_file;
	if (file)
		get_file(file);
	up_read(&fi->io_sem);
	return file;
}

/**
 * fb_record_lock() - see to a record as fb_record_get() does, and lock it
 * @fi: the inode
 *
 * Context: process. Sleeps.
 * Return: 0 with io_sem held exclusively; or as fb_record_get().
 */
int fb_record_lock(struct fb_inode *fi)
{
	int err;

	for (;;) {
		err = fb_record_get(fi);
		if (err)
			return err;
		down_write(&fi->io_sem);
		if (fi->file != FB_NO_FILE)
			return 0;
		up_write(&fi->io_sem);
	}
}

/**
 * fb_record_mark() - say in the record what it means if a crash leaves no such file
 * @fi: the inode; io_sem is held exclusively
 *
 * Live: the file was removed past this mount, and its pages are kept. Unlinked: no such file is as it
 * should be. The file was deleted, or is about to be; or it was made and never durable, so that nothing of
 * it was acknowledged. If there is a file after all, recovery makes the record live.
 */
void fb_record_mark(struct fb_inode *fi)
{
	lockdep_assert_held_write(&fi->io_sem);
	if (fi->file != FB_NO_FILE &&
	    ps_file_set_state(&FB_SB(fi->vfs_inode.i_sb)->ps, fi->file, fb_record_state(fi)))
		fb_record_heal(fi, fb_record_size_word(fi));
}

/**
 * fb_is_below() - a sync below has ended: a crash leaves the file, if it has a name
 * @fi: the inode; io_sem is held exclusively
 */
void fb_is_below(struct fb_inode *fi)
{
	lockdep_assert_held_write(&fi->io_sem);
	if (fi->vfs_inode.i_nlink && !test_and_set_bit(FB_IS_BELOW, &fi->flags))
		fb_record_mark(fi);
}

/**
 * fb_record_for_pages() - see to it that pages of a file can move into the cache
 * @fi: the inode
 *
 * Context: as fb_record_get().
 * Return: 0; -EPERM if it is immutable, for they could not be written back; -EOPNOTSUPP if its pages are
 * never in PMem; or as fb_record_get().
 */
int fb_record_for_pages(struct fb_inode *fi)
{
	if (!fb_may_cache(fi))
		return -EOPNOTSUPP;
	return IS_IMMUTABLE(&fi->vfs_inode) ? -EPERM : fb_record_get(fi);
}

/**
 * fb_record_forget() - this inode has no record any more
 * @fi: the inode, without pages; io_sem is held exclusively, or no other task has
 *	it. The record itself is another owner's, or free
 *
 * The caller has a reference of its own: the pin may go.
 *
 * Return: the lower file that was open for writeback. The caller closes it after giving io_sem back, by
 * __fput_sync(). A delayed fput() would keep the lower file system from being unmounted right after us.
 */
struct file *fb_record_forget(struct fb_inode *fi)
{
	struct file *wb_file = fi->wb_file;
	struct inode *inode = &fi->vfs_inode;
	struct fb_sb *fsb = FB_SB(inode->i_sb);

	fi->file = FB_NO_FILE;
	fi->record_time = 0;
	fb_size_record_gone(fi);
	fb_write_succeeds(fi);
	spin_lock(&fsb->inodes_lock);
	list_del_init(&fi->sb_link.list);
	spin_unlock(&fsb->inodes_lock);
	fi->wb_file = NULL;
	if (test_and_clear_bit(FB_PINNED, &fi->flags))
		iput(inode);
	return wb_file;
}
