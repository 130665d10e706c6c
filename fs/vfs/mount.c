// SPDX-License-Identifier: GPL-2.0-only
/* What a mount binds: one lower directory and one cache device, checked here before use. */
#include <linux/blkdev.h>
#include <linux/cred.h>
#include <linux/exportfs.h>
#include <linux/fs_context.h>

#include "../fail.h"
#include "../lower/lower.h"
#include "../replay/replay.h"
#include "../writeback/recover.h"
#include "mount.h"

static DEFINE_MUTEX(fb_mounts_lock);
static LIST_HEAD(fb_mounts);

static int fb_check_lower(struct fs_context *fc, const struct path *lower, struct ps_handle *root)
{
	struct super_block *sb = lower->dentry->d_sb;

	if (sb_rdonly(sb) || __mnt_is_readonly(lower->mnt))
		return fb_fail(fc, -EROFS, "%s is on a read-only file system; remount it read-write",
			       fc->source);
	if (is_idmapped_mnt(lower->mnt))
		return fb_fail(fc, -EINVAL, "%s is on an idmapped mount; use the plain one, and idmap forebay's",
			       fc->source);
	if (uuid_is_null(&sb->s_uuid))
		return fb_fail(fc, -EOPNOTSUPP,
			       "the file system of %s (%s) has no UUID, so its cache could not be told from another's",
			       fc->source, sb->s_type->name);
	if (!exportfs_can_decode_fh(sb->s_export_op) || fb_encode_handle(d_inode(lower->dentry), root))
		return fb_fail(fc, -EOPNOTSUPP,
			       "the file system of %s (%s) has no file handles that Forebay could keep",
			       fc->source, sb->s_type->name);
	if (d_inode(lower->dentry)->i_fop->fsync == noop_fsync)
		return fb_fail(fc, -EOPNOTSUPP,
			       "the file system of %s (%s) keeps nothing when the power goes",
			       fc->source, sb->s_type->name);
	/* Look-ups here go by names byte for byte; namei.c would refuse every one. */
	if (lower->dentry->d_flags & (DCACHE_OP_HASH | DCACHE_OP_COMPARE))
		return fb_fail(fc, -EOPNOTSUPP,
			       "the file system of %s (%s) has rules of its own for names (casefold); make it without them",
			       fc->source, sb->s_type->name);
	if (sb->s_stack_depth + 1 > FILESYSTEM_MAX_STACK_DEPTH)
		return fb_fail(fc, -EINVAL,
			       "too many file systems are stacked below %s: give a directory of the file system at the bottom",
			       fc->source);
	return 0;
}

/*
 * With -o dax below, or the directory's own DAX flag, new files would all be of the kind that
 * fb_may_cache() excludes. Where no such file can be made now, each file is judged by itself.
 */
static int fb_check_new_files(struct fs_context *fc, const struct path *lower)
{
	struct file *file;
	bool dax;

	if (mnt_want_write(lower->mnt))
		return 0;
	file = kernel_tmpfile_open(&nop_mnt_idmap, lower, S_IFREG | 0600, O_RDWR | O_LARGEFILE,
				   current_cred());
	mnt_drop_write(lower->mnt);
	if (IS_ERR(file))
		return 0;
	dax = IS_DAX(file_inode(file));
	__fput_sync(file);
	if (dax)
		return fb_fail(fc, -EOPNOTSUPP,
			       "files of %s are in persistent memory already (DAX), there is nothing to cache; mount the file system below it without -o dax (and clear the directory's DAX flag, if it has one)",
			       fc->source);
	return 0;
}

/* No two mounts may serve one file: their page caches would not know of each other. */
static int fb_register_mount(struct fb_sb *fsb, struct fs_context *fc, const struct path *lower)
{
	struct fb_sb *other;
	int err = 0;

	mutex_lock(&fb_mounts_lock);
	list_for_each_entry(other, &fb_mounts, mounts) {
		if (is_subdir(other->lower.dentry, lower->dentry) ||
		    is_subdir(lower->dentry, other->lower.dentry)) {
			fb_error(fc, "%s is mounted with forebay already (cache %s); unmount that first",
				 fc->source, other->cache_name);
			err = -EBUSY;
			break;
		}
	}
	if (!err)
		list_add(&fsb->mounts, &fb_mounts);
	mutex_unlock(&fb_mounts_lock);
	return err;
}

/**
 * fb_served_elsewhere() - whether another mount has an inode of a lower file
 * @fsb: the mount that asks, and has an inode itself
 * @lower: the lower inode
 * @test: as for iget5_locked()
 *
 * A file may have names in the directories of two mounts. If both ask at once, the answer is true for one of
 * them at least.
 */
bool fb_served_elsewhere(struct fb_sb *fsb, struct inode *lower, int (*test)(struct inode *, void *))
{
	struct fb_sb *other;
	bool served = false;

	if (lower->i_nlink < 2)
		return false;
	mutex_lock(&fb_mounts_lock);
	rcu_read_lock();
	list_for_each_entry(other, &fb_mounts, mounts) {
		if (other == fsb || !other->sb ||
		    !find_inode_rcu(other->sb, (unsigned long)lower, test, lower))
			continue;
		pr_warn_ratelimited("%s: inode %llu has a name in the directory of another mount, too (cache %s): it is used there\n",
				    fsb->cache_name, (u64)lower->i_ino, other->cache_name);
		served = true;
	}
	rcu_read_unlock();
	mutex_unlock(&fb_mounts_lock);
	return served;
}

/**
 * fb_same_cache() - whether a path leads to the mount's cache device, perhaps by another name
 * @fsb: the mount
 * @path: the path
 */
bool fb_same_cache(const struct fb_sb *fsb, const char *path)
{
	dev_t dev;

	return !strcmp(path, fsb->cache_path) ||
	       (!lookup_bdev(path, &dev) && dev == file_bdev(fsb->cache_file)->bd_dev);
}

/* With an active reference, if its mount has this lower directory and this cache, and is frozen. */
static struct super_block *fb_frozen_of(const struct path *lower, dev_t cache)
{
	struct super_block *sb = NULL;
	struct fb_sb *fsb;

	mutex_lock(&fb_mounts_lock);
	list_for_each_entry(fsb, &fb_mounts, mounts) {
		if (!fsb->sb || READ_ONCE(fsb->sb->s_writers.frozen) != SB_FREEZE_COMPLETE ||
		    fsb->lower.dentry != lower->dentry || file_bdev(fsb->cache_file)->bd_dev != cache)
			continue;
		if (atomic_inc_not_zero(&fsb->sb->s_active))
			sb = fsb->sb;
		break;
	}
	mutex_unlock(&fb_mounts_lock);
	return sb;
}

/**
 * fb_frozen_mount() - find the super block that a mount would share, as it is frozen
 * @fc: the mount's context
 * @cache: path of its cache
 *
 * A freeze holds the super block, also when its last mount goes. Only a file on it can end the freeze. So it
 * is mounted again, as with other file systems, and keeps its options.
 *
 * Context: process. Sleeps.
 * Return: it, with an active reference, and s_umount held exclusively; NULL: there is none.
 */
struct super_block *fb_frozen_mount(struct fs_context *fc, const char *cache)
{
	struct super_block *sb;
	struct path lower;
	dev_t dev;

	if (fc->exclusive || fc->user_ns != &init_user_ns || !fc->source || !cache ||
	    lookup_bdev(cache, &dev) || kern_path(fc->source, LOOKUP_FOLLOW | LOOKUP_DIRECTORY, &lower))
		return NULL;	/* sget_fc() or fb_fill_super() says what is wrong */
	sb = fb_frozen_of(&lower, dev);
	path_put(&lower);
	if (!sb)
		return NULL;
	pr_notice("%s: mounted again; it is frozen: fsfreeze --unfreeze ends that\n",
		  FB_SB(sb)->cache_name);
	down_write(&sb->s_umount);
	return sb;
}

/**
 * fb_choose_lower() - find the lower directory, and see that it can be one
 * @fsb: the mount; gets a private mount of it
 * @fc: its context
 * @root: becomes the handle of the directory
 *
 * Return: 0 or a negative errno, after a message.
 */
int fb_choose_lower(struct fb_sb *fsb, struct fs_context *fc, struct ps_handle *root)
{
	struct vfsmount *mnt;
	struct kstat stat;
	struct path lower;
	int err;

	err = kern_path(fc->source, LOOKUP_FOLLOW | LOOKUP_DIRECTORY, &lower);
	if (err == -ENOENT)
		return fb_fail(fc, err, "cannot open the lower directory %s: there is no such directory",
			       fc->source);
	if (err == -ENOTDIR)
		return fb_fail(fc, err, "cannot open the lower directory %s: it is no directory", fc->source);
	if (err)
		return fb_fail(fc, err, "cannot open the lower directory %s: error %d", fc->source, err);
	err = fb_check_lower(fc, &lower, root) ?: fb_check_new_files(fc, &lower) ?:
	      vfs_getattr_nosec(&lower, &stat, STATX_INO, 0);
	if (err)
		goto out;
	mnt = clone_private_mount(&lower);
	if (IS_ERR(mnt)) {
		err = PTR_ERR(mnt);
		if (err == -EINVAL)
			fb_error(fc, "cannot use the mount of %s: it is unbindable (mount --make-private ends that), or of another mount namespace",
				 fc->source);
		else
			fb_error(fc, "cannot use the mount of %s: error %d", fc->source, err);
		goto out;
	}
	/* Access times are the lower file system's business, as its own mount options say. */
	fsb->lower.mnt = mnt;
	fsb->lower.dentry = dget(lower.dentry);
	fsb->lower_dev = stat.dev;
	err = fb_register_mount(fsb, fc, &lower);
out:
	path_put(&lower);
	return err;
}

/**
 * fb_forget_lower() - the lower directory may be mounted again
 * @fsb: the mount, being taken down
 */
void fb_forget_lower(struct fb_sb *fsb)
{
	mutex_lock(&fb_mounts_lock);
	list_del(&fsb->mounts);
	mutex_unlock(&fb_mounts_lock);
	if (fsb->lower.mnt) {
		dput(fsb->lower.dentry);
		kern_unmount(fsb->lower.mnt);	/* mntput() doesn't end a private mount */
	}
}

/**
 * fb_bind() - check whose pages the cache holds, and make them this directory's
 * @fsb: the mount; its cache is scanned, its name log open
 * @fc: its context
 * @root: the handle of the directory
 *
 * Return: 0; -EBUSY: the cache holds what is another directory's.
 */
int fb_bind(struct fb_sb *fsb, struct fs_context *fc, const struct ps_handle *root)
{
	const u8 *uuid = fsb->lower.mnt->mnt_sb->s_uuid.b;

	if (ps_bound_to(&fsb->ps, uuid, root))
		return 0;
	if (ps_is_bound(&fsb->ps) && (fb_recover_found_any(fsb) || fb_replay_has_records(fsb)))
		return fb_fail(fc, -EBUSY,
			       "%s holds data of another directory (on file system %pU): mount that with it once, or give the data up with forebay format --force",
			       fsb->cache_name, fsb->ps.super.lower_uuid);
	ps_bind(&fsb->ps, uuid, root);
	return 0;
}
