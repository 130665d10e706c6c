// SPDX-License-Identifier: GPL-2.0-only
/*
 * Writeback: out-of-sync pages are written to the lower file, many at a time and in file order. Then one
 * lower fsync makes the batch durable, and its pages become clean.
 *
 * The worker calls this when free pages run low (worker.c). Only unmount, drain, and calls that need the
 * lower file up to date (vfs/range.c) wait for it.
 *
 * A batch:
 *   1. io_sem exclusively, briefly: the pages lose their mappings and begin writeback. Writes that were in
 *      progress have ended. Each later write comes through touch, which clears the flag;
 *   2. buffered writes to the lower file, up to the file's size;
 *   3. the lower fsync;
 *   4. pages that still have the flag become clean.
 * wb_lock is held all the time. A task that removes pages from the index holds wb_lock, too, so pages under
 * writeback stay there. Between two batches wb_lock is given up: truncate, setxattr and other calls that need
 * it wait for one batch, and not for a file of gigabytes.
 *
 * If step 2 or 3 fails, the pages stay out-of-sync. The next fsync of the file returns the error, sysfs
 * shows it, and the file has its next turn some seconds later (turn.c).
 */
#include <linux/delay.h>
#include <linux/sched/signal.h>
#include <linux/uio.h>

#include "../lower/lower.h"
#include "../page/bad.h"
#include "../page/copies.h"
#include "../page/index.h"
#include "../page/size.h"
#include "../page/record.h"
#include "../page/times.h"
#include "../sync/cost.h"
#include "../trace.h"
#include "writeback.h"

#ifdef FB_BREAK_WRITEBACK_ORDER	/* a fault on purpose: pages are clean before step 3 */
#define FB_BREAK_ORDER	1
#else
#define FB_BREAK_ORDER	0
#endif

/*
 * True if the page must be written. A page without space was not changed since it was copied. The lower
 * folio has the same bytes, and the lower fsync writes them if storage lacks them, unless storage has refused
 * a write of that file: then the folio may be clean although it was never written.
 */
static bool fb_is_changed(const struct fb_inode *fi, const struct fb_page *page)
{
	return page->has_space || READ_ONCE(fi->lower->i_mapping->wb_err);
}

/* Step 1. Returns false when no page with the mark is left in the range. */
static bool fb_batch_begin(struct fb_inode *fi, struct fb_batch *batch)
{
	unsigned long index = batch->next, first, last;
	struct fb_page *page;

	lockdep_assert_held_write(&fi->io_sem);
	batch->nr = 0;
	while (batch->nr < FB_WRITEBACK_BATCH) {
		page = xa_find(&fi->index, &index, batch->last, batch->mark);
		if (!page)
			break;
		if (page->bad)
			batch->lost = true;
		else
			batch->pages[batch->nr++] = page;
		if (index++ == batch->last)
			break;
	}
	if (!batch->nr)
		return false;
	if (mapping_mapped(fi->lower->i_mapping)) {
		first = batch->pages[0]->index;
		last = batch->pages[batch->nr - 1]->index;
		unmap_mapping_pages(fi->lower->i_mapping, first, last - first + 1, false);
	}
	for (unsigned int i = 0; i < batch->nr; i++) {
		__assign_bit(i, batch->changed, fb_is_changed(fi, batch->pages[i]));
		fb_page_begin_writeback(fi, batch->pages[i]);
	}
	ps_fence(&FB_SB(fi->vfs_inode.i_sb)->ps);
	return true;
}

/*
 * Copies pages of the batch, from @from on and neighbours in the file, out of PMem. The lower file system's
 * own copy would crash the machine if it met a bad line. Returns the first page that was not copied: @from
 * if that one is bad.
 */
static unsigned int fb_batch_read(struct fb_inode *fi, struct fb_batch *batch, unsigned int from)
{
	struct fb_sb *fsb = FB_SB(fi->vfs_inode.i_sb);
	unsigned int to;

	for (to = from; to < batch->nr && to - from < FB_BOUNCE_PAGES; to++) {
		if (!test_bit(to, batch->changed) ||
		    (to > from && batch->pages[to]->index != batch->pages[to - 1]->index + 1))
			break;
		if (fb_bad_copy(fsb, batch->pages[to], batch->bounce + (to - from) * PAGE_SIZE))
			continue;
		if (to == from) {
			batch->lost = true;
			fb_bad_page(fi, batch->pages[to]);
		}
		break;
	}
	if (to > from)
		fb_copied(fsb, FB_COPIED_BACK, (to - from) * PAGE_SIZE);
	return to;
}

/* Writes pages [from, to) of the batch, which fb_batch_read() has copied, to the lower file. */
static int fb_write_run(struct fb_inode *fi, struct fb_batch *batch, unsigned int from, unsigned int to)
{
	loff_t pos = (loff_t)batch->pages[from]->index << PAGE_SHIFT;
	size_t len = min_t(loff_t, (to - from) * PAGE_SIZE, i_size_read(&fi->vfs_inode) - pos);
	struct kvec bounce = { .iov_base = batch->bounce, .iov_len = len };
	struct iov_iter iter;
	ssize_t ret;

	if (pos >= i_size_read(&fi->vfs_inode))
		return 0;
	iov_iter_kvec(&iter, ITER_SOURCE, &bounce, 1, len);
	while (iov_iter_count(&iter)) {
		ret = vfs_iter_write(fi->wb_file, &iter, &pos, 0);
		if (ret <= 0)
			return ret ?: -EIO;
	}
	trace_fb_writeback(fi, batch->pages[from]->index, to - from);
	return 0;
}

/*
 * Writing back is not the user's write, which came long ago: a set-user-ID bit and capabilities that were
 * set since must stay. The lower file system clears the set-user-ID bit unless the writer is privileged;
 * the credentials here are. It removes capabilities unless the inode is marked as having none (S_NOSEC).
 * So the inode is marked for the time of the write. Returns whether the mark is new.
 */
static bool fb_keep_capabilities(struct inode *lower)
{
	bool unknown;

	inode_lock(lower);
	unknown = !IS_NOSEC(lower);
	lower->i_flags |= S_NOSEC;
	inode_unlock(lower);
	return unknown;
}

static void fb_kept_capabilities(struct inode *lower)
{
	inode_lock(lower);
	lower->i_flags &= ~S_NOSEC;
	inode_unlock(lower);
}

/* Step 2; runs with the credentials of fb_run_as_mounter(). */
static int fb_batch_copy(void *arg)
{
	struct fb_batch *batch = arg;
	struct fb_inode *fi = batch->fi;
	bool unknown = fb_keep_capabilities(fi->lower);
	unsigned int from = 0, to;
	int err = 0;

	while (!err && (from = find_next_bit(batch->changed, batch->nr, from)) < batch->nr) {
		to = fb_batch_read(fi, batch, from);
		if (to > from)
			err = fb_write_run(fi, batch, from, to);
		from = max(to, from + 1);
	}
	if (unknown)
		fb_kept_capabilities(fi->lower);
	return err;
}

/* A full fsync has ended well. */
static void fb_batch_is_below(struct fb_inode *fi, const struct fb_times *times)
{
	down_write(&fi->io_sem);
	fb_is_below(fi);
	fb_times_are_below(fi, times);
	up_write(&fi->io_sem);
}

/*
 * Steps 2 and 3. The first fsync of a file that storage may not have is a full one. ext4 leaves the link of a
 * file that was made without a name out of an fdatasync, and deletes the file after a crash.
 *
 * An fsync tells of an error once for each struct file. fb_flush_truncation() has an fsync of wb_file without
 * wb_lock, which may be told instead of this one. So the batch also looks whether the mapping had an error.
 */
static int fb_batch_write(struct fb_inode *fi, struct fb_batch *batch)
{
	struct address_space *mapping = fi->wb_file->f_mapping;
	errseq_t before = filemap_sample_wb_err(mapping);
	int err = fb_run_as_mounter(FB_SB(fi->vfs_inode.i_sb), fb_batch_copy, batch);
	bool times_too = fb_time_only_in_record(fi) || !test_bit(FB_IS_BELOW, &fi->flags);
	struct fb_times times = fb_times_now(fi);
	loff_t size = i_size_read(fi->lower);
	u64 start_ns = ktime_get_ns();

	if (err || FB_BREAK_ORDER)
		return err;
	err = fb_fsync_lower(fi->wb_file, !times_too) ?: filemap_check_wb_err(mapping, before);
	if (!err && !times_too)
		fb_cost_lower(FB_SB(fi->vfs_inode.i_sb), bitmap_weight(batch->changed, batch->nr), start_ns);
	if (!err)
		fb_size_is_below(fi, size);
	if (!err && times_too)
		fb_batch_is_below(fi, &times);
	return err;
}

/* Step 4. Returns the error, which the next fsync and sysfs tell. */
static int fb_batch_end(struct fb_inode *fi, struct fb_batch *batch, int err)
{
	struct fb_sb *fsb = FB_SB(fi->vfs_inode.i_sb);
	unsigned int clean = 0;

	for (unsigned int i = 0; i < batch->nr; i++)
		clean += fb_page_end_writeback(fi, batch->pages[i], !err);
	ps_fence(&fsb->ps);
	batch->cleaned += clean;
	fb_count(fsb, FB_PAGES_WRITTEN_BACK, clean);
	if (err) {
		WRITE_ONCE(fsb->last_error, err);
		if (!test_and_set_bit(FB_WRITE_FAILED, &fi->flags))
			atomic_inc(&fsb->nr_failing);
		fb_count(fsb, FB_WRITEBACK_ERRORS, 1);
		mapping_set_error(fi->vfs_inode.i_mapping, err);
		pr_err_ratelimited("%s: writing back inode %llu failed: error %d; its pages stay in PMem\n",
				   fsb->cache_name, (u64)fi->vfs_inode.i_ino, err);
	}
	return err;
}

/**
 * fb_batch_alloc() - begin a writeback of pages of a range
 * @fi: the inode; the caller has a reference
 * @first: first page
 * @last: last page
 * @mark: of the pages that are written
 *
 * Context: process. Sleeps.
 * Return: for fb_writeback_batch() and fb_batch_free(); NULL if the file has no such page.
 */
struct fb_batch *fb_batch_alloc(struct fb_inode *fi, pgoff_t first, pgoff_t last, xa_mark_t mark)
{
	struct fb_batch *batch;

	if (!xa_marked(&fi->index, FB_MARK_OUT_OF_SYNC))
		fb_write_succeeds(fi);
	if (!xa_marked(&fi->index, mark))
		return NULL;
	batch = kvmalloc(sizeof(*batch), GFP_NOFS | __GFP_NOFAIL);
	batch->fi = fi;
	batch->next = first;
	batch->last = last;
	batch->mark = mark;
	batch->more = true;
	batch->whole = !first && last == ULONG_MAX;
	batch->lost = false;
	batch->err = 0;
	batch->cleaned = 0;
	return batch;
}

/**
 * fb_batch_more() - whether a writeback goes on
 * @batch: from fb_batch_alloc(), or NULL: it doesn't
 */
bool fb_batch_more(const struct fb_batch *batch)
{
	return batch && batch->more && !batch->err;
}

/**
 * fb_writeback_batch() - write one batch
 * @fi: the inode. Takes io_sem
 * @batch: from fb_batch_alloc()
 *
 * Context: process, under wb_lock. Sleeps.
 */
void fb_writeback_batch(struct fb_inode *fi, struct fb_batch *batch)
{
	lockdep_assert_held(&fi->wb_lock);
	down_write(&fi->io_sem);
	batch->more = fb_batch_begin(fi, batch);
	up_write(&fi->io_sem);
	if (!batch->more)
		return;
	batch->next = batch->pages[batch->nr - 1]->index + 1;
	batch->more = batch->next && batch->next <= batch->last;
	batch->err = fb_batch_end(fi, batch, fb_batch_write(fi, batch));
	cond_resched();
}

/**
 * fb_batch_free() - end a writeback
 * @batch: from fb_batch_alloc(), or NULL
 *
 * Only a writeback that has seen the whole file shows that storage refuses nothing of it any more.
 *
 * Return: 0 or the error.
 */
int fb_batch_free(struct fb_batch *batch)
{
	int err;

	if (!batch)
		return 0;
	if (batch->whole && !batch->more && !batch->err)
		fb_write_succeeds(batch->fi);
	err = batch->lost && !batch->err ? -EIO : batch->err;
	kvfree(batch);
	return err;
}

/**
 * fb_writeback_locked() - write the out-of-sync pages of a range back under one hold of wb_lock
 * @fi: the inode; the caller has a reference. Takes io_sem
 * @first: first page
 * @last: last page
 *
 * For a caller that takes the pages out of the index then, and holds off other tasks anyway.
 *
 * Context: process, under wb_lock. Sleeps.
 * Return: 0 or a negative errno.
 */
int fb_writeback_locked(struct fb_inode *fi, pgoff_t first, pgoff_t last)
{
	struct fb_batch *batch = fb_batch_alloc(fi, first, last, FB_MARK_OUT_OF_SYNC);

	lockdep_assert_held(&fi->wb_lock);
	while (fb_batch_more(batch))
		fb_writeback_batch(fi, batch);
	return fb_batch_free(batch);
}

static int fb_writeback_batches(struct fb_inode *fi, pgoff_t first, pgoff_t last, bool killable)
{
	struct fb_batch *batch = fb_batch_alloc(fi, first, last, FB_MARK_OUT_OF_SYNC);

	while (fb_batch_more(batch)) {
		mutex_lock(&fi->wb_lock);
		fb_writeback_batch(fi, batch);
		mutex_unlock(&fi->wb_lock);
		if (killable && fb_batch_more(batch) && fatal_signal_pending(current))
			batch->err = -EINTR;
	}
	return fb_batch_free(batch);
}

/**
 * fb_writeback_range() - write the out-of-sync pages of a range back, once
 * @fi: the inode; the caller has a reference. Takes wb_lock, batch by batch, and io_sem
 * @first: first page
 * @last: last page
 *
 * Pages that are changed meanwhile are out-of-sync again afterwards.
 *
 * Context: process. Sleeps.
 * Return: 0, -EINTR after a fatal signal, or the error.
 */
int fb_writeback_range(struct fb_inode *fi, pgoff_t first, pgoff_t last)
{
	return fb_writeback_batches(fi, first, last, true);
}

/**
 * fb_wb_lock_soon() - take wb_lock for the worker, if it is free within some 20 ms
 * @fi: the inode
 *
 * A call that holds wb_lock may take long, in the lower file system: a copy of gigabytes, throttled by its
 * user's cgroup. There is one worker for all files, so it doesn't wait for that, and passes the file over.
 *
 * Context: process. Sleeps.
 * Return: whether it has taken the lock.
 */
bool fb_wb_lock_soon(struct fb_inode *fi)
{
	for (unsigned int tries = 0; tries < 20; tries++) {
		if (mutex_trylock(&fi->wb_lock))
			return true;
		fsleep(USEC_PER_MSEC);
	}
	return false;
}

/**
 * fb_writeback_file() - write a file back: its out-of-sync pages, and its time if no page took it
 * @fi: the inode; the caller has a reference. Takes wb_lock, batch by batch, and io_sem
 * @killable: a fatal signal ends it, between two batches
 *
 * Context: process. Sleeps.
 * Return: 0, -EINTR or the error.
 */
int fb_writeback_file(struct fb_inode *fi, bool killable)
{
	int err = fb_writeback_batches(fi, 0, ULONG_MAX, killable);

	if (err)
		return err;
	mutex_lock(&fi->wb_lock);
	err = fb_time_to_lower(fi);
	mutex_unlock(&fi->wb_lock);
	return err;
}
