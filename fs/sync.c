// SPDX-License-Identifier: GPL-2.0-only
/*
 * Sync calls: fsync, fdatasync, msync, O_SYNC and O_DSYNC writes, syncfs, sync.
 *
 * What a file may owe, and who pays:
 *
 *   mapped stores in dirty DAX pages	a flush of CPU caches		PMem
 *   volatile pages, few		a move into PMem (absorb.c)	PMem
 *   its size				8 bytes in its record		PMem
 *   volatile pages, many; a new name;	the lower fsync			storage
 *   a cut; attributes (not fdatasync)
 *
 * What write() put into DAX pages is durable already when write() returns.
 * DAX pages are never written to storage here.
 *
 * The flags and the tracker are cleared before the lower fsync begins: what is
 * changed while it runs is owed by the next one. If it fails they are set again.
 */
#include "cache.h"
#include "page_index.h"
#include "range.h"
#include "sync.h"
#include "trace.h"
#include "tracker.h"

#ifdef FB_BREAK_LOWER_SYNC	/* a fault on purpose: the power-cut campaign must find it */
#define FB_BREAK_SYNC	1
#else
#define FB_BREAK_SYNC	0
#endif

/* Unmaps and flushes up to this many pages under one hold of io_sem. */
#define FB_FLUSH_BATCH	128

/*
 * Makes stores through mappings durable: the pages lose their mappings, so that
 * the next store is seen, and their lines leave the CPU caches. Returns whether
 * there may be more, from *first on.
 */
static bool fb_flush_batch(struct fb_inode *fi, unsigned long *first, pgoff_t last)
{
	struct fb_sb *fsb = FB_SB(fi->vfs_inode.i_sb);
	struct fb_page *pages[FB_FLUSH_BATCH];
	unsigned int nr, from, to;

	down_write(&fi->io_sem);
	for (nr = 0; nr < FB_FLUSH_BATCH; nr++, ++*first) {
		pages[nr] = xa_find(&fi->index, first, last, FB_MARK_DIRTY);
		if (!pages[nr])
			break;
	}
	/* Neighbours in one go: each costs an interrupt of the other processors. */
	for (from = 0; from < nr; from = to) {
		for (to = from + 1; to < nr && pages[to]->index == pages[to - 1]->index + 1; to++)
			;
		unmap_mapping_pages(fi->lower->i_mapping, pages[from]->index, to - from, false);
	}
	for (from = 0; from < nr; from++)
		fb_page_flush(fi, pages[from]);
	ps_fence(&fsb->ps);
	up_write(&fi->io_sem);
	return nr == FB_FLUSH_BATCH;
}

/**
 * fb_sync_pages() - make mapped stores to DAX pages durable
 * @fi: the inode
 * @first: first page
 * @last: last page
 *
 * Touches only pages that were dirtied since the last sync of the range, and
 * none where CPU caches are in the persistence domain. Sleeps.
 */
void fb_sync_pages(struct fb_inode *fi, pgoff_t first, pgoff_t last)
{
	unsigned long index = first;

	while (xa_marked(&fi->index, FB_MARK_DIRTY) && fb_flush_batch(fi, &index, last))
		cond_resched();
}

/**
 * fb_sync_below() - the lower fsync, and what follows from it
 * @fi: the inode
 * @lower: an open lower file
 * @datasync: as for fdatasync
 *
 * The caller holds sync_lock.
 *
 * Return: 0 or the lower file system's error; then everything is still owed.
 */
int fb_sync_below(struct fb_inode *fi, struct file *lower, bool datasync)
{
	struct fb_sb *fsb = FB_SB(fi->vfs_inode.i_sb);
	bool attr = !datasync && test_and_clear_bit(FB_OWES_ATTR, &fi->flags);
	struct fb_tracker taken;
	unsigned int cuts;
	loff_t size;
	int err;

	if (test_bit(FB_OWES_SYNC, &fi->flags))
		set_bit(FB_PAYS_SYNC, &fi->flags);	/* before the other goes: a fault looks for both */
	clear_bit(FB_OWES_SYNC, &fi->flags);
	smp_mb__after_atomic();	/* a cut that we don't count sets it again */
	cuts = READ_ONCE(fi->cuts);
	smp_rmb();	/* a size that is larger than a cut it does not know of shall not count */
	size = i_size_read(fi->lower);
	taken = fb_track_take(fi);
	fb_count(fsb, FB_SYNCS_LOWER, 1);
	trace_fb_sync_below(fi);
	err = FB_BREAK_SYNC ? 0 : vfs_fsync(lower, datasync);
	if (err) {
		set_bit(FB_OWES_SYNC, &fi->flags);
		if (attr)
			set_bit(FB_OWES_ATTR, &fi->flags);
		fb_track_again(fi, &taken);
	}
	clear_bit(FB_PAYS_SYNC, &fi->flags);
	if (err)
		return err;
	fb_track_held(fi, &taken);
	down_write(&fi->io_sem);
	fb_is_below(fi);
	if (fi->cuts == cuts) {		/* else it was cut meanwhile for the first time, and owes again */
		if (test_and_clear_bit(FB_SIZE_EXACT, &fi->flags))
			fb_note_size(fi, fi->record_size);
		fi->durable_size = max(fi->durable_size, size);
		fb_size_is_below(fi, size);
	}
	up_write(&fi->io_sem);
	return 0;
}

static struct fb_end fb_end_now(const struct fb_inode *fi)
{
	struct fb_end end;

	end.cuts = READ_ONCE(fi->cuts);
	smp_rmb();	/* a size that is larger than a cut it does not know of shall not count */
	end.size = i_size_read(&fi->vfs_inode);
	return end;
}

/*
 * Makes the file's size durable, in PMem. Data up to it is durable already; what was written behind it
 * since may not be. Returns -EAGAIN if the file was cut meanwhile: then the lower fsync makes the size
 * durable that it has now.
 */
static int fb_sync_size(struct fb_inode *fi, const struct fb_end *end)
{
	int err = 0;

	/* A cut says in its record how long the file is; what grew since is younger than this sync. */
	if (end->size <= READ_ONCE(fi->durable_size) || test_bit(FB_SIZE_EXACT, &fi->flags))
		return 0;
	down_write(&fi->io_sem);
	if (fi->cuts != end->cuts)
		err = -EAGAIN;
	else if (end->size > fi->durable_size)
		err = fb_record_get(fi);
	if (!err && end->size > fi->durable_size) {
		fb_note_size(fi, end->size);
		fi->durable_size = end->size;
	}
	up_write(&fi->io_sem);
	return err;
}

/**
 * fb_sync_inode() - a sync call on a regular file
 * @fi: the inode
 * @lower: an open lower file
 * @start: first byte
 * @end: last byte; the range bounds only the flush of DAX pages, volatile
 *	pages are taken as a whole
 * @datasync: attributes are not asked for
 *
 * Return: 0 when all is durable, or a negative errno.
 */
int fb_sync_inode(struct fb_inode *fi, struct file *lower, loff_t start, loff_t end, bool datasync)
{
	struct fb_sb *fsb = FB_SB(fi->vfs_inode.i_sb);
	struct fb_end end_of_file;
	bool below;
	int err = 0;

	/*
	 * One at a time: whoever comes second must not find that nothing is
	 * owed while the first is still paying.
	 */
	mutex_lock(&fi->sync_lock);
	fb_sync_pages(fi, start >> PAGE_SHIFT, end >> PAGE_SHIFT);
	end_of_file = fb_end_now(fi);
	below = test_bit(FB_OWES_SYNC, &fi->flags) || test_bit(FB_SIZE_EXACT, &fi->flags) ||
		(!datasync && test_bit(FB_OWES_ATTR, &fi->flags));
	fi->overwritten = 0;
	if (!below && !fb_track_empty(fi)) {
		below = fsb->mode != FB_MODE_AUTO || fb_absorb(fi);
		assign_bit(FB_SYNCED_IN_PMEM, &fi->flags, !below);
	}
	if (!below)
		below = fb_sync_size(fi, &end_of_file);
	if (!below) {
		fb_count(fsb, FB_SYNCS_ABSORBED, 1);
	} else {
		end_of_file = fb_end_now(fi);
		err = fb_sync_below(fi, lower, datasync);
		/* Without a record all is below; and what is left after a cut is. */
		if (!err && READ_ONCE(fi->file) != FB_NO_FILE)
			err = fb_sync_size(fi, &end_of_file);
		if (err == -EAGAIN)
			err = 0;
	}
	mutex_unlock(&fi->sync_lock);
	return err;
}

/**
 * fb_fsync() - fsync(2), fdatasync(2) and what ends in them
 * @file: an upper file
 * @start: first byte
 * @end: last byte
 * @datasync: as for fdatasync
 *
 * Return: 0; the error of the lower fsync; or, once for each descriptor, that
 * writing back failed since the last call.
 */
int fb_fsync(struct file *file, loff_t start, loff_t end, int datasync)
{
	struct file *lower = fb_lower_file(file);
	int err = fb_sync_inode(FB_I(file_inode(file)), lower, start, end, datasync);
	int lower_err = file_check_and_advance_wb_err(lower);
	int upper_err = file_check_and_advance_wb_err(file);

	return err ?: lower_err ?: upper_err;
}

/**
 * fb_sync_lower_fs() - everything that the lower file system holds becomes durable
 * @fsb: the mount
 *
 * A file system that has shut itself down after an error has nothing to sync, and says that
 * all is well (ext4); its fsync tells. That comes first: to btrfs it means a log, which the
 * sync of everything makes an end to.
 *
 * Return: 0 or the lower file system's error.
 */
int fb_sync_lower_fs(struct fb_sb *fsb)
{
	struct super_block *lower = fsb->lower.mnt->mnt_sb;
	struct file *root;
	int err;

	root = dentry_open(&fsb->lower, O_RDONLY | O_DIRECTORY, fsb->cred);
	if (IS_ERR(root))
		return PTR_ERR(root);
	err = vfs_fsync(root, 0);
	__fput_sync(root);
	if (err)
		return err;
	down_read(&lower->s_umount);
	err = sync_filesystem(lower);
	up_read(&lower->s_umount);
	return err;
}

/* By fb_sync_all(), which has seen fi->end_to_sync before. */
static void fb_was_synced(struct fb_inode *fi)
{
	if (!test_bit(FB_IS_BELOW, &fi->flags)) {
		down_write(&fi->io_sem);
		fb_is_below(fi);
		up_write(&fi->io_sem);
	}
	fb_sync_size(fi, &fi->end_to_sync);
}

/**
 * fb_sync_all() - syncfs(2) and sync(2)
 * @fsb: the mount
 *
 * Mapped stores are flushed, and what is volatile is the lower file system's to sync. Only then are the
 * sizes noted that the files had before. Of two calls at once, one may note what the other has seen and
 * not yet made durable: a crash in between may leave zeros where something was appended, which nobody had
 * told to be durable. A lock that keeps them apart would be held over the lower sync, and so be one
 * more way to what docs/decisions.md says of freezing.
 *
 * Return: 0 or the lower file system's error.
 */
int fb_sync_all(struct fb_sb *fsb)
{
	struct fb_walk walk;
	struct fb_inode *fi;
	int err;

	fb_walk_begin(fsb, &fsb->inodes, &walk);
	while ((fi = fb_walk_next(fsb, &walk))) {
		mutex_lock(&fi->sync_lock);
		fb_sync_pages(fi, 0, ULONG_MAX);
		fi->end_to_sync = fb_end_now(fi);
		fi->is_being_synced = true;
		mutex_unlock(&fi->sync_lock);
		iput(&fi->vfs_inode);
	}
	err = fb_sync_lower_fs(fsb);
	fb_walk_begin(fsb, &fsb->inodes, &walk);
	while (!err && (fi = fb_walk_next(fsb, &walk))) {
		mutex_lock(&fi->sync_lock);
		if (fi->is_being_synced)
			fb_was_synced(fi);
		fi->is_being_synced = false;
		mutex_unlock(&fi->sync_lock);
		iput(&fi->vfs_inode);
	}
	fb_walk_end(fsb, &walk);
	return err;
}
