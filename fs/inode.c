// SPDX-License-Identifier: GPL-2.0-only
/*
 * Upper inodes: one for each lower inode that is looked at, and what binds it to
 * a file record in the cache.
 *
 * An upper inode holds a reference on its lower inode. While it has a file record
 * it is on fb_sb->inodes and has a lower file open for writeback; while it has
 * a name besides, it is pinned (FB_PINNED: a reference of our own), because the
 * index of its pages lives in it. The pin goes with the record, or with the last
 * name; then the last close evicts it and settle.c gets its pages.
 *
 * fi->file, wb_file and record_size change under io_sem held exclusively, or
 * while nobody else can see the inode.
 */
#include <linux/cred.h>
#include <linux/exportfs.h>
#include <linux/file.h>
#include <linux/ratelimit.h>
#include <linux/slab.h>

#include "cache.h"
#include "claim.h"
#include "recover.h"
#include "reserve.h"
#include "settle.h"
#include "writeback.h"

static struct kmem_cache *fb_inode_cache;

static void fb_inode_init_once(void *p)
{
	struct fb_inode *fi = p;

	inode_init_once(&fi->vfs_inode);
	mutex_init(&fi->sync_lock);
	init_rwsem(&fi->io_sem);
	mutex_init(&fi->wb_lock);
	xa_init(&fi->index);
	spin_lock_init(&fi->tracker_lock);
	INIT_LIST_HEAD(&fi->sb_link.list);
	fi->sb_link.fi = fi;
	INIT_LIST_HEAD(&fi->lock_link.list);
	fi->lock_link.fi = fi;
	for (unsigned int i = 0; i < FB_NR_CLAIM_KINDS; i++)
		fi->claims[i] = RB_ROOT_CACHED;
	fi->nr_kept = 0;
	INIT_LIST_HEAD(&fi->kept);
}

struct inode *fb_alloc_inode(struct super_block *sb)
{
	struct fb_inode *fi = alloc_inode_sb(sb, fb_inode_cache, GFP_KERNEL);

	if (!fi)
		return NULL;
	fi->lower = NULL;
	fi->flags = 0;
	fi->nr_pages = 0;
	fi->tracker.nr_ranges = 0;
	fi->tracker.nr_pages = 0;
	fi->tracker.overflow = false;
	fi->tracker.stored = (struct fb_pages_from) {};
	fi->overwritten = 0;
	fi->appended = 0;
	fi->reserved = FB_RESERVE_UNASKED;
	fi->file = FB_NO_FILE;
	fi->record_size = 0;
	fi->durable_size = 0;
	fi->below_size = 0;
	fi->cuts = 0;
	fi->is_being_synced = false;
	fi->wb_file = NULL;
	return &fi->vfs_inode;
}

void fb_free_inode(struct inode *inode)
{
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
 * Pages that were found for it at mount are its own before anyone else sees it.
 *
 * Return: a referenced inode, or an ERR_PTR: -ESTALE if @lower is going away,
 * -ENOMEM, or why its recovered pages can't be served.
 */
struct inode *fb_iget(struct super_block *sb, struct inode *lower)
{
	struct inode *inode;
	int err;

	if (!igrab(lower))
		return ERR_PTR(-ESTALE);
	inode = iget5_locked_rcu(sb, (unsigned long)lower, fb_inode_test, fb_inode_set, lower);
	if (!inode || !(inode->i_state & I_NEW)) {
		iput(lower);
		return inode ?: ERR_PTR(-ENOMEM);
	}
	/* What was written before we knew the inode may not be durable: the first sync goes below. */
	fb_owe_all(FB_I(inode));
	fb_inode_set_operations(inode, lower->i_mode, lower->i_rdev);
	inode->i_flags |= S_NOATIME | S_NOCMTIME;	/* the lower file system keeps time */
	fb_copy_attr(inode);
	if (S_ISREG(inode->i_mode)) {
		i_size_write(inode, i_size_read(lower));
		err = fb_recover_attach(FB_I(inode));
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
	fb_claims_end(fi);
	if (fi->file != FB_NO_FILE)
		fb_settle_deleted(fi);
	WARN_ON_ONCE(fi->nr_pages);
	xa_destroy(&fi->index);
	if (fi->lower)
		iput(fi->lower);
}

/**
 * fb_size_grew() - the file is at least @size bytes now
 * @inode: the upper inode; its i_rwsem may not be held (asynchronous writes)
 * @size: in bytes
 */
void fb_size_grew(struct inode *inode, loff_t size)
{
	spin_lock(&inode->i_lock);
	if (size > i_size_read(inode))
		i_size_write(inode, size);
	spin_unlock(&inode->i_lock);
}

/**
 * fb_size_is_below() - the lower file has at least @size bytes after a crash
 * @fi: the inode; no cut can come between what shows that and this
 * @size: in bytes
 */
void fb_size_is_below(struct fb_inode *fi, loff_t size)
{
	spin_lock(&fi->vfs_inode.i_lock);
	fi->below_size = max(fi->below_size, size);
	spin_unlock(&fi->vfs_inode.i_lock);
}

/**
 * fb_encode_handle() - what identifies a lower file across boots
 * @lower: its inode
 * @handle: filled in
 *
 * Return: 0, or -EOPNOTSUPP if its file system has no handles, or too long ones.
 */
int fb_encode_handle(struct inode *lower, struct ps_handle *handle)
{
	int words = PS_HANDLE_MAX / sizeof(u32), type;

	memset(handle, 0, sizeof(*handle));
	type = exportfs_encode_inode_fh(lower, (struct fid *)handle->bytes, &words, NULL, 0);
	if (type <= 0 || type == FILEID_INVALID)
		return -EOPNOTSUPP;
	handle->type = type;
	handle->len = words * sizeof(u32);
	return 0;
}

/**
 * fb_open_below() - a lower file for our own writes
 * @fi: the inode
 *
 * Its writes leave the modification time alone: that changed when the user
 * wrote, not when we write back.
 *
 * Return: a file, or an ERR_PTR.
 */
struct file *fb_open_below(struct fb_inode *fi)
{
	struct fb_sb *fsb = FB_SB(fi->vfs_inode.i_sb);
	struct path path = { .mnt = fsb->lower.mnt };
	struct file *file;

	path.dentry = d_find_any_alias(fi->lower);
	if (!path.dentry)
		return ERR_PTR(-ESTALE);
	file = dentry_open(&path, O_RDWR | O_LARGEFILE | O_NOATIME, fsb->cred);
	dput(path.dentry);
	if (!IS_ERR(file)) {
		spin_lock(&file->f_lock);
		file->f_mode |= FMODE_NOCMTIME;
		spin_unlock(&file->f_lock);
	}
	return file;
}

/**
 * fb_record_attach() - a file record is this inode's
 * @fi: the inode; see at the top about locking
 * @file: the record's number
 * @size: the size in it
 * @wb_file: from fb_open_below()
 */
void fb_record_attach(struct fb_inode *fi, u32 file, u64 size, struct file *wb_file)
{
	struct inode *inode = &fi->vfs_inode;
	struct fb_sb *fsb = FB_SB(inode->i_sb);

	fi->file = file;
	fi->record_size = size;
	fi->wb_file = wb_file;
	spin_lock(&fsb->inodes_lock);
	list_add_tail(&fi->sb_link.list, &fsb->inodes);
	spin_unlock(&fsb->inodes_lock);
	if (inode->i_nlink && !test_and_set_bit(FB_PINNED, &fi->flags))
		ihold(inode);
}

/* Says so, and has the worker look for records that can go; now and then. */
static void fb_records_full(struct fb_sb *fsb)
{
	static DEFINE_RATELIMIT_STATE(often, 5 * HZ, 1);

	if (!__ratelimit(&often))
		return;
	pr_warn("%s: the table of file records is full (%u): other files' syncs go to storage, their MAP_SYNC mappings fail; forebay format --files makes a larger one\n",
		fsb->cache_name, fsb->ps.nr_files);
	fb_writeback_kick(fsb);
}

/**
 * fb_record_get() - see to it that a file has a record in the cache
 * @fi: the inode; io_sem is held exclusively
 *
 * Return: 0; -EXFULL if the table is full, -EOPNOTSUPP if the file has no name
 * or no handle, or why the lower file can't be opened.
 */
int fb_record_get(struct fb_inode *fi)
{
	struct fb_sb *fsb = FB_SB(fi->vfs_inode.i_sb);
	struct ps_handle handle;
	struct file *wb_file;
	u32 file;
	int err;

	if (fi->file != FB_NO_FILE)
		return 0;
	if (!fi->vfs_inode.i_nlink)
		return -EOPNOTSUPP;
	err = fb_encode_handle(fi->lower, &handle);
	if (err)
		return err;
	wb_file = fb_open_below(fi);
	if (IS_ERR(wb_file))
		return PTR_ERR(wb_file);
	file = fb_file_record_alloc(fsb);
	if (file == FB_NO_FILE) {
		fput(wb_file);
		fb_records_full(fsb);
		return -EXFULL;
	}
	ps_file_create(&fsb->ps, file, &handle, 0);
	fb_record_attach(fi, file, 0, wb_file);
	fb_record_mark(fi);
	return 0;
}

/**
 * fb_record_mark() - say in the record what it means if a crash leaves no such file
 * @fi: the inode; io_sem is held exclusively
 *
 * Live, that somebody else has taken it away, and its pages are kept. Unlinked, that this is as it should
 * be: it was deleted, or is about to be, or was made and never durable, so that nothing was acknowledged
 * of it. If there is a file after all, recovery makes the record live.
 */
void fb_record_mark(struct fb_inode *fi)
{
	bool live = fi->vfs_inode.i_nlink && test_bit(FB_IS_BELOW, &fi->flags) &&
		    !test_bit(FB_LAST_NAME_GOES, &fi->flags);

	if (fi->file != FB_NO_FILE)
		ps_file_set_state(&FB_SB(fi->vfs_inode.i_sb)->ps, fi->file,
				  live ? PS_FILE_LIVE : PS_FILE_UNLINKED);
}

/**
 * fb_is_below() - a sync below has ended: a crash leaves the file, if it has a name
 * @fi: the inode; io_sem is held exclusively
 */
void fb_is_below(struct fb_inode *fi)
{
	if (fi->vfs_inode.i_nlink && !test_and_set_bit(FB_IS_BELOW, &fi->flags))
		fb_record_mark(fi);
}

/**
 * fb_record_for_pages() - see to it that pages of a file can move into the cache
 * @fi: the inode; io_sem is held exclusively
 *
 * Return: 0; -EPERM if it is immutable, for they could not be written back; or as fb_record_get().
 */
int fb_record_for_pages(struct fb_inode *fi)
{
	return IS_IMMUTABLE(&fi->vfs_inode) ? -EPERM : fb_record_get(fi);
}

/**
 * fb_record_forget() - this inode has no record any more
 * @fi: the inode, without pages; io_sem is held exclusively, or nobody else has
 *	it. The record itself is somebody else's, or free
 *
 * The caller has a reference of its own: the pin may go.
 */
void fb_record_forget(struct fb_inode *fi)
{
	struct inode *inode = &fi->vfs_inode;
	struct fb_sb *fsb = FB_SB(inode->i_sb);

	fi->file = FB_NO_FILE;
	fi->record_size = 0;
	fi->durable_size = min(fi->durable_size, fi->below_size);
	clear_bit(FB_SIZE_EXACT, &fi->flags);
	spin_lock(&fsb->inodes_lock);
	list_del_init(&fi->sb_link.list);
	spin_unlock(&fsb->inodes_lock);
	/* Not the delayed fput(): the lower file system shall be free to unmount after us. */
	__fput_sync(fi->wb_file);
	fi->wb_file = NULL;
	if (test_and_clear_bit(FB_PINNED, &fi->flags))
		iput(inode);
}

/**
 * fb_name_changed() - a file got a name: created, linked, renamed
 * @inode: the upper inode
 *
 * The next sync of the file makes the name durable below.
 */
void fb_name_changed(struct inode *inode)
{
	struct fb_inode *fi = FB_I(inode);

	fb_owe_all(fi);
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
 */
void fb_name_removed(struct inode *inode)
{
	struct fb_inode *fi = FB_I(inode);
	bool unpin;

	clear_bit(FB_LAST_NAME_GOES, &fi->flags);
	set_bit(FB_OWES_ATTR, &fi->flags);
	if (!S_ISREG(inode->i_mode) || inode->i_nlink)
		return;
	down_write(&fi->io_sem);
	fb_record_mark(fi);
	unpin = test_and_clear_bit(FB_PINNED, &fi->flags);
	up_write(&fi->io_sem);
	fb_claims_closed(fi, NULL);
	if (unpin)
		iput(inode);
}

/**
 * fb_walk_begin() - begin to visit all files that have records, or locked pages
 * @fsb: the mount
 * @files: its inodes, or locked
 * @walk: begins
 *
 * Any number of walks go on at a time; each visits every file that was on the list when it began.
 */
void fb_walk_begin(struct fb_sb *fsb, struct list_head *files, struct fb_walk *walk)
{
	walk->at.fi = NULL;
	walk->end.fi = NULL;
	spin_lock(&fsb->inodes_lock);
	list_add(&walk->at.list, files);
	list_add_tail(&walk->end.list, files);
	spin_unlock(&fsb->inodes_lock);
}

/**
 * fb_walk_next() - the next file of a walk
 * @fsb: the mount
 * @walk: from fb_walk_begin()
 *
 * Return: a referenced inode, or NULL at the end, when the walk has ended.
 */
struct fb_inode *fb_walk_next(struct fb_sb *fsb, struct fb_walk *walk)
{
	struct fb_sb_link *link = &walk->at;

	spin_lock(&fsb->inodes_lock);
	while ((link = list_next_entry(link, list)) != &walk->end) {
		if (link->fi && igrab(&link->fi->vfs_inode)) {
			list_move(&walk->at.list, &link->list);
			spin_unlock(&fsb->inodes_lock);
			return link->fi;
		}
	}
	spin_unlock(&fsb->inodes_lock);
	fb_walk_end(fsb, walk);
	return NULL;
}

/**
 * fb_walk_end() - end a walk early; no harm if it has ended
 * @fsb: the mount
 * @walk: from fb_walk_begin()
 */
void fb_walk_end(struct fb_sb *fsb, struct fb_walk *walk)
{
	spin_lock(&fsb->inodes_lock);
	list_del_init(&walk->at.list);
	list_del_init(&walk->end.list);
	spin_unlock(&fsb->inodes_lock);
}
