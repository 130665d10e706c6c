// SPDX-License-Identifier: GPL-2.0-only
/*
 * Mount and unmount.
 *
 *	mount -t forebay -o cache=/dev/pmem0 LOWER MOUNTPOINT
 *
 * A mount binds one cache device to one lower directory. The device keeps that
 * binding (UUID of the lower file system, handle of the directory) as long as it
 * holds anything for the directory. All access below goes through a private clone
 * of the lower mount, so what is mounted over it later doesn't matter.
 *
 * Unmount writes everything back, frees clean pages and records, and with them the
 * pins on inodes; what can't be written back stays in PMem for the next mount.
 */
#include <linux/cred.h>
#include <linux/delay.h>
#include <linux/exportfs.h>
#include <linux/fs_context.h>
#include <linux/fs_parser.h>
#include <linux/module.h>
#include <linux/seq_file.h>
#include <linux/statfs.h>

#include "../../compat/names.h"
#include "../fail.h"
#include "../lower/lower.h"
#include "../names/log.h"
#include "../page/alloc.h"
#include "../page/copies.h"
#include "../page/device.h"
#include "../page/walk.h"
#include "../pin/pin.h"
#include "../replay/replay.h"
#include "../sync/cost.h"
#include "../sync/latency.h"
#include "../sync/stored.h"
#include "../sync/syncfs.h"
#include "../writeback/age.h"
#include "../writeback/deferred.h"
#include "../writeback/evict.h"
#include "../writeback/recover.h"
#include "../writeback/worker.h"
#include "dentry.h"
#include "drain.h"
#include "export.h"
#include "inode.h"
#include "mmap.h"
#include "mount.h"
#include "params.h"
#include "place.h"
#include "sysfs.h"
#include "xattr.h"

/* How long and how often unmount waits until hardware no longer uses pages. */
#define FB_BUSY_WAIT_MS	100
#define FB_BUSY_WAITS	30

static int fb_statfs(struct dentry *dentry, struct kstatfs *stat)
{
	struct path path = fb_lower_path(dentry);
	int err = vfs_statfs(&path, stat);

	stat->f_type = FOREBAY_SUPER_MAGIC;
	return err;
}

static int fb_sync_fs(struct super_block *sb, int wait)
{
	struct fb_sb *fsb = FB_SB(sb);
	int err, lower_err;

	if (!wait)
		return 0;
	/* Truncations first: recovery must not truncate what was appended after one. */
	err = fb_flush_orphans(fsb);
	err = fb_sync_all(fsb) ?: err;
	/*
	 * syncfs() also reports what the lower file system failed to write on its own account. In one hold of
	 * the lock: of two calls at once, the second must not find the error taken and not yet told.
	 */
	spin_lock(&fsb->inodes_lock);
	lower_err = errseq_check_and_advance(&fsb->lower.mnt->mnt_sb->s_wb_err, &fsb->lower_wb_err);
	if (lower_err)
		errseq_set(&sb->s_wb_err, lower_err);
	spin_unlock(&fsb->inodes_lock);
	return err;
}

/* A task that freezes the mount is about to copy the storage below, which must hold everything then. */
static int fb_freeze_fs(struct super_block *sb)
{
	struct fb_sb *fsb = FB_SB(sb);
	int err = fb_flush_all(fsb, false);

	return fb_names_empty(fsb->names) ?: err;
}

static int fb_show_options(struct seq_file *m, struct dentry *root)
{
	struct fb_sb *fsb = FB_SB(root->d_sb);

	seq_show_option(m, "cache", fsb->cache_path);
	seq_printf(m, ",mode=%s,pin_limit=%luk,pin_limit_user=%luk", fb_mode_name(fsb->mode),
		   fsb->pins.max << (PAGE_SHIFT - 10), fsb->pins.max_of_user << (PAGE_SHIFT - 10));
	if (fsb->is_volatile)
		seq_puts(m, ",allow_volatile_cache");
	seq_printf(m, ",writeback_age=%u", fsb->writeback_age);
	if (fsb->zero_freed)
		seq_puts(m, ",zero_freed");
	return 0;
}

static const struct super_operations fb_super_operations = {
	.alloc_inode	= fb_alloc_inode,
	.free_inode	= fb_free_inode,
	.evict_inode	= fb_evict_inode,
	.statfs		= fb_statfs,
	.sync_fs	= fb_sync_fs,
	.freeze_fs	= fb_freeze_fs,
	.show_options	= fb_show_options,
};

static void fb_init_super(struct super_block *sb, struct fb_sb *fsb)
{
	struct super_block *lower = fsb->lower.mnt->mnt_sb;

	fsb->sb = sb;
	fsb->lower_wb_err = errseq_sample(&lower->s_wb_err);
	sb->s_op = &fb_super_operations;
	set_default_d_op(sb, &fb_dentry_operations);
	sb->s_xattr = fb_xattr_handlers;
	sb->s_export_op = &fb_export_operations;
	sb->s_magic = FOREBAY_SUPER_MAGIC;
	sb->s_maxbytes = lower->s_maxbytes;
	sb->s_blocksize = lower->s_blocksize;
	sb->s_blocksize_bits = lower->s_blocksize_bits;
	sb->s_time_gran = lower->s_time_gran;
	sb->s_time_min = lower->s_time_min;
	sb->s_time_max = lower->s_time_max;
	sb->s_stack_depth = lower->s_stack_depth + 1;
	sb->s_flags |= (lower->s_flags & SB_POSIXACL) | SB_NOSEC;
	sb->s_iflags |= lower->s_iflags & (SB_I_NOEXEC | SB_I_NODEV);
}

static int fb_fill_super(struct super_block *sb, struct fs_context *fc)
{
	struct fb_options *opt = fc->fs_private;
	struct fb_sb *fsb = sb->s_fs_info;
	struct ps_handle root;
	struct inode *inode;
	int err;

	if (!fc->source)
		return fb_fail(fc, -EINVAL, "no lower directory given: mount -t forebay -o cache=/dev/pmemN DIRECTORY MOUNTPOINT");
	if (!opt->cache)
		return fb_fail(fc, -EINVAL, "no cache device given: mount -o cache=/dev/pmemN");
	fsb->mode = opt->mode;
	fsb->zero_freed = opt->zero_freed;
	fsb->cache_path = opt->cache;
	opt->cache = NULL;
	err = fb_choose_lower(fsb, fc, &root);
	if (!err)
		err = fb_cache_open(fsb, fc, fsb->cache_path);
	if (!err)
		err = fb_names_open(fsb, fc);
	if (!err)
		err = fb_set_pin_limits(fsb, fc);
	if (!err)
		err = fb_recover_scan(fsb, fc);
	if (!err)
		err = fb_bind(fsb, fc, &root);
	if (!err)
		err = fb_replay(fsb, fc);
	if (!err)
		err = fb_names_start(fsb, fc);
	if (err)
		return err;
	fb_init_super(sb, fsb);
	inode = fb_iget(sb, d_inode(fsb->lower.dentry));
	if (IS_ERR(inode))
		return PTR_ERR(inode);
	sb->s_root = d_make_root(inode);
	if (!sb->s_root)
		return -ENOMEM;
	sb->s_root->d_fsdata = dget(fsb->lower.dentry);
	err = fb_sysfs_add(fsb);
	if (err)
		return err;
	sb->s_flags |= SB_ACTIVE;
	queue_work(fsb->wq, &fsb->recover_work);
	fb_set_writeback_age(fsb, fc);
	fb_set_copy_limits(fsb, &opt->copy_limits);
	return 0;
}

static struct fb_sb *fb_alloc_sb(void)
{
	struct fb_sb *fsb = kzalloc(sizeof(*fsb), GFP_KERNEL);

	if (!fsb)
		return NULL;
	fb_costs_init(fsb);
	spin_lock_init(&fsb->lru_lock);
	spin_lock_init(&fsb->files_lock);
	spin_lock_init(&fsb->inodes_lock);
	INIT_LIST_HEAD(&fsb->free_pages);
	INIT_LIST_HEAD(&fsb->busy_pages);
	INIT_LIST_HEAD(&fsb->clean_pages);
	INIT_LIST_HEAD(&fsb->out_of_sync_pages);
	INIT_LIST_HEAD(&fsb->inodes);
	list_add(&fsb->record_hand.list, &fsb->inodes);
	INIT_LIST_HEAD(&fsb->locked);
	INIT_LIST_HEAD(&fsb->resident_pages);
	INIT_LIST_HEAD(&fsb->deleted);
	mutex_init(&fsb->deleted_lock);
	INIT_LIST_HEAD(&fsb->file_owned);
	INIT_LIST_HEAD(&fsb->turns);
	INIT_LIST_HEAD(&fsb->left);
	spin_lock_init(&fsb->pins.lock);
	INIT_LIST_HEAD(&fsb->pins.users);
	fb_copies_init(fsb);
	INIT_LIST_HEAD(&fsb->mounts);
	init_waitqueue_head(&fsb->space_wait);
	init_rwsem(&fsb->changes);
	INIT_DELAYED_WORK(&fsb->writeback_work, fb_writeback_work);
	INIT_DELAYED_WORK(&fsb->orphan_work, fb_orphan_work);
	INIT_DELAYED_WORK(&fsb->age_work, fb_age_work);
	INIT_WORK(&fsb->recover_work, fb_recover_work);
	fsb->cred = get_current_cred();
	fsb->space_cred = fb_space_cred();
	/*
	 * Without WQ_MEM_RECLAIM: their works write to the lower file system, which may flush workqueues that
	 * have no rescuer either (xfs does when space runs out). Reclaim of memory waits for none of them.
	 */
	fsb->wq = alloc_workqueue("forebay", WQ_UNBOUND | WQ_FREEZABLE, 0);
	/* Apart: these may take as long as a user's limit makes them take. */
	fsb->turn_wq = alloc_workqueue("forebay-turns", WQ_UNBOUND | WQ_FREEZABLE, WQ_MAX_ACTIVE);
	/* Apart: works on the others wait for these. */
	fsb->mounter_wq = alloc_workqueue("forebay-mounter", WQ_UNBOUND, 0);
	if (fsb->space_cred && fsb->wq && fsb->turn_wq && fsb->mounter_wq &&
	    !fb_latencies_init(fsb) &&
	    !percpu_counter_init_many(fsb->counters, 0, GFP_KERNEL, FB_NR_COUNTERS))
		return fsb;
	fb_latencies_free(fsb);
	if (fsb->mounter_wq)
		destroy_workqueue(fsb->mounter_wq);
	if (fsb->turn_wq)
		destroy_workqueue(fsb->turn_wq);
	if (fsb->wq)
		destroy_workqueue(fsb->wq);
	put_cred(fsb->space_cred);
	put_cred(fsb->cred);
	kfree(fsb);
	return NULL;
}

static void fb_free_sb(struct fb_sb *fsb)
{
	fb_names_close(fsb);
	destroy_workqueue(fsb->wq);
	destroy_workqueue(fsb->turn_wq);
	destroy_workqueue(fsb->mounter_wq);
	fb_recover_free(fsb);
	fb_orphans_free(fsb);
	fb_left_forget(fsb);
	fb_cache_close(fsb);
	fb_forget_lower(fsb);
	fb_vm_ops_free(fsb);
	fb_copies_free(fsb);
	percpu_counter_destroy_many(fsb->counters, FB_NR_COUNTERS);
	fb_latencies_free(fsb);
	put_cred(fsb->space_cred);
	put_cred(fsb->cred);
	kfree(fsb->cache_path);
	kfree(fsb);
}

static int fb_get_tree(struct fs_context *fc)
{
	struct fb_options *opt = fc->fs_private;
	struct super_block *frozen;
	int err;

	/* A promise that would not be kept. The VFS refuses it in a remount. */
	if (fc->sb_flags & SB_DIRSYNC)
		return fb_fail(fc, -EINVAL, "dirsync isn't supported: mount the file system below with it");
	frozen = fb_frozen_mount(fc, opt->cache);
	if (frozen) {
		fc->root = dget(frozen->s_root);
		return 0;
	}
	fc->s_fs_info = fb_alloc_sb();
	if (!fc->s_fs_info)
		return -ENOMEM;
	err = get_tree_nodev(fc, fb_fill_super);
	if (fc->s_fs_info) {	/* no super block has taken it */
		fb_free_sb(fc->s_fs_info);
		fc->s_fs_info = NULL;
	}
	return err;
}

static int fb_reconfigure(struct fs_context *fc)
{
	struct fb_options *opt = fc->fs_private;
	struct fb_sb *fsb = FB_SB(fc->root->d_sb);
	int err;

	if (opt->cache && !fb_same_cache(fsb, opt->cache))
		return fb_fail(fc, -EINVAL, "the cache of a mount can't be changed: unmount and mount again");
	if (opt->zero_freed && !fsb->zero_freed)
		return fb_fail(fc, -EINVAL, "zero_freed can't be had by a remount: unmount and mount again");
	sync_filesystem(fc->root->d_sb);
	err = fb_set_pin_limits(fsb, fc);
	if (err)
		return err;
	fb_set_writeback_age(fsb, fc);
	fb_set_copy_limits(fsb, &opt->copy_limits);
	WRITE_ONCE(fsb->mode, opt->mode);
	return 0;
}

static const struct fs_context_operations fb_context_operations = {
	.parse_param	= fb_parse_param,
	.get_tree	= fb_get_tree,
	.reconfigure	= fb_reconfigure,
	.free		= fb_free_options,
};

/* Begins a mount or a remount. */
static int fb_init_fs_context(struct fs_context *fc)
{
	struct fb_options *opt = fb_alloc_options();

	if (!opt)
		return -ENOMEM;
	if (fc->purpose == FS_CONTEXT_FOR_RECONFIGURE)
		opt->mode = FB_SB(fc->root->d_sb)->mode;
	fc->fs_private = opt;
	fc->ops = &fb_context_operations;
	return 0;
}

/* Every file gives its pages and its record up; what is out-of-sync still stays. */
static void fb_release_inodes(struct fb_sb *fsb)
{
	struct fb_walk walk;
	struct fb_inode *fi;

	fb_walk_begin(fsb, &fsb->inodes, &walk);
	while ((fi = fb_walk_next(fsb, &walk))) {
		fb_evict_file(fi);
		if (fi->file != FB_NO_FILE)
			fb_abandon(fi);
		iput(&fi->vfs_inode);
	}
}

/* Hardware may still be storing in busy pages. Such a store must not come when the device is another's. */
static void fb_wait_for_busy(struct fb_sb *fsb)
{
	unsigned int tries = FB_BUSY_WAITS;
	bool busy;

	while ((busy = fb_take_busy(fsb)) && tries--)
		msleep(FB_BUSY_WAIT_MS);
	if (busy)
		pr_warn("%s: unmounted while hardware, or a pipe, holds pages of it\n", fsb->cache_name);
}

/* No work has an inode when this returns, and none begins again: unmount itself does what is left. */
static void fb_stop_works(struct fb_sb *fsb)
{
	disable_delayed_work_sync(&fsb->writeback_work);
	disable_delayed_work_sync(&fsb->age_work);
	disable_delayed_work_sync(&fsb->orphan_work);
	flush_workqueue(fsb->turn_wq);	/* these three begin turns */
}

static void fb_kill_sb(struct super_block *sb)
{
	struct fb_sb *fsb = sb->s_fs_info;
	int err = 0;

	if (sb->s_root) {
		cancel_work_sync(&fsb->recover_work);
		fb_stop_works(fsb);
		fb_pins_end_all(fsb);
		err = fb_flush_all(fsb, false);
		fb_release_inodes(fsb);
	}
	kill_anon_super(sb);
	if (!fsb)
		return;
	if (fsb->kobj.state_initialized)
		fb_sysfs_remove(fsb);
	err = fb_flush_orphans(fsb) ?: err;
	err = fb_names_stop(fsb) ?: err;
	fb_wait_for_busy(fsb);
	fb_stop_works(fsb);
	if (err)
		pr_err("%s: unmounted, but not everything could be written back (error %d): it is in the cache, mount again to try again\n",
		       fsb->cache_name, err);
	fb_free_sb(fsb);
}

static struct file_system_type fb_fs_type = {
	.owner			= THIS_MODULE,
	.name			= "forebay",
	.fs_flags		= FS_ALLOW_IDMAP,
	.init_fs_context	= fb_init_fs_context,
	.parameters		= fb_parameters,
	.kill_sb		= fb_kill_sb,
};
MODULE_ALIAS_FS("forebay");

static int __init fb_init(void)
{
	int err = fb_inode_cache_create();

	if (err)
		return err;
	err = fb_sysfs_init();
	if (err)
		goto out_cache;
	err = register_filesystem(&fb_fs_type);
	if (!err)
		return 0;
	fb_sysfs_exit();
out_cache:
	fb_inode_cache_destroy();
	return err;
}

static void __exit fb_exit(void)
{
	unregister_filesystem(&fb_fs_type);
	fb_sysfs_exit();
	fb_inode_cache_destroy();
}

module_init(fb_init);
module_exit(fb_exit);
MODULE_DESCRIPTION("Persistence-aware page cache over a local file system");
MODULE_LICENSE("GPL");
