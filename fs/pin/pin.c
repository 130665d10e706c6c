// SPDX-License-Identifier: GPL-2.0-only
/*
 * Claims are made, and end: ranges of a file that are attached, pinned by a call, or locked by mlock(). The
 * sets of claimed pages, and what changes them, are in claim.c; lock.c finds locks that are not known yet,
 * and those that are gone.
 *
 * A claim has one of three owners, which decides when the claim ends:
 *   - an open file description: its claims end with its last close;
 *   - the file itself (FOREBAY_KEEP): file-owned claims end when they are undone, with the file's last
 *     name, and at unmount. They hold a reference on the inode, which is on fb_sb->file_owned;
 *   - a user: its claims are what mlock() has locked.
 *
 * A truncation takes the pinned pages beyond the new end out of every set; attached ranges stay.
 *
 * io_sem is taken here, exclusively, and given back after every FB_CLAIM_LOOK claims or pages.
 */
#include <linux/capability.h>
#include <linux/mm.h>

#include "../page/index.h"
#include "claim.h"
#include "limit.h"
#include "lock.h"
#include "pin.h"
#include "vma.h"

/* The same for all of them; takes io_sem. */
static void fb_claims_apply(struct fb_inode *fi, pgoff_t first, pgoff_t last)
{
	bool more;

	do {
		down_write(&fi->io_sem);
		more = fb_claims_apply_some(fi, &first, last, false);
		up_write(&fi->io_sem);
		cond_resched();
	} while (more);
}

/* The same for the whole range; takes io_sem. The caller has a reference. */
static void fb_claims_give_up_all(struct fb_inode *fi, enum fb_claim_kind kind, pgoff_t first, pgoff_t last,
				  const struct fb_claim_filter *filter)
{
	unsigned int puts = 0;
	pgoff_t from = 0;
	bool more;

	if (first > last)
		return;
	do {
		down_write(&fi->io_sem);
		more = fb_claims_give_up(fi, kind, &from, first, last, filter);
		puts += fb_claims_hold_inode(fi);
		up_write(&fi->io_sem);
		cond_resched();
	} while (more);
	while (puts--)
		iput(&fi->vfs_inode);
}

/* One hold of io_sem; *@first becomes the next page to be claimed. */
static int fb_claim_some(struct fb_inode *fi, const struct fb_claimant *owner, pgoff_t *first, pgoff_t last,
			 u64 mark)
{
	int err;

	if (down_write_killable(&fi->io_sem))
		return -EINTR;
	if (!owner->file && owner->kind != FB_LOCKED && !fi->vfs_inode.i_nlink)
		err = -ENOENT;	/* the claim would never end: the last name has gone */
	else
		err = __fb_claim(fi, owner, *first, &last, mark);
	if (!err)
		fb_claims_hold_inode(fi);
	up_write(&fi->io_sem);
	*first = last + 1;
	return err;
}

/**
 * fb_claim() - claim a range
 * @fi: the inode
 * @owner: whose claim it is
 * @first: first page
 * @last: last page
 * @mark: becomes what fb_claim_undo() wants
 *
 * Return: 0; -ENOMEM over a limit, -EINTR if the task is killed, -ENOENT if the claim is to stay with a
 * file that has no name left: then nothing has changed.
 */
int fb_claim(struct fb_inode *fi, const struct fb_claimant *owner, pgoff_t first, pgoff_t last, u64 *mark)
{
	static atomic64_t marks;
	bool again = true;
	pgoff_t next;
	int err;

	*mark = atomic64_inc_return(&marks);
	for (;;) {
		for (next = first, err = 0; !err && next <= last; cond_resched())
			err = fb_claim_some(fi, owner, &next, last, *mark);
		if (!err)
			break;
		fb_claim_undo(fi, *mark);
		if (err != -ENOMEM || owner->kind == FB_ATTACHED || !again)
			return err;
		fb_claims_refresh_all(FB_SB(fi->vfs_inode.i_sb));
		again = false;
	}
	if (owner->kind != FB_ATTACHED)
		fb_claims_apply(fi, first, last);
	return 0;
}

/**
 * fb_unclaim() - give claims on a range up
 * @fi: the inode; the caller has a reference
 * @owner: whose
 * @first: first page
 * @last: last page
 */
void fb_unclaim(struct fb_inode *fi, const struct fb_claimant *owner, pgoff_t first, pgoff_t last)
{
	struct fb_claim_filter filter = { .unwanted = fb_claim_is_of_owner, .arg = owner };

	fb_claims_give_up_all(fi, owner->kind, first, last, &filter);
}

static bool fb_claim_has_mark(const struct fb_claim *claim, const void *mark)
{
	return claim->mark == *(const u64 *)mark;
}

/**
 * fb_claim_undo() - give up what one call has claimed
 * @fi: the inode; the caller has a reference
 * @mark: from fb_claim()
 */
void fb_claim_undo(struct fb_inode *fi, u64 mark)
{
	struct fb_claim_filter filter = { .unwanted = fb_claim_has_mark, .arg = &mark };

	for (unsigned int kind = 0; kind < FB_NR_CLAIM_KINDS; kind++)
		fb_claims_give_up_all(fi, kind, 0, FB_LAST_PAGE, &filter);
}

static bool fb_claim_is_of(const struct fb_claim *claim, const void *file)
{
	return claim->owner.kind != FB_LOCKED && claim->owner.file == file;
}

/**
 * fb_claims_closed() - an open file description is closed for the last time
 * @fi: its inode; the caller has a reference
 * @file: the file; NULL: give up the file-owned claims (FOREBAY_KEEP)
 */
void fb_claims_closed(struct fb_inode *fi, const struct file *file)
{
	struct fb_claim_filter filter = { .unwanted = fb_claim_is_of, .arg = file };

	if (!fb_has_claims(fi))
		return;
	for (unsigned int kind = 0; kind < FB_NR_CLAIM_KINDS; kind++)
		fb_claims_give_up_all(fi, kind, 0, FB_LAST_PAGE, &filter);
}

/**
 * fb_claims_cut() - a file has become shorter
 * @fi: the inode, of which the caller has a reference; io_sem is held exclusively, the pages are gone
 * @beyond: the first page that is not in the file any more
 */
void fb_claims_cut(struct fb_inode *fi, pgoff_t beyond)
{
	struct fb_claim *claim;

	lockdep_assert_held_write(&fi->io_sem);
	for (unsigned int kind = 0; kind < FB_NR_CLAIM_KINDS; kind++) {
		while (kind != FB_ATTACHED &&
		       (claim = fb_claims_iter_first(&fi->claims[kind], beyond, FB_LAST_PAGE))) {
			fb_claim_shrink(fi, claim, beyond, FB_LAST_PAGE);
			cond_resched();
		}
	}
	if (fb_claims_hold_inode(fi))
		iput(&fi->vfs_inode);
}

/* Another task may fault it in: process_vm_writev(), or a kernel thread that has all capabilities. */
static bool fb_vma_is_privileged(const struct vm_area_struct *vma)
{
	return current->mm == vma->vm_mm && !(current->flags & PF_KTHREAD) &&
	       has_capability_noaudit(current, CAP_IPC_LOCK);
}

/**
 * fb_claim_locked_vma() - a page of a locked MAP_SYNC mapping is faulted in
 * @fi: the inode; takes io_sem
 * @vma: the mapping, all of which is claimed for its user
 * @index: the page
 *
 * Return: 0; -ENOMEM: the user has too much pinned, and this mapping is not.
 */
int fb_claim_locked_vma(struct fb_inode *fi, struct vm_area_struct *vma, pgoff_t index)
{
	struct fb_claimant owner = { .kind = FB_LOCKED, .uid = fb_vma_user(vma),
				     .privileged = fb_vma_is_privileged(vma) };
	pgoff_t beyond = fb_pages_in_file(fi);
	pgoff_t last = min(vma->vm_pgoff + vma_pages(vma), beyond) - 1;
	bool claimed;
	u64 mark;

	if (index >= beyond)	/* the fault will say so */
		return 0;
	if (down_read_killable(&fi->io_sem))
		return -EINTR;
	claimed = fb_has_claimed(fi, &owner, index);
	up_read(&fi->io_sem);
	return claimed ? 0 : fb_claim(fi, &owner, vma->vm_pgoff, last, &mark);
}

/**
 * fb_claims_end() - the inode goes away: nothing of it is claimed any more
 * @fi: the inode, being evicted: no other task has it
 */
void fb_claims_end(struct fb_inode *fi)
{
	struct fb_claim *claim;

	for (unsigned int kind = 0; kind < FB_NR_CLAIM_KINDS; kind++) {
		while ((claim = fb_claims_iter_first(&fi->claims[kind], 0, FB_LAST_PAGE))) {
			fb_claim_free(fi, claim);
			cond_resched();
		}
	}
}

/**
 * fb_claims_end_all() - unmount: file-owned claims must not hold inodes
 * @fsb: the mount
 */
void fb_claims_end_all(struct fb_sb *fsb)
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
		fb_claims_closed(fi, NULL);
		iput(&fi->vfs_inode);
	}
}
