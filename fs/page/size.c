// SPDX-License-Identifier: GPL-2.0-only
/*
 * The life of a file's size.
 *
 *	i_size		what read() and stat() see, of the upper inode
 *	lower i_size	less, while only PMem has the file's last pages
 *	record_size	what the file record says, durably; with FB_SIZE_EXACT "exactly this"
 *	durable_size	a crash leaves at least this much
 *	below_size	the same if there were no record
 *	cuts		one more when a cut begins, and when it ends: odd while it goes on
 *	size_to_sync	what syncfs() is about to make durable (sync/sync.c)
 *
 * Recovery makes the lower file as long as the record says if the record says more, or "exactly".
 *
 *	step			changes				by
 *	grow			i_size				fb_size_grew()
 *	sync, in PMem		record_size, durable_size	fb_size_to_record()
 *	sync, below		durable_size, below_size;	fb_size_synced_below()
 *				"exactly" ends
 *	writeback		below_size			fb_size_is_below()
 *	cut			all of them			see below
 *	contents move		durable_size, below_size	fb_size_moved_below()
 *	the record goes		record_size is 0, durable_size	fb_size_record_gone()
 *				is below_size at most
 *
 * A cut: fb_cut_previous(); fb_cut_note(), after which the record says "exactly" and cuts is odd; the lower
 * file is cut; fb_size_cut() and fb_cut_end(), or fb_cut_failed(). A size that was read before a cut, or
 * during one, is worth nothing: struct fb_size_seen has the number of cuts beside the size.
 *
 * Locks: record_size, durable_size and below_size change under io_sem held exclusively, with two
 * exceptions. A task that raises below_size holds i_lock instead, and fb_flush_size() has wb_lock and the
 * locked range. i_size changes under i_lock, and cuts under wb_lock. All of them may be read without a
 * lock.
 */
#include <linux/fs.h>

#include "size.h"

/**
 * fb_size_grew() - the file is at least @size bytes now
 * @inode: the upper inode; its i_rwsem may not be held (asynchronous writes)
 * @size: in bytes
 */
void fb_size_grew(struct inode *inode, loff_t size)
{
	spin_lock(&inode->i_lock);
	if (size > i_size_read(inode))
		i_size_write(inode, size);
	spin_unlock(&inode->i_lock);
}

/**
 * fb_size_is_below() - the lower file has at least @size bytes after a crash
 * @fi: the inode; no cut can come between what shows that and this
 * @size: in bytes
 */
void fb_size_is_below(struct fb_inode *fi, loff_t size)
{
	spin_lock(&fi->vfs_inode.i_lock);
	fi->below_size = max(fi->below_size, size);
	spin_unlock(&fi->vfs_inode.i_lock);
}

/**
 * fb_note_size() - make a file's size durable in its record
 * @fi: the inode, with a record; io_sem is held exclusively
 * @word: bytes, perhaps with PS_SIZE_EXACT
 */
void fb_note_size(struct fb_inode *fi, u64 word)
{
	struct fb_sb *fsb = FB_SB(fi->vfs_inode.i_sb);

	lockdep_assert_held_write(&fi->io_sem);
	ps_file_set_size(&fsb->ps, fi->file, word);
	ps_fence(&fsb->ps);
	fi->record_size = word & ~PS_SIZE_EXACT;
}

/**
 * fb_size_end_exact() - a cut that was not durable below becomes it
 * @fi: the inode. Takes io_sem
 * @size: in bytes; the record says that then
 *
 * Context: process, under wb_lock. Sleeps.
 * Return: 0 or the lower file system's error.
 */
int fb_size_end_exact(struct fb_inode *fi, loff_t size)
{
	int err = vfs_fsync(fi->wb_file, 1);

	lockdep_assert_held(&fi->wb_lock);
	if (err)
		return err;
	down_write(&fi->io_sem);
	clear_bit(FB_SIZE_EXACT, &fi->flags);
	fb_note_size(fi, size);
	up_write(&fi->io_sem);
	return 0;
}

/**
 * fb_cut_begin() - the lower file is about to become shorter, or its contents to move
 * @fi: the inode
 *
 * From now on no sync notes a size that it has seen, and a read that goes on now is repeated when the cut
 * has ended.
 *
 * Context: under wb_lock.
 */
void fb_cut_begin(struct fb_inode *fi)
{
	lockdep_assert_held(&fi->wb_lock);
	WRITE_ONCE(fi->cuts, fi->cuts + 1);
	smp_wmb();	/* pairs with fb_read_lower() */
}

/**
 * fb_cut_end() - the lower file is as short already, or the cut has failed
 * @fi: the inode
 * @size: of the file, from now on
 *
 * Context: under wb_lock.
 */
void fb_cut_end(struct fb_inode *fi, loff_t size)
{
	struct inode *inode = &fi->vfs_inode;

	lockdep_assert_held(&fi->wb_lock);
	spin_lock(&inode->i_lock);
	i_size_write(inode, size);
	spin_unlock(&inode->i_lock);
	smp_wmb();	/* pairs with fb_see_size() */
	WRITE_ONCE(fi->cuts, fi->cuts + 1);
}

/* True if a crash after the lower cut could bring back more bytes than the file had, or other bytes. */
static bool fb_cut_concerns_cache(struct fb_inode *fi, loff_t size)
{
	unsigned long index = size >> PAGE_SHIFT;

	return fi->file != FB_NO_FILE &&
	       (fi->record_size > size || xa_find(&fi->index, &index, ULONG_MAX, XA_PRESENT));
}

/**
 * fb_cut_previous() - make an earlier cut durable below, if the record must say another one
 * @fi: the inode
 * @cut: begins
 * @size: of the file after the cut that is about to begin
 *
 * The record has room for one cut, and the file may have grown since that one.
 *
 * Context: process, under wb_lock. Sleeps.
 * Return: 0 or the lower file system's error.
 */
int fb_cut_previous(struct fb_inode *fi, struct fb_cut *cut, loff_t size)
{
	int err;

	lockdep_assert_held(&fi->wb_lock);
	cut->old = fi->record_size;
	cut->was_exact = test_bit(FB_SIZE_EXACT, &fi->flags);

	/* Else a sync that is on its way would leave it, and cut off what it has told to be durable. */
	if (!cut->was_exact || size <= cut->old)
		return 0;
	err = fb_size_end_exact(fi, cut->old);
	if (!err)
		cut->was_exact = false;
	return err;
}

/**
 * fb_cut_note() - the lower file is about to be cut: the record says so first
 * @fi: the inode. Takes io_sem
 * @cut: from fb_cut_previous()
 * @size: of the file after the cut
 *
 * Context: process, under wb_lock. Sleeps.
 */
void fb_cut_note(struct fb_inode *fi, struct fb_cut *cut, loff_t size)
{
	lockdep_assert_held(&fi->wb_lock);
	down_write(&fi->io_sem);
	cut->concerns = fb_cut_concerns_cache(fi, size);
	fb_cut_begin(fi);
	if (cut->concerns) {
		set_bit(FB_SIZE_EXACT, &fi->flags);
		fb_note_size(fi, size | PS_SIZE_EXACT);
	}
	up_write(&fi->io_sem);
}

/**
 * fb_cut_failed() - the lower file could not be cut: the record says what it said before
 * @fi: the inode. Takes io_sem
 * @cut: from fb_cut_note()
 *
 * Context: process, under wb_lock. Sleeps.
 */
void fb_cut_failed(struct fb_inode *fi, const struct fb_cut *cut)
{
	lockdep_assert_held(&fi->wb_lock);
	down_write(&fi->io_sem);
	if (cut->concerns) {
		fb_note_size(fi, cut->old | (cut->was_exact ? PS_SIZE_EXACT : 0));
		assign_bit(FB_SIZE_EXACT, &fi->flags, cut->was_exact);
	}
	fb_cut_end(fi, i_size_read(&fi->vfs_inode));
	up_write(&fi->io_sem);
}

/**
 * fb_size_cut() - the lower file is cut
 * @fi: the inode; io_sem is held exclusively. fb_cut_end() follows
 * @size: in bytes
 */
void fb_size_cut(struct fb_inode *fi, loff_t size)
{
	lockdep_assert_held_write(&fi->io_sem);
	fi->durable_size = min(fi->durable_size, size);
	fi->below_size = min(fi->below_size, size);
}

/**
 * fb_flush_size() - everything is below: the record need not speak of the size any more
 * @fi: the inode, from fb_hand_over()
 *
 * Return: 0; the lower file system's error; -EINVAL if only PMem knows how long the file is.
 */
int fb_flush_size(struct fb_inode *fi)
{
	int err;

	if (!fi->record_size && !test_bit(FB_SIZE_EXACT, &fi->flags))
		return 0;
	/* Only the record knows how long it is: then what is asked for lies beyond the end, and is wrong. */
	if (i_size_read(fi->lower) < i_size_read(&fi->vfs_inode))
		return -EINVAL;
	err = fb_size_end_exact(fi, 0);
	if (!err)
		fi->durable_size = min(fi->durable_size, i_size_read(fi->lower));
	return err;
}

/**
 * fb_size_moved_below() - contents are at other places in the lower file now
 * @fi: the inode; io_sem is held exclusively
 * @size: in bytes: so much is durable below
 */
void fb_size_moved_below(struct fb_inode *fi, loff_t size)
{
	lockdep_assert_held_write(&fi->io_sem);
	fi->below_size = size;
	fi->durable_size = size;
}

/**
 * fb_size_to_record() - a sync makes the size durable in PMem
 * @fi: the inode, with a record; io_sem is held exclusively
 * @size: in bytes
 */
void fb_size_to_record(struct fb_inode *fi, loff_t size)
{
	lockdep_assert_held_write(&fi->io_sem);
	fb_note_size(fi, size);
	fi->durable_size = size;
}

/**
 * fb_size_synced_below() - a lower fsync has ended well
 * @fi: the inode; io_sem is held exclusively
 * @end: the size of the lower file before it, and the cuts before that
 *
 * If the file was cut since, the size of before says nothing, and the next sync goes below again.
 */
void fb_size_synced_below(struct fb_inode *fi, const struct fb_size_seen *end)
{
	lockdep_assert_held_write(&fi->io_sem);
	if (fi->cuts != end->cuts || (end->cuts & 1))
		return;
	if (test_and_clear_bit(FB_SIZE_EXACT, &fi->flags))
		fb_note_size(fi, fi->record_size);
	fi->durable_size = max(fi->durable_size, end->size);
	fb_size_is_below(fi, end->size);
}

/**
 * fb_size_record_gone() - the file has no record any more
 * @fi: the inode; io_sem is held exclusively, or no other task has it
 */
void fb_size_record_gone(struct fb_inode *fi)
{
	fi->record_size = 0;
	fi->durable_size = min(fi->durable_size, fi->below_size);
	clear_bit(FB_SIZE_EXACT, &fi->flags);
}
