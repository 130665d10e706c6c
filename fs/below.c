// SPDX-License-Identifier: GPL-2.0-only
/*
 * What a change below needs: that the lower mount may be written to, and
 * credentials that fit the ids there; or that it isn't the caller's at all.
 *
 * Without idmapping these are the caller's own, so that permissions, quotas and
 * reserved blocks hold for him. On an idmapped mount his ids mean nothing below:
 * there the mounter's are used with the caller's mapped ids, so that files get
 * the right owner, and without CAP_SYS_RESOURCE unless the caller has it.
 */
#include <linux/cred.h>
#include <linux/sched.h>

#include "forebay.h"

/* Returns the caller's credentials if others are in force now; NULL if they stay; ERR_PTR(-ENOMEM). */
static const struct cred *fb_override_creds(struct mnt_idmap *idmap, struct fb_sb *fsb)
{
	struct user_namespace *fs_userns = fsb->sb->s_user_ns;
	struct mnt_idmap *map = idmap ?: &nop_mnt_idmap;
	const struct cred *old;
	struct cred *new;
	bool resource;
	kuid_t uid;
	kgid_t gid;

	if (idmap == &nop_mnt_idmap)
		return NULL;
	uid = mapped_fsuid(map, fs_userns);
	gid = mapped_fsgid(map, fs_userns);
	resource = ns_capable_noaudit(&init_user_ns, CAP_SYS_RESOURCE);

	old = override_creds(fsb->cred);
	new = prepare_creds();	/* a copy of the mounter's */
	if (!new) {
		revert_creds(old);
		return ERR_PTR(-ENOMEM);
	}
	new->fsuid = uid;
	new->fsgid = gid;
	if (!resource)
		cap_lower(new->cap_effective, CAP_SYS_RESOURCE);
	put_cred(override_creds(new));	/* fsb->cred's reference from above */
	put_cred(new);
	return old;
}

/**
 * fb_begin_below() - begin to change something below
 * @idmap: of the upper mount; NULL if the operation isn't told
 * @fsb: our super block
 * @old: what fb_end_below() wants
 *
 * Return: 0; -EROFS, or -ENOMEM.
 */
int fb_begin_below(struct mnt_idmap *idmap, struct fb_sb *fsb, const struct cred **old)
{
	int err = mnt_want_write(fsb->lower.mnt);

	if (err)
		return err;
	*old = fb_override_creds(idmap, fsb);
	if (IS_ERR(*old)) {
		mnt_drop_write(fsb->lower.mnt);
		return PTR_ERR(*old);
	}
	return 0;
}

/**
 * fb_end_below() - the caller's own credentials again, and no more writing
 * @fsb: our super block
 * @old: from fb_begin_below()
 */
void fb_end_below(struct fb_sb *fsb, const struct cred *old)
{
	if (old)
		revert_creds(old);
	mnt_drop_write(fsb->lower.mnt);
}

struct fb_errand {
	struct work_struct work;
	struct fb_sb *fsb;
	int (*run)(void *arg);
	void *arg;
	int ret;
};

static void fb_errand_work(struct work_struct *work)
{
	struct fb_errand *errand = container_of(work, struct fb_errand, work);
	const struct cred *old = override_creds(errand->fsb->cred);

	errand->ret = errand->run(errand->arg);
	revert_creds(old);
}

/**
 * fb_errand() - do something below that is not the caller's business
 * @fsb: our super block
 * @run: what; with the mounter's credentials, takes no locks of ours
 * @arg: passed to @run
 *
 * In a kernel thread: the limit of a file's size and the signals of who happens to come by must not
 * end it.
 *
 * Return: what @run returns.
 */
int fb_errand(struct fb_sb *fsb, int (*run)(void *arg), void *arg)
{
	struct fb_errand errand = { .fsb = fsb, .run = run, .arg = arg };

	INIT_WORK_ONSTACK(&errand.work, fb_errand_work);
	if (current->flags & PF_KTHREAD) {
		fb_errand_work(&errand.work);
	} else {
		queue_work(fsb->errands, &errand.work);
		flush_work(&errand.work);
	}
	destroy_work_on_stack(&errand.work);
	return errand.ret;
}
