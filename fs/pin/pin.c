// SPDX-License-Identifier: GPL-2.0-only
/*
 * Pins are made, and end: ranges of a file that are attached, pinned by a call, or locked by mlock(). The
 * sets of their pages, and what changes these, are in tree.c; lock.c finds locks that are not known yet,
 * and those that are gone.
 *
 * A pin has one of three owners, which decides when the pin ends:
 *   - an open file description: its pins end with its last close;
 *   - the file itself (FOREBAY_KEEP): file-owned pins end when they are undone, with the file's last
 *     name, and at unmount. They hold a reference on the inode, which is on fb_sb->file_owned;
 *   - a user: its pins are what mlock() has locked.
 *
 * A truncation takes the pinned pages beyond the new end out of every set; attached ranges stay.
 *
 * io_sem is taken here, exclusively, and given back after every FB_PIN_LOOK pins or pages.
 */
#include <linux/capability.h>
#include <linux/mm.h>

#include "../../compat/cred.h"
#include "../page/index.h"
#include "limit.h"
#include "lock.h"
#include "pin.h"
#include "tree.h"
#include "vma.h"

/* The same for all of them; takes io_sem. */
static void fb_pins_apply(struct fb_inode *fi, pgoff_t first, pgoff_t last)
{
	bool more;

	do {
		down_write(&fi->io_sem);
		more = fb_pins_apply_some(fi, &first, last, false);
		up_write(&fi->io_sem);
		cond_resched();
	} while (more);
}

/* The same for the whole range; takes io_sem. The caller has a reference. */
static void fb_pins_give_up_all(struct fb_inode *fi, enum fb_pin_kind kind, pgoff_t first, pgoff_t last,
				const struct fb_pin_filter *filter)
{
	unsigned int puts = 0;
	pgoff_t from = 0;
	bool more;

	if (first > last)
		return;
	do {
		down_write(&fi->io_sem);
		more = fb_pins_give_up(fi, kind, &from, first, last, filter);
		puts += fb_pins_hold_inode(fi);
		up_write(&fi->io_sem);
		cond_resched();
	} while (more);
	while (puts--)
		iput(&fi->vfs_inode);
}

/* One hold of io_sem; *@first becomes the next page to be pinned. */
static int fb_pin_some(struct fb_inode *fi, const struct fb_pin_owner *owner, pgoff_t *first, pgoff_t last,
		       u64 mark)
{
	int err;

	if (down_write_killable(&fi->io_sem))
		return -EINTR;
	if (!owner->file && owner->kind != FB_LOCKED && !fi->vfs_inode.i_nlink)
		err = -ENOENT;	/* the pin would never end: the last name has gone */
	else
		err = __fb_pin_range(fi, owner, *first, &last, mark);
	if (!err)
		fb_pins_hold_inode(fi);
	up_write(&fi->io_sem);
	*first = last + 1;
	return err;
}

/**
 * fb_pin_range() - pin a range
 * @fi: the inode
 * @owner: whose pin it is
 * @first: first page
 * @last: last page
 * @mark: becomes what fb_pin_undo() wants
 *
 * Return: 0; -ENOMEM over a limit, -EINTR if the task is killed, -ENOENT if the pin is to stay with a file
 * that has no name left. After an error nothing has changed.
 */
int fb_pin_range(struct fb_inode *fi, const struct fb_pin_owner *owner, pgoff_t first, pgoff_t last,
		 u64 *mark)
{
	static atomic64_t marks;
	bool again = true;
	pgoff_t next;
	int err;

	*mark = atomic64_inc_return(&marks);
	for (;;) {
		for (next = first, err = 0; !err && next <= last; cond_resched())
			err = fb_pin_some(fi, owner, &next, last, *mark);
		if (!err)
			break;
		fb_pin_undo(fi, *mark);
		if (err != -ENOMEM || owner->kind == FB_ATTACHED || !again)
			return err;
		fb_pins_refresh_all(FB_SB(fi->vfs_inode.i_sb));
		again = false;
	}
	if (owner->kind != FB_ATTACHED)
		fb_pins_apply(fi, first, last);
	return 0;
}

/**
 * fb_unpin_range() - give pins on a range up
 * @fi: the inode; the caller has a reference
 * @owner: whose
 * @first: first page
 * @last: last page
 */
void fb_unpin_range(struct fb_inode *fi, const struct fb_pin_owner *owner, pgoff_t first, pgoff_t last)
{
	struct fb_pin_filter filter = { .unwanted = fb_pin_is_of_owner, .arg = owner };

	fb_pins_give_up_all(fi, owner->kind, first, last, &filter);
}

static bool fb_pin_has_mark(const struct fb_pin *pin, const void *mark)
{
	return pin->mark == *(const u64 *)mark;
}

/**
 * fb_pin_undo() - give up what one call has pinned
 * @fi: the inode; the caller has a reference
 * @mark: from fb_pin_range()
 */
void fb_pin_undo(struct fb_inode *fi, u64 mark)
{
	struct fb_pin_filter filter = { .unwanted = fb_pin_has_mark, .arg = &mark };

	for (unsigned int kind = 0; kind < FB_NR_PIN_KINDS; kind++)
		fb_pins_give_up_all(fi, kind, 0, FB_LAST_PAGE, &filter);
}

static bool fb_pin_is_of(const struct fb_pin *pin, const void *file)
{
	return pin->owner.kind != FB_LOCKED && pin->owner.file == file;
}

/**
 * fb_pins_closed() - an open file description is closed for the last time
 * @fi: its inode; the caller has a reference
 * @file: the file; NULL: give up the file-owned pins (FOREBAY_KEEP)
 */
void fb_pins_closed(struct fb_inode *fi, const struct file *file)
{
	struct fb_pin_filter filter = { .unwanted = fb_pin_is_of, .arg = file };

	if (!fb_has_pins(fi))
		return;
	for (unsigned int kind = 0; kind < FB_NR_PIN_KINDS; kind++)
		fb_pins_give_up_all(fi, kind, 0, FB_LAST_PAGE, &filter);
}

/**
 * fb_pins_truncate() - a file has become shorter
 * @fi: the inode, of which the caller has a reference; io_sem is held exclusively, the pages are gone
 * @beyond: the first page that is not in the file any more
 */
void fb_pins_truncate(struct fb_inode *fi, pgoff_t beyond)
{
	struct fb_pin *pin;

	lockdep_assert_held_write(&fi->io_sem);
	for (unsigned int kind = 0; kind < FB_NR_PIN_KINDS; kind++) {
		while (kind != FB_ATTACHED &&
		       (pin = fb_pins_iter_first(&fi->pins[kind], beyond, FB_LAST_PAGE))) {
			fb_pin_shrink(fi, pin, beyond, FB_LAST_PAGE);
			cond_resched();
		}
	}
	if (fb_pins_hold_inode(fi))
		iput(&fi->vfs_inode);
}

/* Another task may fault it in: process_vm_writev(), or a kernel thread that has all capabilities. */
static bool fb_vma_is_privileged(const struct vm_area_struct *vma)
{
	return current->mm == vma->vm_mm && !(current->flags & PF_KTHREAD) &&
	       compat_task_is_capable(CAP_IPC_LOCK);
}

/**
 * fb_pin_locked_vma() - a page of a locked MAP_SYNC mapping is faulted in
 * @fi: the inode; takes io_sem
 * @vma: the mapping, all of which is pinned for its user
 * @index: the page
 *
 * Return: 0; -ENOMEM: the user has too much pinned, and this mapping is not.
 */
int fb_pin_locked_vma(struct fb_inode *fi, struct vm_area_struct *vma, pgoff_t index)
{
	struct fb_pin_owner owner = { .kind = FB_LOCKED, .uid = fb_vma_user(vma),
				      .privileged = fb_vma_is_privileged(vma) };
	pgoff_t beyond = fb_pages_in_file(fi);
	pgoff_t last = min(vma->vm_pgoff + vma_pages(vma), beyond) - 1;
	bool has;
	u64 mark;

	if (index >= beyond)	/* the fault will say so */
		return 0;
	if (down_read_killable(&fi->io_sem))
		return -EINTR;
	has = fb_owner_has(fi, &owner, index);
	up_read(&fi->io_sem);
	return has ? 0 : fb_pin_range(fi, &owner, vma->vm_pgoff, last, &mark);
}

/**
 * fb_pins_end() - the inode goes away: nothing of it is pinned any more
 * @fi: the inode, being evicted: no other task has it
 */
void fb_pins_end(struct fb_inode *fi)
{
	struct fb_pin *pin;

	for (unsigned int kind = 0; kind < FB_NR_PIN_KINDS; kind++) {
		while ((pin = fb_pins_iter_first(&fi->pins[kind], 0, FB_LAST_PAGE))) {
			fb_pin_free(fi, pin);
			cond_resched();
		}
	}
}

/**
 * fb_pins_end_all() - unmount: file-owned pins must not hold inodes
 * @fsb: the mount
 */
void fb_pins_end_all(struct fb_sb *fsb)
{
	struct fb_inode *fi;

	for (;;) {
		spin_lock(&fsb->inodes_lock);
		fi = list_first_entry_or_null(&fsb->file_owned, struct fb_inode, file_owned);
		if (fi)
			ihold(&fi->vfs_inode);
		spin_unlock(&fsb->inodes_lock);
		if (!fi)
			return;
		fb_pins_closed(fi, NULL);
		iput(&fi->vfs_inode);
	}
}
