// SPDX-License-Identifier: GPL-2.0-only
/*
 * An upper dentry has its lower dentry in d_fsdata, from lookup until it is freed, with a reference. A
 * positive one keeps the same lower dentry: a rename moves both. A negative one gets another lower dentry
 * when a name is created (namei.c), because the old one may have been dropped below.
 */
#include <linux/dcache.h>
#include <linux/rcupdate.h>

#include "../../compat/names.h"
#include "dentry.h"

/**
 * fb_set_lower() - give a dentry its lower dentry if it has none
 * @dentry: upper dentry; its inode may have other dentries, which do the same
 * @lower: lower dentry; the caller keeps its own reference
 */
void fb_set_lower(struct dentry *dentry, struct dentry *lower)
{
	if (cmpxchg(&dentry->d_fsdata, NULL, dget(lower)))
		dput(lower);
}

/*
 * Checks that the lower dentry is still what it was. We change names below first, then here, under the lock
 * of the upper directory: while it is taken, the two may differ. The lower inode is read before the lock is
 * taken, the upper one after that. So a change that is over by then is seen on both sides.
 */
static bool fb_d_is_current(struct dentry *dentry)
{
	struct inode *lower_inode, *inode, *dir;
	struct dentry *lower;
	bool valid;

	rcu_read_lock();	/* the lower dentry of a negative one is exchanged */
	lower = READ_ONCE(dentry->d_fsdata);
	if (!lower || d_unhashed(lower))
		lower_inode = ERR_PTR(-ESTALE);
	else
		lower_inode = d_inode_rcu(lower);
	smp_rmb();		/* see above */
	dir = d_inode_rcu(READ_ONCE(dentry->d_parent));
	valid = !dir || inode_is_locked(dir);
	smp_rmb();		/* see above */
	inode = d_inode_rcu(dentry);
	valid = valid || lower_inode == (inode ? FB_I(inode)->lower : NULL);
	rcu_read_unlock();
	return valid;
}

/*
 * Asks the lower file system about a name, if it has something to say: ext4 and f2fs take a name of an
 * encrypted directory back that was looked up without the directory's key, once the key is there. Returns 1,
 * 0, or an error.
 */
static int fb_lower_revalidate(struct dentry *dentry, unsigned int flags)
{
	struct dentry *lower;
	int valid = 1;

	rcu_read_lock();	/* as above */
	lower = READ_ONCE(dentry->d_fsdata);
	if (!lower || !(lower->d_flags & DCACHE_OP_REVALIDATE)) {
		rcu_read_unlock();
		return 1;
	}
	if (flags & LOOKUP_RCU)
		valid = -ECHILD;
	else if (!lockref_get_not_dead(&lower->d_lockref))
		valid = 0;
	rcu_read_unlock();
	if (valid <= 0)
		return valid;
	valid = compat_revalidate(lower, flags);
	dput(lower);
	return valid;
}

static int fb_d_revalidate(struct inode *parent, const struct qstr *name, struct dentry *dentry,
			   unsigned int flags)
{
	return fb_d_is_current(dentry) ? fb_lower_revalidate(dentry, flags) : 0;
}

COMPAT_DEFINE_REVALIDATE(fb_d_revalidate)

static void fb_d_release(struct dentry *dentry)
{
	dput(fb_lower_dentry(dentry));
}

const struct dentry_operations fb_dentry_operations = {
	.d_revalidate	= COMPAT_REVALIDATE(fb_d_revalidate),
	.d_release	= fb_d_release,
};
