// SPDX-License-Identifier: GPL-2.0-only
/*
 * Writeback: out-of-sync pages are written to the lower file, many at a time and
 * in file order, then one lower fsync makes the batch durable and clean.
 *
 * Nothing waits for this but unmount, drain, and calls that need the lower file
 * up to date (range.c). The worker runs when free and clean pages together
 * are less than a quarter of the cache, until they are half of it; and when there is no
 * file record left.
 *
 * A batch:
 *   1. io_sem exclusively, briefly: the pages lose their mappings and begin
 *      writeback. Every write that was under way is over; every later one
 *      comes through touch and takes the flag away;
 *   2. buffered writes to the lower file, up to the file's size;
 *   3. the lower fsync;
 *   4. pages that still have the flag are clean.
 * wb_lock is held all the time: so pages under writeback stay in the index,
 * for whoever removes pages holds wb_lock too.
 *
 * If 2 or 3 fails the pages stay out-of-sync, the next fsync of the file returns
 * the error, sysfs shows it, and the worker tries again some seconds later.
 */
#include <linux/bvec.h>
#include <linux/uio.h>

#include "cache.h"
#include "claim.h"
#include "page_index.h"
#include "recover.h"
#include "trace.h"
#include "upgrade.h"
#include "writeback.h"

#define FB_WRITEBACK_BATCH	256
#define FB_RETRY_DELAY		(5 * HZ)

#ifdef FB_BREAK_WRITEBACK_ORDER	/* a fault on purpose: pages are clean before step 3 */
#define FB_BREAK_ORDER	1
#else
#define FB_BREAK_ORDER	0
#endif

struct fb_batch {
	struct fb_inode *fi;
	unsigned int nr;
	struct fb_page *pages[FB_WRITEBACK_BATCH];
	struct bio_vec bvec[FB_WRITEBACK_BATCH];
};

/* Step 1. Returns false when no out-of-sync page is left in the range. */
static bool fb_batch_begin(struct fb_inode *fi, struct fb_batch *batch, pgoff_t first, pgoff_t last,
			   xa_mark_t mark)
{
	unsigned long index = first;
	struct fb_page *page;

	batch->fi = fi;
	batch->nr = 0;
	while (batch->nr < FB_WRITEBACK_BATCH) {
		page = xa_find(&fi->index, &index, last, mark);
		if (!page)
			break;
		batch->pages[batch->nr++] = page;
		if (index++ == last)
			break;
	}
	if (!batch->nr)
		return false;
	if (mapping_mapped(fi->lower->i_mapping)) {
		first = batch->pages[0]->index;
		last = batch->pages[batch->nr - 1]->index;
		unmap_mapping_pages(fi->lower->i_mapping, first, last - first + 1, false);
	}
	for (unsigned int i = 0; i < batch->nr; i++)
		fb_page_begin_writeback(fi, batch->pages[i]);
	ps_fence(&FB_SB(fi->vfs_inode.i_sb)->ps);
	return true;
}

/* Writes pages [from, to) of the batch, neighbours in the file, to the lower file. */
static int fb_write_run(struct fb_inode *fi, struct fb_batch *batch, unsigned int from, unsigned int to)
{
	struct fb_sb *fsb = FB_SB(fi->vfs_inode.i_sb);
	loff_t pos = (loff_t)batch->pages[from]->index << PAGE_SHIFT;
	size_t len = min_t(loff_t, (to - from) * PAGE_SIZE, i_size_read(&fi->vfs_inode) - pos);
	struct iov_iter iter;
	ssize_t ret;

	if (pos >= i_size_read(&fi->vfs_inode))
		return 0;
	for (unsigned int i = from; i < to; i++)
		bvec_set_page(&batch->bvec[i], pfn_to_page(fb_page_pfn(fsb, batch->pages[i])), PAGE_SIZE, 0);
	iov_iter_bvec(&iter, ITER_SOURCE, &batch->bvec[from], to - from, len);
	while (iov_iter_count(&iter)) {
		ret = vfs_iter_write(fi->wb_file, &iter, &pos, 0);
		if (ret <= 0)
			return ret ?: -EIO;
	}
	trace_fb_writeback(fi, batch->pages[from]->index, to - from);
	return 0;
}

/*
 * The user has written long ago, and lost then what a writer loses: what was set since, stays. A
 * writer takes the set-user-ID bit away unless he is privileged, which our credentials see to; and
 * a file's capabilities always, unless the inode is known to have none. Returns whether we say so
 * of an inode of which it isn't known.
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

/* Step 2, as an errand. */
static int fb_batch_copy(void *arg)
{
	struct fb_batch *batch = arg;
	struct fb_inode *fi = batch->fi;
	bool unknown = fb_keep_capabilities(fi->lower);
	unsigned int from = 0, to;
	int err = 0;

	while (!err && from < batch->nr) {
		for (to = from + 1; to < batch->nr; to++) {
			if (batch->pages[to]->index != batch->pages[to - 1]->index + 1)
				break;
		}
		err = fb_write_run(fi, batch, from, to);
		from = to;
	}
	if (unknown)
		fb_kept_capabilities(fi->lower);
	return err;
}

/* Steps 2 and 3. */
static int fb_batch_write(struct fb_inode *fi, struct fb_batch *batch)
{
	int err = fb_errand(FB_SB(fi->vfs_inode.i_sb), fb_batch_copy, batch);
	loff_t size = i_size_read(fi->lower);

	if (err || FB_BREAK_ORDER)
		return err;
	err = vfs_fsync(fi->wb_file, 1);
	if (!err)
		fb_size_is_below(fi, size);
	return err;
}

/* Step 4. Returns the error, having told everyone who asks. */
static int fb_batch_end(struct fb_inode *fi, struct fb_batch *batch, int err)
{
	struct fb_sb *fsb = FB_SB(fi->vfs_inode.i_sb);
	unsigned int clean = 0;

	for (unsigned int i = 0; i < batch->nr; i++)
		clean += fb_page_end_writeback(fi, batch->pages[i], !err);
	ps_fence(&fsb->ps);
	fb_count(fsb, FB_PAGES_WRITTEN_BACK, clean);
	WRITE_ONCE(fsb->last_error, err);
	if (err) {
		fb_count(fsb, FB_WRITEBACK_ERRORS, 1);
		mapping_set_error(fi->vfs_inode.i_mapping, err);
		pr_err_ratelimited("%s: writing back inode %lu failed: error %d; its pages stay in PMem\n",
				   fsb->cache_name, fi->vfs_inode.i_ino, err);
	}
	return err;
}

/* Writes pages with @mark in the range back; io_sem is held exclusively by the caller if @exclusive. */
static int __fb_writeback_range(struct fb_inode *fi, pgoff_t first, pgoff_t last, xa_mark_t mark,
				bool exclusive)
{
	struct fb_batch *batch;
	bool more;
	int err = 0;

	lockdep_assert_held(&fi->wb_lock);
	if (!xa_marked(&fi->index, FB_MARK_OUT_OF_SYNC))
		return 0;
	batch = kvmalloc(sizeof(*batch), GFP_NOFS | __GFP_NOFAIL);
	while (!err) {
		if (!exclusive)
			down_write(&fi->io_sem);
		more = fb_batch_begin(fi, batch, first, last, mark);
		if (!exclusive)
			up_write(&fi->io_sem);
		if (!more)
			break;
		first = batch->pages[batch->nr - 1]->index + 1;
		err = fb_batch_end(fi, batch, fb_batch_write(fi, batch));
		if (!first || first > last)
			break;
		cond_resched();
	}
	kvfree(batch);
	return err;
}

/**
 * fb_writeback_range() - write the out-of-sync pages of a range back, once
 * @fi: the inode; the caller has a reference. Takes wb_lock and io_sem
 * @first: first page
 * @last: last page
 *
 * Pages that are changed meanwhile are out-of-sync again afterwards.
 *
 * Return: 0 or a negative errno.
 */
int fb_writeback_range(struct fb_inode *fi, pgoff_t first, pgoff_t last)
{
	int err;

	mutex_lock(&fi->wb_lock);
	err = __fb_writeback_range(fi, first, last, FB_MARK_OUT_OF_SYNC, false);
	mutex_unlock(&fi->wb_lock);
	return err;
}

/**
 * fb_evict_range() - the lower file becomes primary for a range
 * @fi: the inode; wb_lock and io_sem (exclusively) are held
 * @first: first page
 * @last: last page
 *
 * Return: 0; or why pages could not be written back: then all are still here. -EBUSY:
 * pages are pinned by hardware.
 */
int fb_evict_range(struct fb_inode *fi, pgoff_t first, pgoff_t last)
{
	unsigned long index = first;
	int err;

	err = __fb_writeback_range(fi, first, last, FB_MARK_OUT_OF_SYNC, true);
	if (err)
		return err;
	if (xa_find(&fi->index, &index, last, FB_MARK_OUT_OF_SYNC))
		return -EBUSY;
	fb_drop_range(fi, first, last);
	return 0;
}

/* What the worker does with a file: pages that would stay anyway need not be written back. */
static int fb_writeback_for_reclaim(struct fb_inode *fi)
{
	int err;

	mutex_lock(&fi->wb_lock);
	err = __fb_writeback_range(fi, 0, ULONG_MAX, FB_MARK_RECLAIM, false);
	mutex_unlock(&fi->wb_lock);
	return err;
}

static bool fb_writeback_wanted(struct fb_sb *fsb, unsigned int of_four)
{
	unsigned long all, ready;

	spin_lock(&fsb->lru_lock);
	all = fsb->ps.nr_pages - fsb->nr_resident;
	ready = fsb->nr_free + fsb->nr_clean - fsb->nr_resident_clean;
	spin_unlock(&fsb->lru_lock);
	return ready < all / 4 * of_four;
}

/* Visits every file once, or until enough is clean. Returns the first error; it doesn't end the round. */
static int fb_writeback_round(struct fb_sb *fsb)
{
	struct fb_walk walk;
	struct fb_inode *fi;
	int err = 0, err2;

	fb_walk_begin(fsb, &fsb->inodes, &walk);
	while (fb_writeback_wanted(fsb, 2) && (fi = fb_walk_next(fsb, &walk))) {
		err2 = fb_writeback_for_reclaim(fi);
		err = err ?: err2;
		iput(&fi->vfs_inode);
		if (fb_cache_low(fsb))
			fb_reclaim(fsb, fsb->ps.nr_pages / 4);
	}
	fb_walk_end(fsb, &walk);
	return err;
}

/* There is no file record left: files without out-of-sync pages give theirs up, until an eighth is free. */
static void fb_writeback_free_records(struct fb_sb *fsb)
{
	u32 most = fsb->ps.nr_files - DIV_ROUND_UP(fsb->ps.nr_files, 8);
	struct forebay_dropped dropped;
	struct fb_walk walk;
	struct fb_inode *fi;

	fb_walk_begin(fsb, &fsb->inodes, &walk);
	while (READ_ONCE(fsb->nr_files_used) > most && (fi = fb_walk_next(fsb, &walk))) {
		if (!xa_marked(&fi->index, FB_MARK_OUT_OF_SYNC))
			fb_drop(fi, 0, FB_LAST_PAGE, &dropped);
		iput(&fi->vfs_inode);
		cond_resched();
	}
	fb_walk_end(fsb, &walk);
}

/**
 * fb_writeback_work() - the worker: clean pages are made, and given up when needed
 * @work: fb_sb->writeback_work
 *
 * A round may find only pages that are pinned, or changed again at once: then it
 * waits, as after an error.
 */
void fb_writeback_work(struct work_struct *work)
{
	struct fb_sb *fsb = container_of(to_delayed_work(work), struct fb_sb, writeback_work);
	struct percpu_counter *cleaned = &fsb->counters[FB_PAGES_WRITTEN_BACK];
	s64 before;

	fb_take_held(fsb);
	if (fb_cache_low(fsb) && READ_ONCE(fsb->pins.charged))
		fb_claims_refresh_all(fsb);
	if (fb_cache_low(fsb))
		fb_reclaim(fsb, fsb->ps.nr_pages / 4);
	if (READ_ONCE(fsb->nr_files_used) == fsb->ps.nr_files)
		fb_writeback_free_records(fsb);
	if (!fb_writeback_wanted(fsb, 1))
		return;
	while (fb_writeback_wanted(fsb, 2) && READ_ONCE(fsb->nr_out_of_sync)) {
		before = percpu_counter_sum(cleaned);
		if (fb_writeback_round(fsb) || percpu_counter_sum(cleaned) == before) {
			queue_delayed_work(fsb->wq, &fsb->writeback_work, FB_RETRY_DELAY);
			return;
		}
	}
}

/**
 * fb_writeback_kick() - wake the worker
 * @fsb: the mount. Any context
 */
void fb_writeback_kick(struct fb_sb *fsb)
{
	queue_delayed_work(fsb->wq, &fsb->writeback_work, 0);
}

/**
 * fb_writeback_all() - write everything back: drain, freeze, unmount
 * @fsb: the mount
 * @killable: a fatal signal ends it, between two files
 *
 * Return: 0 when all that was out-of-sync at the beginning is durable below and
 * all recovered pages have met their files; or the first error, after every
 * file was tried.
 */
int fb_writeback_all(struct fb_sb *fsb, bool killable)
{
	int err = fb_recover_rest(fsb), err2;
	struct fb_walk walk;
	struct fb_inode *fi;

	fb_walk_begin(fsb, &fsb->inodes, &walk);
	while ((fi = fb_walk_next(fsb, &walk))) {
		if (killable && fatal_signal_pending(current))
			err2 = -EINTR;
		else
			err2 = fb_writeback_range(fi, 0, ULONG_MAX);
		err = err ?: err2;
		iput(&fi->vfs_inode);
	}
	return err;
}
