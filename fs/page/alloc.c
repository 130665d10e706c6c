// SPDX-License-Identifier: GPL-2.0-only
/*
 * Free pages of the cache device, and free file records: taken, given back, waited for. Where they run low,
 * the worker is woken (writeback/worker.c).
 *
 * The last free pages are for files that have no more than their share (share.c), once so many are to be
 * free. So a file that is synced faster than storage takes its pages leaves room for others, also for those
 * that come. Its own syncs go below meanwhile, and its MAP_SYNC stores wait.
 * If such a wait is in vain, nothing is reserved until a page becomes free: tasks may hold all the others. If
 * one does become free, others may take it at once, time and again. So each wait in vain also entitles the
 * file to one page of those that are reserved.
 *
 * A page that is given up may still be busy: hardware holds it, or a pipe that got it from vmsplice(). Only
 * unmount waits for the holders, and not for long. The page has no record any more, but waits in busy_pages
 * until the last holder has let go. So a holder reads and stores no other file's data. No mapping has the
 * page, so there are no new holders.
 */
#include <linux/sched/signal.h>

#include "alloc.h"
#include "mapping.h"
#include "page.h"
#include "share.h"

/* How long a task waits for a free page at a time, and in all. */
#define FB_SPACE_WAIT		(5 * HZ)
#define FB_SPACE_PATIENCE	(120 * HZ)
#define FB_ORPHAN_DELAY		HZ
/* One page in so many is reserved: half of the worker's watermark. */
#define FB_RESERVED		16

/* The worker sees to it that so many pages are free. */
static unsigned long fb_cache_watermark(const struct fb_sb *fsb)
{
	return fb_cache_part(fsb, 8);
}

/**
 * fb_cache_low() - whether free pages are so few that more must be made
 * @fsb: the mount
 *
 * Below an eighth of the cache, resident pages not counted, the worker gives clean pages up, and writes
 * pages back to have clean ones. Any context.
 */
bool fb_cache_low(struct fb_sb *fsb)
{
	return READ_ONCE(fsb->nr_free) < fb_cache_watermark(fsb);
}

/* True if there is a free page that the file may take. */
static bool fb_may_take_page(const struct fb_inode *fi)
{
	const struct fb_sb *fsb = FB_SB(fi->vfs_inode.i_sb);

	/* Less than the watermark: only below that the worker makes pages free unasked. */
	lockdep_assert_held(&fsb->lru_lock);
	return fsb->nr_free && (fsb->nothing_frees || fi->waits_in_vain ||
				fb_may_have(fi, fb_cache_part(fsb, FB_RESERVED)));
}

/**
 * fb_cache_room() - how many pages one sync may take
 * @fsb: the mount
 *
 * Half of what is free above the worker's watermark, so that large syncs leave a reserve. An eighth of what
 * is free, if that is more: small syncs may use the reserve. Any context.
 */
unsigned long fb_cache_room(const struct fb_sb *fsb)
{
	unsigned long nr_free = READ_ONCE(fsb->nr_free), watermark = fb_cache_watermark(fsb);

	return max(nr_free > watermark ? (nr_free - watermark) / 2 : 0, nr_free / 8);
}

/**
 * fb_cache_want_room() - a sync has gone below because it had more pages than fb_cache_room()
 * @fsb: the mount
 * @pages: how many
 *
 * The worker gives up clean pages for the next sync of that size, if there are as many. Any context.
 */
void fb_cache_want_room(struct fb_sb *fsb, unsigned long pages)
{
	unsigned long want = fb_cache_watermark(fsb) + 2 * min(pages, fsb->ps.nr_pages);

	if (READ_ONCE(fsb->nr_free) + READ_ONCE(fsb->nr_clean) - READ_ONCE(fsb->nr_resident_clean) >= want)
		WRITE_ONCE(fsb->want_free, want);
	fb_writeback_kick(fsb);
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
 * fb_age_step() - how often to look for files that are old
 * @age: seconds
 *
 * Return: in jiffies.
 */
unsigned long fb_age_step(unsigned int age)
{
	return max(age * HZ / 4, (unsigned long)HZ);
}

/**
 * fb_age_begin() - a file has its first page that is out-of-sync
 * @fi: the inode. Any context
 */
void fb_age_begin(struct fb_inode *fi)
{
	struct fb_sb *fsb = FB_SB(fi->vfs_inode.i_sb);
	unsigned int age = READ_ONCE(fsb->writeback_age);

	WRITE_ONCE(fi->out_of_sync_since, jiffies);
	if (age)
		queue_delayed_work(fsb->wq, &fsb->age_work, fb_age_step(age));
}

/**
 * fb_page_alloc() - take a free page
 * @fi: the inode that it is for
 *
 * The page is the caller's until fb_page_put_free() or fb_pages_commit_and_insert().
 * Wakes the worker when pages run low. Doesn't sleep.
 *
 * Return: a page, or NULL if none is free, or if the free ones are for files within their share.
 */
struct fb_page *fb_page_alloc(struct fb_inode *fi)
{
	struct fb_sb *fsb = FB_SB(fi->vfs_inode.i_sb);
	struct fb_page *page = NULL;

	spin_lock(&fsb->lru_lock);
	if (fb_may_take_page(fi))
		page = list_first_entry_or_null(&fsb->free_pages, struct fb_page, lru);
	if (page) {
		list_del_init(&page->lru);
		fsb->nr_free--;
		if (unlikely(fi->waits_in_vain))
			WRITE_ONCE(fi->waits_in_vain, fi->waits_in_vain - 1);
	}
	spin_unlock(&fsb->lru_lock);
	if (!page || fb_cache_low(fsb))
		fb_writeback_kick(fsb);
	return page;
}

/**
 * fb_page_put_free() - put a page on the free list
 * @fsb: the mount
 * @page: no inode's, in no mapping; its record is durably free, or was never committed. May sleep
 *
 * A bad page goes to no list.
 */
void fb_page_put_free(struct fb_sb *fsb, struct fb_page *page)
{
	bool busy = fb_page_is_busy(fsb, page);

	if (!busy || page->bad)
		fb_page_unname(fsb, page);
	if (page->bad) {
		INIT_LIST_HEAD(&page->lru);
		return;
	}
	if (fsb->zero_freed && !busy) {
		ps_page_zero(&fsb->ps, fb_page_number(fsb, page), 0, PAGE_SIZE);
		ps_fence(&fsb->ps);
	}
	spin_lock(&fsb->lru_lock);
	list_add(&page->lru, busy ? &fsb->busy_pages : &fsb->free_pages);
	if (!busy) {
		fsb->nr_free++;
		WRITE_ONCE(fsb->nothing_frees, false);
	}
	spin_unlock(&fsb->lru_lock);
	if (wq_has_sleeper(&fsb->space_wait))
		wake_up_all(&fsb->space_wait);
}

/**
 * fb_take_busy() - busy pages become free when their last holder has let go
 * @fsb: the mount
 *
 * Return: whether some are still busy.
 */
bool fb_take_busy(struct fb_sb *fsb)
{
	struct fb_page *page, *next;
	LIST_HEAD(busy);
	bool left;

	spin_lock(&fsb->lru_lock);
	list_splice_init(&fsb->busy_pages, &busy);
	spin_unlock(&fsb->lru_lock);
	list_for_each_entry_safe(page, next, &busy, lru)
		fb_page_put_free(fsb, page);
	spin_lock(&fsb->lru_lock);
	left = !list_empty(&fsb->busy_pages);
	spin_unlock(&fsb->lru_lock);
	return left;
}

/**
 * fb_pages_free() - free pages that wait for a file's fate
 * @fsb: the mount
 * @pages: linked by fb_page->lru, in no index; becomes empty
 *
 * Sleeps: there may be as many as the device has.
 */
void fb_pages_free(struct fb_sb *fsb, struct list_head *pages)
{
	struct fb_page *page, *next;

	list_for_each_entry(page, pages, lru) {
		ps_page_free(&fsb->ps, fb_page_number(fsb, page));
		cond_resched();
	}
	ps_fence(&fsb->ps);
	list_for_each_entry_safe(page, next, pages, lru) {
		list_del_init(&page->lru);
		fb_page_put_free(fsb, page);
		cond_resched();
	}
}

/**
 * fb_records_low() - whether free file records are so few that more must be made
 * @fsb: the mount
 *
 * Below an eighth of the table the worker takes records from files. Any context.
 */
bool fb_records_low(struct fb_sb *fsb)
{
	return fsb->ps.nr_files - READ_ONCE(fsb->nr_files_used) < DIV_ROUND_UP(fsb->ps.nr_files, 8);
}

/**
 * fb_flush_orphans_soon() - a file was truncated and its record says so, or it was deleted
 * @fsb: the mount
 *
 * Wakes the worker of writeback/deferred.c in a second, or now if the cache is short. Any context.
 */
void fb_flush_orphans_soon(struct fb_sb *fsb)
{
	if (fb_cache_low(fsb) || fb_records_low(fsb))
		mod_delayed_work(fsb->wq, &fsb->orphan_work, 0);	/* it may be queued for later */
	else
		queue_delayed_work(fsb->wq, &fsb->orphan_work, FB_ORPHAN_DELAY);
}

/**
 * fb_file_record_alloc() - take a free file record
 * @fsb: the mount
 *
 * Wakes the worker when records run low. Doesn't sleep.
 *
 * Return: its number, or FB_NO_FILE if all are in use.
 */
u32 fb_file_record_alloc(struct fb_sb *fsb)
{
	u32 file;

	spin_lock(&fsb->files_lock);
	file = find_next_zero_bit(fsb->files_used, fsb->ps.nr_files, fsb->next_file);
	if (file >= fsb->ps.nr_files)
		file = find_first_zero_bit(fsb->files_used, fsb->ps.nr_files);
	if (file >= fsb->ps.nr_files) {
		file = FB_NO_FILE;
	} else {
		__set_bit(file, fsb->files_used);
		fsb->nr_files_used++;
		fsb->next_file = file + 1;
	}
	spin_unlock(&fsb->files_lock);
	if (fb_records_low(fsb))
		fb_writeback_kick(fsb);
	return file;
}

/**
 * fb_file_record_free() - free a file record, with all pages that name it
 * @fsb: the mount
 * @file: its number; durably free when this returns
 */
void fb_file_record_free(struct fb_sb *fsb, u32 file)
{
	ps_file_free(&fsb->ps, file);
	spin_lock(&fsb->files_lock);
	__clear_bit(file, fsb->files_used);
	fsb->nr_files_used--;
	spin_unlock(&fsb->files_lock);
	if (wq_has_sleeper(&fsb->space_wait))
		wake_up_all(&fsb->space_wait);
}

static bool fb_has_space(const struct fb_inode *fi, int err)
{
	struct fb_sb *fsb = FB_SB(fi->vfs_inode.i_sb);
	bool has;

	if (err == -EXFULL)
		return READ_ONCE(fsb->nr_files_used) < fsb->ps.nr_files;
	spin_lock(&fsb->lru_lock);
	has = fb_may_take_page(fi);
	spin_unlock(&fsb->lru_lock);
	return has;
}

/* A task has waited for a free page. Those that are reserved are for it now. */
static void fb_waited_in_vain(struct fb_inode *fi)
{
	struct fb_sb *fsb = FB_SB(fi->vfs_inode.i_sb);

	spin_lock(&fsb->lru_lock);
	WRITE_ONCE(fsb->nothing_frees, true);
	WRITE_ONCE(fi->waits_in_vain, fi->waits_in_vain + 1);
	spin_unlock(&fsb->lru_lock);
}

/**
 * fb_wait_for_space() - wait until there is a free page, or a free file record
 * @fi: the inode that it is for
 * @err: -ENOSPC or -EXFULL: which of them
 * @deadline: 0 at first; in jiffies, when patience is over
 *
 * Return: 0 to try again; -ENOMEM when that has been going on for too long; -EINTR if the task is killed.
 */
int fb_wait_for_space(struct fb_inode *fi, int err, unsigned long *deadline)
{
	struct fb_sb *fsb = FB_SB(fi->vfs_inode.i_sb);
	long left;

	fb_writeback_kick(fsb);
	if (!*deadline)
		*deadline = jiffies + FB_SPACE_PATIENCE;
	else if (time_after(jiffies, *deadline))
		return -ENOMEM;
	left = wait_event_killable_timeout(fsb->space_wait, fb_has_space(fi, err), FB_SPACE_WAIT);
	if (!left && err == -ENOSPC)
		fb_waited_in_vain(fi);
	return left < 0 ? -EINTR : 0;
}
