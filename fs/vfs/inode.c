// SPDX-License-Identifier: GPL-2.0-only
/*
 * Upper inodes: one for each lower inode that is looked at, and what binds it to
 * a file record in the cache.
 *
 * An upper inode holds a reference on its lower inode. While it has a file record
 * it is on fb_sb->inodes and has a lower file open for writeback; while it has
 * a name besides, it is pinned (FB_PINNED: a reference of our own), because the
 * index of its pages lives in it. The pin goes with the record, or with the last
 * name; then the last close evicts it and writeback/deferred.c gets its pages.
 */
#include <linux/cred.h>
#include <linux/exportfs.h>
#include <linux/file.h>
#include <linux/ratelimit.h>
#include <linux/slab.h>

#include "../../compat/attr.h"
#include "../lower/attr.h"
#include "../names/record.h"
#include "../page/mapping.h"
#include "../page/record.h"
#include "../pin/pin.h"
#include "../sync/reserve.h"
#include "../sync/stored.h"
#include "../sync/sync.h"
#include "../sync/tracker.h"
#include "../writeback/deferred.h"
#include "../writeback/recover.h"
#include "../writeback/turn.h"
#include "attr.h"
#include "dir.h"
#include "file.h"
#include "inode.h"
#include "mount.h"
#include "namei.h"

static struct kmem_cache *fb_inode_cache;

static void fb_inode_init_once(void *p)
{
	struct fb_inode *fi = p;

	inode_init_once(&fi->vfs_inode);
	mutex_init(&fi->sync_lock);
	fb_range_lock_init(&fi->ranges);
	init_rwsem(&fi->io_sem);
	mutex_init(&fi->wb_lock);
	xa_init(&fi->index);
	fb_mapping_init_once(&fi->dax_mapping);
	xa_init(&fi->stored_below);
	spin_lock_init(&fi->tracker_lock);
	INIT_LIST_HEAD(&fi->sb_link.list);
	fi->sb_link.fi = fi;
	INIT_LIST_HEAD(&fi->lock_link.list);
	fi->lock_link.fi = fi;
	for (unsigned int i = 0; i < FB_NR_PIN_KINDS; i++)
		fi->pins[i] = RB_ROOT_CACHED;
	fi->nr_file_owned = 0;
	INIT_LIST_HEAD(&fi->file_owned);
	INIT_LIST_HEAD(&fi->accounts);
	fb_turn_init_once(fi);
}

struct inode *fb_alloc_inode(struct super_block *sb)
{
	struct fb_inode *fi = alloc_inode_sb(sb, fb_inode_cache, GFP_KERNEL);

	if (!fi)
		return NULL;
	fi->lower = NULL;
	fi->flags = 0;
	fi->nr_pages = 0;
	fi->nr_shared = 0;
	fi->used_at = 0;
	fi->nr_hot = 0;
	fi->waits_in_vain = 0;
	fi->flushes = 0;
	fb_track_init(&fi->tracker);
	fi->overwritten = 0;
	fi->overwrite_max = 0;
	fi->appended = 0;
	fi->reserved = FB_RESERVE_UNASKED;
	fi->file = FB_NO_FILE;
	fi->record_size = 0;
	fi->durable_size = 0;
	fi->below_size = 0;
	fi->record_time = 0;
	fi->below_time = S64_MIN;
	fi->durable_time = S64_MIN;
	fi->truncate_seq = 0;
	fi->looked_at_by = 0;
	memset(&fi->names, 0, sizeof(fi->names));
	memset(&fi->syncs_below, 0, sizeof(fi->syncs_below));
	fi->wb_file = NULL;
	return &fi->vfs_inode;
}

void fb_free_inode(struct inode *inode)
{
	fb_track_free(&FB_I(inode)->tracker);
	kmem_cache_free(fb_inode_cache, FB_I(inode));
}

int fb_inode_cache_create(void)
{
	fb_inode_cache = kmem_cache_create("forebay_inode", sizeof(struct fb_inode), 0,
					   SLAB_RECLAIM_ACCOUNT | SLAB_ACCOUNT, fb_inode_init_once);
	return fb_inode_cache ? 0 : -ENOMEM;
}

void fb_inode_cache_destroy(void)
{
	rcu_barrier();	/* inodes are freed after a grace period */
	kmem_cache_destroy(fb_inode_cache);
}

static int fb_inode_test(struct inode *inode, void *lower)
{
	return FB_I(inode)->lower == lower;
}

static int fb_inode_set(struct inode *inode, void *lower)
{
	FB_I(inode)->lower = lower;
	FB_I(inode)->dax_mapping.host = lower;
	inode->i_ino = FB_I(inode)->lower->i_ino;
	return 0;
}

static void fb_inode_set_operations(struct inode *inode, umode_t mode, dev_t rdev)
{
	inode->i_mode = mode;
	switch (mode & S_IFMT) {
	case S_IFREG:
		inode->i_op = &fb_file_inode_operations;
		inode->i_fop = &fb_file_operations;
		break;
	case S_IFDIR:
		inode->i_op = &fb_dir_inode_operations;
		inode->i_fop = &fb_dir_operations;
		break;
	case S_IFLNK:
		inode->i_op = &fb_symlink_inode_operations;
		break;
	default:
		inode->i_op = &fb_special_inode_operations;
		init_special_inode(inode, mode, rdev);
		break;
	}
}

/**
 * fb_iget() - the upper inode of a lower inode
 * @sb: our super block
 * @lower: the lower inode; the caller keeps its own reference
 *
 * Pages that were found for it at mount are its own before another task sees it.
 *
 * Return: a referenced inode, or an ERR_PTR: -ESTALE if @lower is going away,
 * -ENOMEM, -EBUSY if another mount serves it, or why its recovered pages can't be served.
 */
struct inode *fb_iget(struct super_block *sb, struct inode *lower)
{
	struct inode *inode;
	int err;

	if (!igrab(lower))
		return ERR_PTR(-ESTALE);
	inode = iget5_locked_rcu(sb, (unsigned long)lower, fb_inode_test, fb_inode_set, lower);
	if (!inode || !(inode_state_read_once(inode) & I_NEW)) {
		iput(lower);
		return inode ?: ERR_PTR(-ENOMEM);
	}
	/* What was written before we knew the inode may not be durable: the first sync goes below. */
	fb_mark_needs_sync(FB_I(inode));
	fb_inode_set_operations(inode, lower->i_mode, lower->i_rdev);
	if (!lower->i_op->permission)
		inode->i_opflags |= IOP_FASTPERM;	/* the VFS needn't call fb_permission() */
	inode->i_flags |= S_NOATIME | S_NOCMTIME;	/* the lower file system keeps time */
	fb_copy_attr(inode);
	if (S_ISREG(inode->i_mode)) {
		i_size_write(inode, i_size_read(lower));
		fb_stored_come(FB_I(inode));
		err = fb_served_elsewhere(FB_SB(sb), lower, fb_inode_test) ? -EBUSY :
		      fb_recover_attach(FB_I(inode));
		if (err) {
			iget_failed(inode);
			return ERR_PTR(err);
		}
	}
	unlock_new_inode(inode);
	return inode;
}

/* Called when the last reference is gone; a pinned inode is never here. */
void fb_evict_inode(struct inode *inode)
{
	struct fb_inode *fi = FB_I(inode);

	truncate_inode_pages_final(&inode->i_data);
	clear_inode(inode);
	fb_pins_end(fi);
	if (fi->file != FB_NO_FILE)
		fb_orphan_deleted(fi);
	WARN_ON_ONCE(fi->nr_pages || fi->nr_shared);
	xa_destroy(&fi->index);
	if (fi->lower)
		fb_stored_leave(fi);
	xa_destroy(&fi->stored_below);
	if (fi->lower)
		iput(fi->lower);
}

/**
 * fb_name_changed() - a file got a name: created, linked, renamed
 * @inode: the upper inode
 * @rec: what the change has left in the name log
 *
 * The next sync of the file makes the name durable: in the log, or below.
 */
void fb_name_changed(struct inode *inode, const struct fb_name_record *rec)
{
	struct fb_inode *fi = FB_I(inode);

	if (!fb_names_note(rec, inode))
		fb_mark_needs_sync(fi);
	/* Without a record there is nothing to mark; one that comes now sees the name. */
	if (READ_ONCE(fi->file) == FB_NO_FILE || test_bit(FB_PINNED, &fi->flags))
		return;
	down_write(&fi->io_sem);
	if (fi->file != FB_NO_FILE && inode->i_nlink) {
		fb_record_mark(fi);
		if (!test_and_set_bit(FB_PINNED, &fi->flags))
			ihold(inode);
	}
	up_write(&fi->io_sem);
}

/**
 * fb_last_name_goes() - a file is about to be deleted, if this is its last name
 * @inode: the upper inode, locked
 * @goes: or that has failed
 *
 * Before the call below: when that returns, or while it runs, the deletion may be durable.
 */
void fb_last_name_goes(struct inode *inode, bool goes)
{
	struct fb_inode *fi = FB_I(inode);

	if (!S_ISREG(inode->i_mode) || inode->i_nlink != 1)
		return;
	down_write(&fi->io_sem);
	assign_bit(FB_LAST_NAME_GOES, &fi->flags, goes);
	fb_record_mark(fi);
	up_write(&fi->io_sem);
}

/**
 * fb_name_removed() - a file lost a name
 * @inode: the upper inode, its link count up to date; the caller has a reference
 * @rec: what the change has left in the name log
 */
void fb_name_removed(struct inode *inode, const struct fb_name_record *rec)
{
	struct fb_inode *fi = FB_I(inode);
	bool unpin;

	clear_bit(FB_LAST_NAME_GOES, &fi->flags);
	if (!fb_names_note(rec, inode))
		set_bit(FB_NEEDS_FSYNC, &fi->flags);
	if (!S_ISREG(inode->i_mode) || inode->i_nlink)
		return;
	down_write(&fi->io_sem);
	fb_record_mark(fi);
	unpin = test_and_clear_bit(FB_PINNED, &fi->flags);
	up_write(&fi->io_sem);
	fb_pins_closed(fi, NULL);
	if (unpin)
		iput(inode);
}
