// SPDX-License-Identifier: GPL-2.0-only
/*
 * How many pages may be pinned: by one user, and on the mount. PMem is not memory, so RLIMIT_MEMLOCK
 * doesn't bound it; the mount options pin_limit and pin_limit_user do.
 *
 * Pages are paid for when they are claimed, before they are there. Who claims a page twice pays
 * once; two who claim the same page pay both. Who has CAP_IPC_LOCK may pin more than other users, but
 * not more than the mount has for all: others need room to work. The caller says who that is, for the task
 * that runs here need not be the user's: reclaim, too, finds locked pages.
 */
#include <linux/slab.h>

#include "claim.h"

/* A user who has pinned something. */
struct fb_payer {
	struct list_head list;		/* fb_sb->pins.payers, under pins.lock */
	kuid_t uid;
	unsigned long pages;
};

static struct fb_payer *fb_payer_find(struct fb_sb *fsb, kuid_t uid)
{
	struct fb_payer *payer;

	list_for_each_entry(payer, &fsb->pins.payers, list) {
		if (uid_eq(payer->uid, uid))
			return payer;
	}
	return NULL;
}

/**
 * fb_pin_charge() - may a user have so many more pages pinned?
 * @fsb: the mount
 * @uid: the user
 * @privileged: the limit of a user doesn't hold
 * @pages: more than 0
 *
 * Return: who pays, for fb_pin_uncharge(); or ERR_PTR(-ENOMEM) with nothing charged.
 */
struct fb_payer *fb_pin_charge(struct fb_sb *fsb, kuid_t uid, bool privileged, unsigned long pages)
{
	struct fb_payer *fresh = kzalloc(sizeof(*fresh), GFP_NOFS), *payer;
	unsigned long has;

	if (!fresh)
		return ERR_PTR(-ENOMEM);
	spin_lock(&fsb->pins.lock);
	payer = fb_payer_find(fsb, uid);
	has = payer ? payer->pages : 0;
	if (fsb->pins.charged + pages > fsb->pins.most ||
	    (!privileged && has + pages > fsb->pins.most_of_user)) {
		payer = ERR_PTR(-ENOMEM);
	} else {
		if (!payer) {
			payer = fresh;
			fresh = NULL;
			payer->uid = uid;
			list_add(&payer->list, &fsb->pins.payers);
		}
		payer->pages += pages;
		fsb->pins.charged += pages;
	}
	spin_unlock(&fsb->pins.lock);
	kfree(fresh);
	return payer;
}

/**
 * fb_pin_uncharge() - pages are not pinned any more
 * @fsb: the mount
 * @payer: who paid; may be gone afterwards
 * @pages: how many
 */
void fb_pin_uncharge(struct fb_sb *fsb, struct fb_payer *payer, unsigned long pages)
{
	spin_lock(&fsb->pins.lock);
	fsb->pins.charged -= pages;
	payer->pages -= pages;
	if (payer->pages)
		payer = NULL;
	else
		list_del(&payer->list);
	spin_unlock(&fsb->pins.lock);
	kfree(payer);
}
