// SPDX-License-Identifier: GPL-2.0-only
/*
 * Open directories. Entries, inode numbers and positions are those of the lower
 * directory; its file's position is set to ours before each use, because that
 * one may have been changed by lseek(), pread() or nfsd.
 */
#include <linux/cred.h>
#include <linux/file.h>

#include "../lower/lower.h"
#include "../names/commit.h"
#include "../sync/latency.h"
#include "dir.h"
#include "ioctl.h"

#define FB_HASH_MODES	(FMODE_32BITHASH | FMODE_64BITHASH)

static int fb_dir_open(struct inode *inode, struct file *file)
{
	struct path path = fb_lower_path(file->f_path.dentry);
	int flags = O_RDONLY | O_DIRECTORY | O_LARGEFILE | (file->f_flags & O_NOATIME) | fb_lower_atime(file);
	struct file *lower;

	/*
	 * The mounter's credentials: to a security module that goes by paths,
	 * the private mount below is a place that the caller can't reach.
	 */
	lower = dentry_open(&path, flags, FB_SB(inode->i_sb)->cred);
	if (IS_ERR(lower))
		return PTR_ERR(lower);
	file->private_data = lower;
	return 0;
}

static int fb_dir_release(struct inode *inode, struct file *file)
{
	fput(fb_lower_file(file));
	return 0;
}

/* The lower file, as far as the upper one, with cookies of the same width (nfsd). */
static struct file *fb_dir_lower(struct file *file)
{
	struct file *lower = fb_lower_file(file);
	fmode_t hash = file->f_mode & FB_HASH_MODES;

	if (unlikely(hash && (lower->f_mode & FB_HASH_MODES) != hash)) {
		spin_lock(&lower->f_lock);
		lower->f_mode = (lower->f_mode & ~FB_HASH_MODES) | hash;
		spin_unlock(&lower->f_lock);
	}
	lower->f_pos = file->f_pos;
	return lower;
}

static int fb_iterate(struct file *file, struct dir_context *ctx)
{
	struct file *lower = fb_dir_lower(file);

	return iterate_dir(lower, ctx);
}

static loff_t fb_dir_llseek(struct file *file, loff_t offset, int whence)
{
	struct file *lower = fb_dir_lower(file);
	loff_t pos;

	pos = vfs_llseek(lower, offset, whence);
	if (pos >= 0)
		file->f_pos = pos;
	return pos;
}

static int fb_dir_fsync(struct file *file, loff_t start, loff_t end, int datasync)
{
	struct fb_sb *fsb = FB_SB(file_inode(file)->i_sb);
	u64 start_ns = ktime_get_ns();
	int err;

	if (!fb_names_commit_all(fsb)) {
		fb_count(fsb, FB_SYNCS_ABSORBED, 1);
		fb_latency_add(file_inode(file), FB_SYNC_MEMORY, start_ns);
		return 0;
	}
	err = vfs_fsync_range(fb_lower_file(file), start, end, datasync);
	if (!err)
		fb_latency_add(file_inode(file), FB_SYNC_STORAGE, start_ns);
	return err;
}

const struct file_operations fb_dir_operations = {
	.open		= fb_dir_open,
	.release	= fb_dir_release,
	.read		= generic_read_dir,
	.iterate_shared	= fb_iterate,
	.llseek		= fb_dir_llseek,
	.fsync		= fb_dir_fsync,
	.unlocked_ioctl	= fb_ioctl,
	.compat_ioctl	= compat_ptr_ioctl,
};
