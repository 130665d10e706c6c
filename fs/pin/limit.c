// SPDX-License-Identifier: GPL-2.0-only
/*
 * How many pages may be pinned: by one user, and on the mount. PMem is not memory, so RLIMIT_MEMLOCK
 * doesn't bound it; the mount options pin_limit and pin_limit_user do.
 *
 * A file with a pinned page keeps its file record, so the number of such files is limited, too. They may
 * have half of the records, and those of one user a quarter.
 *
 * A user is charged for pages when they are pinned, before they are in PMem: once for each set that has the
 * page (tree.c), so two open files that pin the same page cost its user two. A file counts once for each
 * user.
 *
 * A user with CAP_IPC_LOCK may pin more than other users, but not more than the mount allows in all: other
 * files need pages, too. The caller says which user is charged and whether the user has CAP_IPC_LOCK. It is
 * not always the user of the current task: reclaim, too, finds pages that another user has locked.
 */
#include <linux/slab.h>

#include "limit.h"

/* A user that has pinned pages, and what the user is charged for on the mount. */
struct fb_pin_user {
	struct list_head list;		/* fb_sb->pins.users, under pins.lock */
	kuid_t uid;
	unsigned long pages;
	u32 files;
};

/* What one user is charged for, of one file. */
struct fb_account {
	struct list_head list;		/* fb_inode->accounts */
	struct fb_pin_user *user;
	unsigned long pages;
};

static struct fb_account *fb_account_find(struct fb_inode *fi, kuid_t uid)
{
	struct fb_account *account;

	list_for_each_entry(account, &fi->accounts, list) {
		if (uid_eq(account->user->uid, uid))
			return account;
	}
	return NULL;
}

static struct fb_pin_user *fb_pin_user_find(struct fb_sb *fsb, kuid_t uid)
{
	struct fb_pin_user *user;

	list_for_each_entry(user, &fsb->pins.users, list) {
		if (uid_eq(user->uid, uid))
			return user;
	}
	return NULL;
}

/* True if the limits allow more. @user is NULL if the user has nothing pinned yet. */
static bool fb_pin_allowed(struct fb_sb *fsb, const struct fb_pin_user *user, bool privileged,
			   unsigned long pages, u32 files)
{
	u32 max_files = fsb->ps.nr_files / 2;

	lockdep_assert_held(&fsb->pins.lock);
	if (fsb->pins.charged + pages > fsb->pins.max || fsb->pins.files_charged + files > max_files)
		return false;
	return privileged || ((user ? user->pages : 0) + pages <= fsb->pins.max_of_user &&
			      (user ? user->files : 0) + files <= max_files / 2);
}

/* Charges the user of @fresh, which enters the list if the user isn't in it. Returns NULL over a limit. */
static struct fb_pin_user *fb_pin_user_charge(struct fb_sb *fsb, struct fb_pin_user *fresh,
					      bool privileged, unsigned long pages, u32 files)
{
	struct fb_pin_user *user;

	spin_lock(&fsb->pins.lock);
	user = fb_pin_user_find(fsb, fresh->uid);
	if (fb_pin_allowed(fsb, user, privileged, pages, files)) {
		if (!user) {
			user = fresh;
			list_add(&user->list, &fsb->pins.users);
		}
		user->pages += pages;
		user->files += files;
		fsb->pins.charged += pages;
		fsb->pins.files_charged += files;
	} else {
		user = NULL;
	}
	spin_unlock(&fsb->pins.lock);
	return user;
}

/**
 * fb_pin_charge() - charge a user for more pinned pages of a file, if the limits allow it
 * @fi: the file; io_sem is held exclusively
 * @uid: the user
 * @privileged: the limit for one user doesn't apply
 * @pages: more than 0
 *
 * Return: the user's account, for fb_pin_uncharge(); or ERR_PTR(-ENOMEM) with nothing charged.
 */
struct fb_account *fb_pin_charge(struct fb_inode *fi, kuid_t uid, bool privileged, unsigned long pages)
{
	struct fb_account *account = fb_account_find(fi, uid), *opened = NULL;
	struct fb_pin_user *fresh = kzalloc(sizeof(*fresh), GFP_NOFS | __GFP_ACCOUNT), *user = NULL;

	lockdep_assert_held_write(&fi->io_sem);
	if (!account) {
		opened = kzalloc(sizeof(*opened), GFP_NOFS | __GFP_ACCOUNT);
		account = opened;
	}
	if (fresh && account) {
		fresh->uid = uid;
		user = fb_pin_user_charge(FB_SB(fi->vfs_inode.i_sb), fresh, privileged, pages,
					  opened ? 1 : 0);
	}
	if (user != fresh)
		kfree(fresh);
	if (!user) {
		kfree(opened);
		return ERR_PTR(-ENOMEM);
	}
	if (opened) {
		opened->user = user;
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
	struct fb_pin_user *user = account->user;
	bool closed;

	account->pages -= pages;
	closed = !account->pages;
	spin_lock(&fsb->pins.lock);
	fsb->pins.charged -= pages;
	fsb->pins.files_charged -= closed;
	user->pages -= pages;
	user->files -= closed;
	if (user->pages)
		user = NULL;
	else
		list_del(&user->list);
	spin_unlock(&fsb->pins.lock);
	kfree(user);
	if (closed) {
		list_del(&account->list);
		kfree(account);
	}
}
