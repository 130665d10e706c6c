// SPDX-License-Identifier: GPL-2.0-only
/*
 * The life of a file's size.
 *
 *	i_size		what read() and stat() see, of the upper inode
 *	lower i_size	less, while only PMem has the file's last pages
 *	record_size	what the file record says, durably; with FB_SIZE_EXACT "exactly this"
 *	durable_size	a crash leaves at least this much
 *	below_size	the same if there were no record
 *	truncate_seq	a sequence count: one more when a truncation begins, and when it ends; odd between
 *	size_to_sync	what syncfs() is about to make durable (sync/syncfs.c)
 *
 * Recovery extends the lower file to the recorded size. If the record says "exactly", recovery also
 * truncates the lower file to it.
 *
 *	step			changes				by
 *	grow			i_size				fb_size_grew()
 *	truncation, before	truncated_to, FB_TRUNCATED	fb_truncate_is_later()
 *	anything is durable
 *	its first sync, in PMem	as any sync in PMem; "exactly"	fb_size_to_record()
 *				begins, FB_TRUNCATED ends
 *	sync, in PMem		record_size, durable_size;	fb_size_to_record()
 *				"exactly" stays
 *	sync, below		durable_size, below_size;	fb_size_synced_below()
 *				"exactly", FB_TRUNCATED end
 *	writeback		below_size			fb_size_is_below()
 *	truncation		all of them			see below
 *	contents move		durable_size, below_size	fb_size_moved_below()
 *	the record goes		record_size is 0, durable_size	fb_size_record_gone()
 *				is below_size at most
 *
 * The steps of a truncation:
 *   1. fb_truncate_prepare() ends the "exactly" of an earlier truncation if that must not stay;
 *   2. fb_truncate_to_record() begins: truncate_seq becomes odd, and the record says "exactly";
 *   3. the caller truncates the lower file;
 *   4. fb_size_truncated() and fb_truncate_end(), or fb_truncate_failed().
 * A size that was read before or during a truncation is not used after it: struct fb_size_seen has
 * truncate_seq beside the size. Two other changes begin and end in the same way, and record no "exactly":
 * fallocate() that moves contents, and chattr that makes the file immutable.
 *
 * Locks: record_size, durable_size and below_size change under io_sem held exclusively, with two
 * exceptions. A task that raises below_size holds i_lock instead, and fb_flush_size() has wb_lock and the
 * locked range. i_size changes under i_lock, and truncate_seq under wb_lock. All of them may be read without
 * a lock.
 */
#include <linux/fs.h>

#include "../lower/lower.h"
#include "alloc.h"
#include "heal.h"
#include "size.h"

/* How many pages a file may grow behind a truncation that isn't durable below. Each of them is looked up. */
#define FB_EXACT_PAGES	256

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
 * @fi: the inode; no truncation can come between what shows that and this call
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
	if (ps_file_set_size(&fsb->ps, fi->file, word))
		fb_record_heal(fi, word);
	ps_fence(&fsb->ps);
	fi->record_size = word & ~PS_SIZE_EXACT;
}

/**
 * fb_size_end_exact() - make a truncation durable below, so that the record need not say "exactly"
 * @fi: the inode. Takes io_sem
 * @max: in bytes; the record says no more from then on
 *
 * Context: process, under wb_lock. Sleeps.
 * Return: 0 or the lower file system's error.
 */
int fb_size_end_exact(struct fb_inode *fi, loff_t max)
{
	int err = fb_fsync_below(fi, 1);

	lockdep_assert_held(&fi->wb_lock);
	if (err)
		return err;
	down_write(&fi->io_sem);
	clear_bit(FB_SIZE_EXACT, &fi->flags);
	fb_note_size(fi, min_t(loff_t, fi->record_size, max));	/* a sync may have raised it since */
	up_write(&fi->io_sem);
	return 0;
}

/**
 * fb_truncate_begin() - the lower file is about to become shorter, or its contents to move
 * @fi: the inode
 *
 * From now on no sync records a size that it read before. A read of the lower file that has begun is
 * repeated.
 *
 * Context: under wb_lock.
 */
void fb_truncate_begin(struct fb_inode *fi)
{
	lockdep_assert_held(&fi->wb_lock);
	WRITE_ONCE(fi->truncate_seq, fi->truncate_seq + 1);
	smp_wmb();	/* pairs with fb_read_lower() */
}

/**
 * fb_truncate_end() - the lower file is truncated, or the truncation has failed
 * @fi: the inode
 * @size: of the file, from now on
 *
 * Context: under wb_lock.
 */
void fb_truncate_end(struct fb_inode *fi, loff_t size)
{
	struct inode *inode = &fi->vfs_inode;

	lockdep_assert_held(&fi->wb_lock);
	spin_lock(&inode->i_lock);
	i_size_write(inode, size);
	spin_unlock(&inode->i_lock);
	smp_wmb();	/* pairs with fb_see_size() */
	WRITE_ONCE(fi->truncate_seq, fi->truncate_seq + 1);
}

/*
 * True if the record must say "exactly". Otherwise a crash could bring bytes beyond @size back: the recorded
 * size is larger, or PMem has pages there.
 */
static bool fb_truncate_needs_record(struct fb_inode *fi, loff_t size)
{
	unsigned long index = size >> PAGE_SHIFT;

	return fi->file != FB_NO_FILE &&
	       (fi->record_size > size || xa_find(&fi->index, &index, ULONG_MAX, XA_PRESENT));
}

/**
 * fb_truncate_prepare() - before a truncation: make an earlier one durable below, if need be
 * @fi: the inode
 * @size: of the file after the truncation that is about to begin
 *
 * The record has space for one truncation, and the file may have grown since the earlier one.
 *
 * Context: process, under wb_lock. Sleeps.
 * Return: 0 or the lower file system's error.
 */
int fb_truncate_prepare(struct fb_inode *fi, loff_t size)
{
	lockdep_assert_held(&fi->wb_lock);
	if (!test_bit(FB_SIZE_EXACT, &fi->flags) || size <= READ_ONCE(fi->record_size))
		return 0;
	/*
	 * Otherwise a sync in flight would find that truncate_seq has changed, and leave the old "exactly" in
	 * the record. Recovery would then truncate bytes that this sync has made durable.
	 */
	return fb_size_end_exact(fi, LLONG_MAX);
}

/**
 * fb_truncate_to_record() - the lower file is about to be truncated: the record says so first
 * @fi: the inode. Takes io_sem
 * @truncation: filled in
 * @size: of the file after the truncation
 *
 * Context: process, under wb_lock. Sleeps.
 */
void fb_truncate_to_record(struct fb_inode *fi, struct fb_truncation *truncation, loff_t size)
{
	lockdep_assert_held(&fi->wb_lock);
	down_write(&fi->io_sem);
	truncation->old_size = fi->record_size;
	truncation->was_exact = test_bit(FB_SIZE_EXACT, &fi->flags);
	truncation->recorded = fb_truncate_needs_record(fi, size);
	fb_truncate_begin(fi);
	if (truncation->recorded) {
		set_bit(FB_SIZE_EXACT, &fi->flags);
		fb_note_size(fi, size | PS_SIZE_EXACT);
	}
	up_write(&fi->io_sem);
}

/**
 * fb_truncate_failed() - the lower file could not be truncated: the record says what it said before
 * @fi: the inode. Takes io_sem
 * @truncation: from fb_truncate_to_record()
 *
 * Context: process, under wb_lock. Sleeps.
 */
void fb_truncate_failed(struct fb_inode *fi, const struct fb_truncation *truncation)
{
	lockdep_assert_held(&fi->wb_lock);
	down_write(&fi->io_sem);
	if (truncation->recorded) {
		fb_note_size(fi, truncation->old_size | (truncation->was_exact ? PS_SIZE_EXACT : 0));
		assign_bit(FB_SIZE_EXACT, &fi->flags, truncation->was_exact);
	}
	fb_truncate_end(fi, i_size_read(&fi->vfs_inode));
	up_write(&fi->io_sem);
}

/**
 * fb_size_truncated() - the lower file is truncated
 * @fi: the inode; io_sem is held exclusively. fb_truncate_end() follows
 * @size: in bytes
 */
void fb_size_truncated(struct fb_inode *fi, loff_t size)
{
	lockdep_assert_held_write(&fi->io_sem);
	fi->durable_size = min(fi->durable_size, size);
	fi->below_size = min(fi->below_size, size);
}

/**
 * fb_truncate_is_later() - leave a truncation without a record to the next sync
 * @fi: the inode; io_sem is held exclusively. fb_size_truncated() follows
 * @size: in bytes
 *
 * No call has promised anything of a file that was never synced and has no record. So the truncation need
 * not be durable before a sync call makes a size durable.
 *
 * Return: false: it has to be durable below before the next sync returns.
 */
bool fb_truncate_is_later(struct fb_inode *fi, loff_t size)
{
	lockdep_assert_held_write(&fi->io_sem);
	if (fi->file != FB_NO_FILE || test_bit(FB_IS_BELOW, &fi->flags) || fi->durable_size || fi->below_size)
		return false;
	if (!test_bit(FB_TRUNCATED, &fi->flags) || size < fi->truncated_to)
		fi->truncated_to = size;
	set_bit(FB_TRUNCATED, &fi->flags);
	return true;
}

/**
 * fb_flush_size() - make the size durable below, so that the record has none any more
 * @fi: the inode, from fb_hand_over()
 *
 * Return: 0; the lower file system's error; -EINVAL if only PMem knows how long the file is.
 */
int fb_flush_size(struct fb_inode *fi)
{
	int err;

	if (!fi->record_size && !test_bit(FB_SIZE_EXACT, &fi->flags))
		return 0;
	/* Only the record has the size. So the caller's request lies beyond the lower file's end: wrong. */
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
 * @size: how many bytes are durable below
 */
void fb_size_moved_below(struct fb_inode *fi, loff_t size)
{
	lockdep_assert_held_write(&fi->io_sem);
	fi->below_size = size;
	fi->durable_size = size;
}

/* Whether PMem has every page that a file has behind a truncation. */
static bool fb_has_pages_between(struct fb_inode *fi, loff_t truncated, loff_t size)
{
	pgoff_t index = truncated >> PAGE_SHIFT, beyond = DIV_ROUND_UP_ULL(size, PAGE_SIZE);

	lockdep_assert_held(&fi->io_sem);
	if (size <= truncated)
		return true;
	if (beyond - index > FB_EXACT_PAGES)
		return false;
	for (; index < beyond; index++)
		if (!xa_load(&fi->index, index))
			return false;
	return true;
}

#ifdef FB_BREAK_TRUNCATED	/* a fault on purpose: tests/vm/test_truncation_cuts.py must find it */
#define FB_BREAK_EXACT	1
#else
#define FB_BREAK_EXACT	0
#endif

/*
 * The record of a file that was truncated before it was ever durable begins to say "exactly", with the size
 * that the caller stores next. False: it can't. What was appended since the call began may be durable by
 * syncfs(), so the record must not say "exactly" of the size from before. Recovery can't truncate an
 * immutable file.
 */
static bool fb_size_begin_exact(struct fb_inode *fi, loff_t size)
{
	lockdep_assert_held_write(&fi->io_sem);
	if (test_bit(FB_IS_BELOW, &fi->flags) || test_bit(FB_SIZE_EXACT, &fi->flags) ||
	    IS_IMMUTABLE(&fi->vfs_inode) || i_size_read(&fi->vfs_inode) != size ||
	    !fb_has_pages_between(fi, fi->truncated_to, size))
		return false;
	clear_bit(FB_TRUNCATED, &fi->flags);
	if (FB_BREAK_EXACT)
		return true;
	set_bit(FB_SIZE_EXACT, &fi->flags);
	fb_flush_orphans_soon(FB_SB(fi->vfs_inode.i_sb));
	return true;
}

/**
 * fb_size_to_record() - a sync makes the size durable in PMem
 * @fi: the inode, with a record; io_sem is held exclusively
 * @size: in bytes; data up to it is durable
 *
 * A record that says "exactly" says so of the new size then. Recovery truncates the lower file to that, and
 * storage may still have what was truncated. So PMem must have every page from the truncated end on.
 *
 * Return: 0; -EAGAIN: the record can't say what has happened to the file.
 */
int fb_size_to_record(struct fb_inode *fi, loff_t size)
{
	lockdep_assert_held_write(&fi->io_sem);
	if (test_bit(FB_TRUNCATED, &fi->flags)) {
		if (!fb_size_begin_exact(fi, size))
			return -EAGAIN;
	} else if (test_bit(FB_SIZE_EXACT, &fi->flags) && !fb_has_pages_between(fi, fi->record_size, size)) {
		return -EAGAIN;
	}
	fb_note_size(fi, size | (test_bit(FB_SIZE_EXACT, &fi->flags) ? PS_SIZE_EXACT : 0));
	fi->durable_size = size;
	return 0;
}

/**
 * fb_size_synced_below() - a lower fsync has succeeded
 * @fi: the inode; io_sem is held exclusively
 * @end: the size of the lower file before the fsync, and truncate_seq before that
 *
 * If the file was truncated since, @end is not used, and the next sync goes below again.
 */
void fb_size_synced_below(struct fb_inode *fi, const struct fb_size_seen *end)
{
	lockdep_assert_held_write(&fi->io_sem);
	if (fi->truncate_seq != end->truncate_seq || (end->truncate_seq & 1))
		return;
	if (test_and_clear_bit(FB_SIZE_EXACT, &fi->flags))
		fb_note_size(fi, fi->record_size);
	clear_bit(FB_TRUNCATED, &fi->flags);
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
