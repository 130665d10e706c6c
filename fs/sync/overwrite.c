// SPDX-License-Identifier: GPL-2.0-only
/*
 * Absorption ahead of the sync. A file will probably be synced again soon if its last sync needed PMem, and
 * it hasn't taken many more pages since than before that sync. A write that replaces a whole page of such a
 * file goes to PMem at once, not through the lower file's page cache. So does a write that begins a new last
 * page.
 *
 * The lower file must have data there, or space set aside beyond its end (reserve.c), so that there is
 * space when the page is written back. If it has neither, or the page can't move now, the write is an
 * ordinary volatile one, and the next sync moves its pages.
 *
 * The page moves as in move.c, but its bytes come from the user, with page faults disabled. It is durable
 * when the write returns.
 */
#include "../page/copies.h"
#include "../page/entry.h"
#include "../page/index.h"
#include "../page/page.h"
#include "../page/record.h"
#include "absorb.h"
#include "cost.h"
#include "move.h"
#include "overwrite.h"
#include "reserve.h"
#include "stored.h"
#include "tracker.h"

/* One page of so many has its time taken. */
#define FB_OVERWRITE_MEASURED	16
/* A file may take so many pages between two syncs, however few it took before. */
#define FB_OVERWRITE_MIN	64

/**
 * fb_overwrite_synced() - a sync begins, so pages are counted anew
 * @fi: the inode, under sync_lock
 *
 * A writer of i_rwsem may count one more at the same time: these are numbers to guess by.
 */
void fb_overwrite_synced(struct fb_inode *fi)
{
	unsigned long pages = fb_track_count(fi);

	lockdep_assert_held(&fi->sync_lock);
	pages = pages == ULONG_MAX ? 0 : pages + READ_ONCE(fi->overwritten);
	WRITE_ONCE(fi->overwrite_max, max(2 * pages, FB_OVERWRITE_MIN));
	WRITE_ONCE(fi->overwritten, 0);
}

/**
 * fb_overwrite_wanted() - whether the next page of a write goes to PMem at once
 * @fi: the inode; its i_rwsem is held, exclusively unless the write is direct
 * @iocb: the write
 * @from: what is left of it
 */
bool fb_overwrite_wanted(struct fb_inode *fi, struct kiocb *iocb, struct iov_iter *from)
{
	struct fb_sb *fsb = FB_SB(fi->vfs_inode.i_sb);
	bool replaces = iov_iter_count(from) >= PAGE_SIZE &&
			iocb->ki_pos + PAGE_SIZE <= i_size_read(fi->lower);
	bool appends = iocb->ki_pos == i_size_read(&fi->vfs_inode) &&
		       fi->reserved != FB_RESERVE_NEVER;

	lockdep_assert_held(&fi->vfs_inode.i_rwsem);
	return (replaces || appends) && test_bit(FB_SYNCED_IN_PMEM, &fi->flags) &&
	       !offset_in_page(iocb->ki_pos) && !(iocb->ki_flags & (IOCB_DIRECT | IOCB_NOWAIT)) &&
	       fsb->mode == FB_MODE_AUTO && fb_may_absorb(fi) && fi->file != FB_NO_FILE &&
	       !fi->tracker.overflow && fi->overwritten + fi->tracker.nr_pages < fi->overwrite_max &&
	       fi->overwritten + fi->tracker.nr_pages < fb_absorb_max(fsb) &&
	       !fb_page_find(fi, iocb->ki_pos >> PAGE_SHIFT);
}

/*
 * Sees to it that the lower page is not mapped, about to be mapped, or in use by hardware, which may have
 * it from a mapping that is gone. Returns its folio, locked; NULL if there is none, or no task can use it;
 * -EBUSY.
 */
static struct folio *fb_quiet_folio(struct fb_inode *fi, pgoff_t index)
{
	struct folio *folio;

	if (!mapping_mapped(fi->lower->i_mapping) && !fb_was_stored(fi, index))
		return NULL;
	folio = fb_lower_folio(fi, index, true, NULL);
	return folio == ERR_PTR(-ENOENT) ? NULL : folio;
}

/* True if there is space below for the page at @pos, after allocation if it is appended. */
static bool fb_has_room(struct fb_inode *fi, struct file *lower, loff_t pos)
{
	if (pos >= i_size_read(fi->lower))
		return fb_reserve(fi, lower, pos + PAGE_SIZE);
	return fb_lower_is_data(fi, lower, pos);
}

/*
 * Takes a free page of PMem, reserves its place in the index, and copies the next bytes of @from into it,
 * with zeros behind them. Returns how many bytes were copied; 0 if a step failed.
 */
static size_t fb_take_page(struct fb_inode *fi, struct kiocb *iocb, struct iov_iter *from,
			   struct fb_incoming *in)
{
	struct fb_sb *fsb = FB_SB(fi->vfs_inode.i_sb);
	size_t len = min(iov_iter_count(from), PAGE_SIZE), copied;
	void *to;

	if (fb_move_begin(fi, iocb->ki_pos >> PAGE_SHIFT, in))
		return 0;
	in->clean = false;
	in->has_space = true;
	to = fb_page_address(fsb, in->page);
	pagefault_disable();
	copied = _copy_from_iter_flushcache(to, len, from);
	pagefault_enable();
	trace_forebay_pm_write(to, copied);
	fb_copied(fsb, FB_COPIED_IN, copied);
	if (copied == len) {
		ps_page_zero(&fsb->ps, fb_page_number(fsb, in->page), len, PAGE_SIZE - len);
		return len;
	}
	iov_iter_revert(from, copied);
	fb_page_unreserve(fi, in);
	return 0;
}

/* The page's range is locked exclusively. */
static size_t fb_overwrite_locked(struct fb_inode *fi, struct kiocb *iocb, struct iov_iter *from)
{
	pgoff_t index = iocb->ki_pos >> PAGE_SHIFT;
	struct fb_incoming in;
	struct folio *folio;
	size_t len;

	/* A fault or a sync may have moved the page since fb_overwrite_wanted(). */
	if (fb_page_find(fi, index) || !fb_has_room(fi, fb_lower_file(iocb->ki_filp), iocb->ki_pos))
		return 0;
	folio = fb_quiet_folio(fi, index);
	if (IS_ERR(folio))
		return 0;
	len = fb_take_page(fi, iocb, from, &in);
	if (len) {
		in.folio = folio;
		if (fb_record_lock(fi))
			fb_pages_stay_out(fi, &in, 1);
		else if (!fb_pages_move_in(fi, &in, 1, iocb->ki_pos + len))
			return len;
		iov_iter_revert(from, len);
	} else if (folio) {
		folio_unlock(folio);
		folio_put(folio);
	}
	return 0;
}

/**
 * fb_overwrite() - write one page to PMem
 * @fi: the inode
 * @iocb: the write; advanced
 * @from: what is left of it, advanced
 *
 * Context: process, under the inode's i_rwsem exclusively. Sleeps.
 * Return: bytes, at most PAGE_SIZE; or 0: then nothing is done, and the caller makes an ordinary write.
 */
ssize_t fb_overwrite(struct fb_inode *fi, struct kiocb *iocb, struct iov_iter *from)
{
	pgoff_t index = iocb->ki_pos >> PAGE_SHIFT;
	bool measured = !(fi->overwritten % FB_OVERWRITE_MEASURED);
	u64 start_ns = measured ? ktime_get_ns() : 0;
	struct fb_range range;
	size_t len;

	lockdep_assert_held_write(&fi->vfs_inode.i_rwsem);
	if (fb_range_lock(&fi->ranges, &range, index, index, FB_RANGE_EXCLUSIVE | FB_RANGE_KILLABLE))
		return 0;
	len = fb_overwrite_locked(fi, iocb, from);
	fb_range_unlock(&fi->ranges, &range);
	if (!len)
		return 0;
	if (measured)
		fb_cost_overwritten(FB_SB(fi->vfs_inode.i_sb), start_ns);
	fi->overwritten++;
	iocb->ki_pos += len;
	fb_count(FB_SB(fi->vfs_inode.i_sb), FB_PAGES_ABSORBED, 1);
	return len;
}
