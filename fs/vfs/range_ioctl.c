// SPDX-License-Identifier: GPL-2.0-only
/*
 * The ioctls that say which ranges of a file belong in PMem: pin, unpin, attach, detach.
 *
 * A pin is all or nothing: first the range is pinned and accounted (pin/pin.c), then its pages
 * are promoted (sync/promote.c), waiting for writeback to make space; if that fails the pin is undone.
 * Pages that are in PMem by then stay until they are reclaimed, like any others.
 */
#include <linux/capability.h>
#include <linux/cred.h>
#include <linux/fadvise.h>
#include <linux/uaccess.h>

#include "../../compat/cred.h"
#include "../page/index.h"
#include "../page/record.h"
#include "../pin/pin.h"
#include "../sync/promote.h"
#include "range_ioctl.h"

/* How much is read from below at once, in pages. */
#define FB_READ_AHEAD	((pgoff_t)512)

/* Has the lower file system read the page, and moves it; waits for space. */
static int fb_read_and_promote(struct fb_inode *fi, struct file *lower, pgoff_t index)
{
	struct fb_patience patience = {};
	struct folio *folio;
	int err;

	for (;;) {
		if (fatal_signal_pending(current))
			return -EINTR;
		folio = read_mapping_folio(fi->lower->i_mapping, index, lower);
		if (IS_ERR(folio))
			return PTR_ERR(folio);
		err = fb_promote_page(fi, index);
		folio_put(folio);
		if (!err)
			return 0;
		err = fb_wait_to_promote(fi, err, &patience);
		if (err)
			return err;
	}
}

static int fb_promote_range(struct fb_inode *fi, struct file *lower, pgoff_t first, pgoff_t last)
{
	pgoff_t ahead = first, promoted, end;
	int err = 0;

	for (; !err && first <= last; first++) {
		if (first == ahead) {
			ahead = first;
			promoted = first;
			end = min(last, ahead + FB_READ_AHEAD - 1);
			vfs_fadvise(lower, (loff_t)ahead << PAGE_SHIFT,
				    (loff_t)(end - ahead + 1) << PAGE_SHIFT, POSIX_FADV_WILLNEED);
			fb_promote(fi, &promoted, end, true);
			ahead = end + 1;
		}
		if (!fb_page_find(fi, first))
			err = fb_read_and_promote(fi, lower, first);
	}
	return err;
}

static int fb_pin(struct file *file, const struct fb_pin_owner *owner, pgoff_t first, pgoff_t last)
{
	struct fb_inode *fi = FB_I(file_inode(file));
	u64 mark;
	int err;

	err = fb_may_cache(fi) ? fb_pin_range(fi, owner, first, last, &mark) : -EOPNOTSUPP;
	if (err)
		return err;
	err = fb_promote_range(fi, fb_lower_file(file), first, last);
	if (err == -ENXIO) {	/* it has become shorter: what is left is in PMem */
		fb_unpin_range(fi, owner, fb_pages_in_file(fi), last);
		return 0;
	}
	if (err)
		fb_pin_undo(fi, mark);
	return err;
}

/* The errors of fb_record_for_pages(), also where the file has no page that could move now. */
static int fb_may_hold_pages(struct fb_inode *fi)
{
	if (IS_IMMUTABLE(&fi->vfs_inode))
		return -EPERM;
	return fi->vfs_inode.i_nlink || READ_ONCE(fi->file) != FB_NO_FILE ? 0 : -EOPNOTSUPP;
}

static int fb_attach(struct file *file, const struct fb_pin_owner *owner, pgoff_t first, pgoff_t last)
{
	struct fb_inode *fi = FB_I(file_inode(file));
	u64 mark;
	int err;

	err = fb_may_cache(fi) ? fb_pin_range(fi, owner, first, last, &mark) : -EOPNOTSUPP;
	if (err)
		return err;
	err = fb_may_hold_pages(fi) ?: fb_promote(fi, &first, last, true);
	if (err == -ENOSPC || err == -EXFULL)	/* what finds no room moves when it is touched */
		return 0;
	if (err)
		fb_pin_undo(fi, mark);
	return err;
}

/* The pages of a range as it was asked for. */
static int fb_range_pages(struct fb_inode *fi, const struct forebay_range *range, bool pin, pgoff_t *first,
			  pgoff_t *last)
{
	loff_t size = i_size_read(&fi->vfs_inode);
	u64 end;

	if (range->offset > LLONG_MAX || check_add_overflow(range->offset, range->length, &end) ||
	    end > LLONG_MAX)
		return -EINVAL;
	if (!range->length)
		end = pin ? size : LLONG_MAX;
	if (end <= range->offset || (pin && end > round_up(size, PAGE_SIZE)))
		return -EINVAL;
	*first = range->offset >> PAGE_SHIFT;
	*last = (end - 1) >> PAGE_SHIFT;
	return 0;
}

static int fb_may_set_range(struct file *file, unsigned int nr, const struct forebay_range *range)
{
	if (range->flags & ~FOREBAY_KEEP)
		return -EINVAL;
	if ((range->flags & FOREBAY_KEEP) && !capable(CAP_SYS_ADMIN))
		return -EPERM;
	if ((nr == _IOC_NR(FOREBAY_IOC_ATTACH) || nr == _IOC_NR(FOREBAY_IOC_DETACH)) &&
	    !(range->flags & FOREBAY_KEEP) && !(file->f_mode & FMODE_WRITE))
		return -EBADF;
	return 0;
}

/**
 * fb_ioctl_range() - pin, unpin, attach, detach
 * @file: upper file, a regular one
 * @nr: the number of FOREBAY_IOC_PIN, _UNPIN, _ATTACH or _DETACH
 * @range: as the user has said
 *
 * Return: 0 or a negative errno, as forebay(3) says.
 */
long fb_ioctl_range(struct file *file, unsigned int nr, const struct forebay_range *range)
{
	bool pin = nr == _IOC_NR(FOREBAY_IOC_PIN), attach = nr == _IOC_NR(FOREBAY_IOC_ATTACH);
	struct fb_inode *fi = FB_I(file_inode(file));
	struct fb_pin_owner owner = { .uid = current_uid(),
				      .privileged = compat_task_is_capable(CAP_IPC_LOCK) };
	pgoff_t first, last;
	int err;

	err = fb_may_set_range(file, nr, range) ?: fb_range_pages(fi, range, pin, &first, &last);
	if (err)
		return err;
	owner.file = range->flags & FOREBAY_KEEP ? NULL : file;
	owner.kind = pin || nr == _IOC_NR(FOREBAY_IOC_UNPIN) ? FB_PINNED_RANGE : FB_ATTACHED;
	if (pin)
		return fb_pin(file, &owner, first, last);
	if (attach)
		return fb_attach(file, &owner, first, last);
	fb_unpin_range(fi, &owner, first, last);
	return 0;
}
