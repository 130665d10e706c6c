// SPDX-License-Identifier: GPL-2.0-only
/*
 * How many pages may be pinned: by one user, and on the mount. PMem is not memory, so RLIMIT_MEMLOCK
 * doesn't bound it; the mount options pin_limit and pin_limit_user do.
 *
 * A file with a pinned page keeps its file record, so the number of files is limited, too: half of the
 * records may be of files with pinned pages, and a quarter for one user.
 *
 * Pages are paid for when they are pinned, before they are there. A user that pins a page twice pays
 * once; two users that pin the same page pay both, and so with files. A user with CAP_IPC_LOCK may pin
 * more than other users, but not more than the mount has for all: others need room to work. The caller says
 * which user that is, for the task that runs here need not be the user's: reclaim, too, finds locked pages.
 */
#include <linux/slab.h>

#include "limit.h"

/* A user that has pinned something. */
struct fb_payer {
	struct list_head list;		/* fb_sb->pins.payers, under pins.lock */
	kuid_t uid;
	unsigned long pages;
	u32 files;
};

/* What a user has pinned of one file. */
struct fb_account {
	struct list_head list;		/* fb_inode->accounts */
	struct fb_payer *payer;
	unsigned long pages;
};

static struct fb_account *fb_account_find(struct fb_inode *fi, kuid_t uid)
{
	struct fb_account *account;

	list_for_each_entry(account, &fi->accounts, list) {
		if (uid_eq(account->payer->uid, uid))
			return account;
	}
	return NULL;
}

static struct fb_payer *fb_payer_find(struct fb_sb *fsb, kuid_t uid)
{
	struct fb_payer *payer;

	list_for_each_entry(payer, &fsb->pins.payers, list) {
		if (uid_eq(payer->uid, uid))
			return payer;
	}
	return NULL;
}

/* @payer is NULL for a user that has nothing pinned. */
static bool fb_pin_allowed(struct fb_sb *fsb, const struct fb_payer *payer, bool privileged,
			   unsigned long pages, u32 files)
{
	u32 most_files = fsb->ps.nr_files / 2;

	lockdep_assert_held(&fsb->pins.lock);
	if (fsb->pins.charged + pages > fsb->pins.most || fsb->pins.files_charged + files > most_files)
		return false;
	return privileged || ((payer ? payer->pages : 0) + pages <= fsb->pins.most_of_user &&
			      (payer ? payer->files : 0) + files <= most_files / 2);
}

/* Charges the user, with @fresh as the payer if there is none. Returns the payer, or NULL over a limit. */
static struct fb_payer *fb_payer_charge(struct fb_sb *fsb, struct fb_payer *fresh, bool privileged,
					unsigned long pages, u32 files)
{
	struct fb_payer *payer;

	spin_lock(&fsb->pins.lock);
	payer = fb_payer_find(fsb, fresh->uid);
	if (fb_pin_allowed(fsb, payer, privileged, pages, files)) {
		if (!payer) {
			payer = fresh;
			list_add(&payer->list, &fsb->pins.payers);
		}
		payer->pages += pages;
		payer->files += files;
		fsb->pins.charged += pages;
		fsb->pins.files_charged += files;
	} else {
		payer = NULL;
	}
	spin_unlock(&fsb->pins.lock);
	return payer;
}

/**
 * fb_pin_charge() - charge a user for more pinned pages of a file, if the limits allow it
 * @fi: the file; io_sem is held exclusively
 * @uid: the user
 * @privileged: the limit of a user doesn't hold
 * @pages: more than 0
 *
 * Return: the user's account, for fb_pin_uncharge(); or ERR_PTR(-ENOMEM) with nothing charged.
 */
struct fb_account *fb_pin_charge(struct fb_inode *fi, kuid_t uid, bool privileged, unsigned long pages)
{
	struct fb_account *account = fb_account_find(fi, uid), *opened = NULL;
	struct fb_payer *fresh = kzalloc(sizeof(*fresh), GFP_NOFS | __GFP_ACCOUNT), *payer = NULL;

	lockdep_assert_held_write(&fi->io_sem);
	if (!account) {
		opened = kzalloc(sizeof(*opened), GFP_NOFS | __GFP_ACCOUNT);
		account = opened;
	}
	if (fresh && account) {
		fresh->uid = uid;
		payer = fb_payer_charge(FB_SB(fi->vfs_inode.i_sb), fresh, privileged, pages, opened ? 1 : 0);
	}
	if (payer != fresh)
		kfree(fresh);
	if (!payer) {
		kfree(opened);
		return ERR_PTR(-ENOMEM);
	}
	if (opened) {
		opened->payer = payer;
		list_add(&opened->list, &fi->accounts);
	}
	account->pages += pages;
	return account;
}

/**
 * fb_pin_uncharge() - pages of a file are not pinned any more
 * @fi: the file; io_sem is held exclusively, or no other task has the inode
 * @account: the user's; may be gone afterwards
 * @pages: how many
 */
void fb_pin_uncharge(struct fb_inode *fi, struct fb_account *account, unsigned long pages)
{
	struct fb_sb *fsb = FB_SB(fi->vfs_inode.i_sb);
	struct fb_payer *payer = account->payer;
	bool closed;

	account->pages -= pages;
	closed = !account->pages;
	spin_lock(&fsb->pins.lock);
	fsb->pins.charged -= pages;
	fsb->pins.files_charged -= closed;
	payer->pages -= pages;
	payer->files -= closed;
	if (payer->pages)
		payer = NULL;
	else
		list_del(&payer->list);
	spin_unlock(&fsb->pins.lock);
	kfree(payer);
	if (closed) {
		list_del(&account->list);
		kfree(account);
	}
}
