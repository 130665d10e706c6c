// SPDX-License-Identifier: GPL-2.0-only
/*
 * Calls into the file system below: credentials, the right to write to the lower mount, opening, syncing.
 *
 * Without idmapping a change below has the caller's own credentials, so that permissions, quotas and
 * reserved blocks hold for the caller. On an idmapped mount the caller's ids mean nothing below. There a
 * change has the mounter's credentials with the caller's mapped ids, so that files get the right owner,
 * and without CAP_SYS_RESOURCE unless the caller has that.
 */
#include <linux/exportfs.h>
#include <linux/magic.h>
#include <linux/sched/mm.h>

#include "../../compat/cred.h"
#include "../../core/store/xfs_handle.h"
#include "lower.h"

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
	compat_replace_creds(new);
	return old;
}

/**
 * fb_begin_below() - begin to change a name or an attribute below
 * @idmap: of the upper mount; NULL if the operation isn't told
 * @fsb: our super block
 * @old: what fb_end_below() wants
 *
 * Context: process, before any lock of a lower inode. With a name log, fb_sb.changes is held shared until
 * fb_end_below().
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
	if (fsb->names)
		down_read(&fsb->changes);
	return 0;
}

/**
 * fb_end_below() - the caller's own credentials again, and no more writing
 * @fsb: our super block
 * @old: from fb_begin_below()
 */
void fb_end_below(struct fb_sb *fsb, const struct cred *old)
{
	if (fsb->names)
		up_read(&fsb->changes);
	if (old)
		compat_revert_creds_put(old);
	mnt_drop_write(fsb->lower.mnt);
}

struct fb_mounter_call {
	struct work_struct work;
	struct fb_sb *fsb;
	int (*run)(void *arg);
	void *arg;
	int ret;
};

/*
 * Writeback runs here, under wb_lock. If a loop device's file is on this mount, the limit for dirty pages and
 * reclaim may wait for that device, and its worker for wb_lock. So this thread waits for neither: it is
 * throttled by the lower device's own pages alone, and its allocations begin no I/O.
 */
static void fb_mounter_call_work(struct work_struct *work)
{
	struct fb_mounter_call *call = container_of(work, struct fb_mounter_call, work);
	const struct cred *old = override_creds(call->fsb->space_cred);
	unsigned int noio = memalloc_noio_save(), flags = current->flags;

	current->flags |= PF_LOCAL_THROTTLE;
	call->ret = call->run(call->arg);
	current_restore_flags(flags, PF_LOCAL_THROTTLE);
	memalloc_noio_restore(noio);
	revert_creds(old);
}

/**
 * fb_space_cred() - the mounter's credentials, without a right to reserved blocks or to space beyond a quota
 *
 * What is written back has space already; where it hasn't, it is no reason to take what others are kept
 * from.
 *
 * Return: the credentials; NULL: no memory.
 */
const struct cred *fb_space_cred(void)
{
	struct cred *cred = prepare_creds();

	if (!cred)
		return NULL;
	cap_lower(cred->cap_effective, CAP_SYS_RESOURCE);
	cred->fsuid = KUIDT_INIT(overflowuid);
	cred->fsgid = KGIDT_INIT(overflowgid);
	return cred;
}

/**
 * fb_run_as_mounter() - do something below that is not the caller's business
 * @fsb: our super block
 * @run: what; with the mounter's credentials, but held to reserved blocks and quotas; takes no locks of ours
 * @arg: passed to @run
 *
 * In a kernel thread: signals, and the limit of a file's size, of the calling task must not end it.
 *
 * Return: what @run returns.
 */
int fb_run_as_mounter(struct fb_sb *fsb, int (*run)(void *arg), void *arg)
{
	struct fb_mounter_call call = { .fsb = fsb, .run = run, .arg = arg };

	INIT_WORK_ONSTACK(&call.work, fb_mounter_call_work);
	if (current->flags & PF_KTHREAD) {
		fb_mounter_call_work(&call.work);
	} else {
		queue_work(fsb->mounter_wq, &call.work);
		flush_work(&call.work);
	}
	destroy_work_on_stack(&call.work);
	return call.ret;
}

/**
 * fb_may_steer_inode() - whether the caller may know and decide where a file's pages are
 * @idmap: of the upper mount
 * @inode: upper inode, a regular file
 *
 * A caller that may only read a file must neither see what others do with it, as in mincore(2), nor change
 * where their writes go.
 *
 * Return: true if the file's owner and mode would let the caller write.
 */
bool fb_may_steer_inode(struct mnt_idmap *idmap, struct inode *inode)
{
	return inode_owner_or_capable(idmap, inode) || !inode_permission(idmap, inode, MAY_WRITE);
}

/**
 * fb_may_steer() - the same for a caller that has a descriptor
 * @file: upper file, a regular one
 *
 * Return: true also if the descriptor lets the caller write.
 */
bool fb_may_steer(struct file *file)
{
	return (file->f_mode & FMODE_WRITE) || fb_may_steer_inode(file_mnt_idmap(file), file_inode(file));
}

/**
 * fb_open_lower() - open the lower file of an upper one
 * @file: the upper file
 * @inode: its inode
 *
 * The lower file never appends and never syncs by itself: both are done here,
 * by the true size and by what is not durable yet. Linux 7.3 looks at the lower inode's flags when it
 * opens a backing file. So an append-only file is opened to append, and then told not to. An immutable
 * file, which a descriptor from before may map, is opened for reading.
 *
 * Return: a backing file, or an ERR_PTR.
 */
struct file *fb_open_lower(struct file *file, struct inode *inode)
{
	struct path path = fb_lower_path(file_dentry(file));
	int flags = file->f_flags & ~(O_APPEND | O_DSYNC | __O_SYNC | O_CREAT | O_EXCL | O_NOCTTY | O_TRUNC);
	struct file *lower;

	flags |= fb_lower_atime(file);
	if (IS_IMMUTABLE(d_inode(path.dentry)))
		flags = (flags & ~O_ACCMODE) | O_RDONLY;
	/* The caller's right to open was checked above; a private mount is no path that a profile knows. */
	lower = backing_file_open(file, flags | O_APPEND, &path, FB_SB(inode->i_sb)->cred);
	if (!IS_ERR(lower)) {
		spin_lock(&lower->f_lock);
		lower->f_flags &= ~O_APPEND;
		lower->f_iocb_flags = iocb_flags(lower);
		spin_unlock(&lower->f_lock);
	}
	return lower;
}

/**
 * fb_open_quietly() - open a lower file so that our own writes leave its times alone
 * @fsb: the mount
 * @path: lower path of a regular file
 *
 * The modification time changed when the user wrote, not when we write.
 *
 * Return: a file, or an ERR_PTR.
 */
struct file *fb_open_quietly(struct fb_sb *fsb, const struct path *path)
{
	struct file *file = dentry_open(path, O_RDWR | O_LARGEFILE | O_NOATIME, fsb->cred);

	if (!IS_ERR(file)) {
		spin_lock(&file->f_lock);
		file->f_mode |= FMODE_NOCMTIME;
		spin_unlock(&file->f_lock);
	}
	return file;
}

/**
 * fb_open_below() - a lower file for our own writes
 * @fi: the inode
 *
 * Return: a file as fb_open_quietly() opens it, or an ERR_PTR.
 */
struct file *fb_open_below(struct fb_inode *fi)
{
	struct fb_sb *fsb = FB_SB(fi->vfs_inode.i_sb);
	struct path path = { .mnt = fsb->lower.mnt };
	struct file *file;

	path.dentry = d_find_any_alias(fi->lower);
	if (!path.dentry)
		return ERR_PTR(-ESTALE);
	file = fb_open_quietly(fsb, &path);
	dput(path.dentry);
	return file;
}

/**
 * fb_fsync_lower() - the fsync of a lower file
 * @lower: an open lower file
 * @datasync: as for fdatasync
 *
 * A file system that is read-only need not write what it still holds: ext4 and f2fs answer 0 at once.
 * A file system with a file open for writing becomes read-only only by force (emergency remount, or f2fs
 * after an error). Then its answer means nothing.
 *
 * Context: process. Sleeps.
 * Return: 0; -EROFS: what was written may not be durable; or the lower file system's error.
 */
int fb_fsync_lower(struct file *lower, int datasync)
{
	struct address_space *mapping = lower->f_mapping;
	int err = vfs_fsync(lower, datasync);

	if (!err && sb_rdonly(file_inode(lower)->i_sb) &&
	    ((lower->f_mode & FMODE_WRITE) || mapping_tagged(mapping, PAGECACHE_TAG_DIRTY)))
		err = -EROFS;
	return err;
}

/**
 * fb_fsync_below() - a lower fsync that no program has asked for
 * @fi: the inode, with a lower file for writeback
 * @datasync: as for fdatasync
 *
 * The lower file system tells of an error of its writes once for each struct file, and an error that any of
 * them was told is no news to a file that is opened later. So a program might never hear of what this call
 * was told: the file's next fsync tells it.
 *
 * Context: process, under wb_lock. Sleeps.
 * Return: 0 or the lower file system's error.
 */
int fb_fsync_below(struct fb_inode *fi, int datasync)
{
	int err = fb_fsync_lower(fi->wb_file, datasync);

	lockdep_assert_held(&fi->wb_lock);
	mapping_set_error(fi->vfs_inode.i_mapping, err);
	return err;
}

/**
 * fb_write_before_replacing() - write a file's data before it takes the place of another one
 * @lower: its lower inode
 *
 * The other's data may be synced. ext4 lets the new data reach storage before the rename. xfs doesn't, so
 * they are written here. An error is the next sync call's. What is small needs none of this
 * (sync/replace.c).
 *
 * Context: process. Waits for storage.
 */
void fb_write_before_replacing(struct inode *lower)
{
	if (strcmp(lower->i_sb->s_type->name, "xfs"))
		return;
	filemap_fdatawrite(lower->i_mapping);
	filemap_fdatawait_keep_errors(lower->i_mapping);
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
	if (lower->i_sb->s_magic == XFS_SUPER_MAGIC)
		xfs_handle_widen(handle);
	return 0;
}

/*
 * A journal of ext4 may have failed while no task waited for it. ext4 has nothing to commit then, and says
 * that all is well until a change begins (ext4_journal_check_start()). So one begins here, and joins the
 * transaction that is about to be committed. A file system that is frozen, or read-only since, takes none;
 * its journal was written before.
 *
 * To mark an inode dirty takes no lock of the inode: readers do the same for an access time (touch_atime()),
 * and ext4 copies the fields under a lock of its own. Nor does it take the freeze protection: a freeze that
 * goes beyond its first stage, where transactions still begin, holds s_umount.
 */
static void fb_ask_journal(struct super_block *lower, struct inode *inode)
{
	lockdep_assert_held(&lower->s_umount);
	if (lower->s_magic == EXT4_SUPER_MAGIC && !sb_rdonly(lower) &&
	    lower->s_writers.frozen != SB_FREEZE_COMPLETE)
		mark_inode_dirty_sync(inode);
}

/**
 * fb_sync_lower_fs() - everything that the lower file system holds becomes durable
 * @fsb: the mount
 *
 * A file system that has shut itself down after an error has nothing to sync, and says that
 * all is well (ext4); its fsync tells. That comes first: to btrfs it means a log, which the
 * sync of everything makes an end to.
 *
 * Return: 0 or the lower file system's error.
 */
int fb_sync_lower_fs(struct fb_sb *fsb)
{
	struct super_block *lower = fsb->lower.mnt->mnt_sb;
	struct file *root;
	int err;

	root = dentry_open(&fsb->lower, O_RDONLY | O_DIRECTORY, fsb->cred);
	if (IS_ERR(root))
		return PTR_ERR(root);
	down_read(&lower->s_umount);
	fb_ask_journal(lower, file_inode(root));
	up_read(&lower->s_umount);
	err = vfs_fsync(root, 0);
	__fput_sync(root);
	if (err)
		return err;
	down_read(&lower->s_umount);
	err = sync_filesystem(lower);
	up_read(&lower->s_umount);
	return err;
}

/**
 * fb_commit_lower_fs_locked() - changes of names and attributes below that have ended become durable
 * @fsb: the mount
 *
 * Data that the lower file system has not given blocks yet isn't written. The fsync of a directory comes
 * last: it tells of a file system that has shut itself down, for which ext4 has nothing to commit.
 *
 * Context: process; s_umount of the lower super block is held. Sleeps.
 * Return: 0 or the lower file system's error.
 */
int fb_commit_lower_fs_locked(struct fb_sb *fsb)
{
	struct super_block *lower = fsb->lower.mnt->mnt_sb;
	struct file *root;
	int err = 0;

	lockdep_assert_held(&lower->s_umount);
	root = dentry_open(&fsb->lower, O_RDONLY | O_DIRECTORY, fsb->cred);
	if (IS_ERR(root))
		return PTR_ERR(root);
	fb_ask_journal(lower, file_inode(root));
	if (lower->s_op->sync_fs)
		err = lower->s_op->sync_fs(lower, 1);
	err = err ?: vfs_fsync(root, 0);
	__fput_sync(root);
	return err;
}

/**
 * fb_commit_lower_fs() - the same; takes s_umount of the lower super block
 * @fsb: the mount
 *
 * Context: process. Sleeps.
 * Return: 0 or the lower file system's error.
 */
int fb_commit_lower_fs(struct fb_sb *fsb)
{
	struct super_block *lower = fsb->lower.mnt->mnt_sb;
	int err;

	down_read(&lower->s_umount);
	err = fb_commit_lower_fs_locked(fsb);
	up_read(&lower->s_umount);
	return err;
}
