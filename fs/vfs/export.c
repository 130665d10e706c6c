// SPDX-License-Identifier: GPL-2.0-only
/*
 * File handles (NFS, open_by_handle_at): those of the lower file system,
 * unchanged, so they stay good with and without forebay on top.
 *
 * A handle of a directory outside of the mounted tree is stale. One of a file
 * outside isn't told from one inside as long as the file's dentry is
 * disconnected: as with the export option no_subtree_check.
 */
#include <linux/cred.h>
#include <linux/exportfs.h>
#include <linux/writeback.h>

#include "../sync/sync.h"
#include "dentry.h"
#include "export.h"
#include "inode.h"

static int fb_encode_fh(struct inode *inode, u32 *fh, int *max_len, struct inode *parent)
{
	int type;

	type = exportfs_encode_inode_fh(FB_I(inode)->lower, (struct fid *)fh, max_len,
					parent ? FB_I(parent)->lower : NULL,
					parent ? EXPORT_FH_CONNECTABLE : 0);
	return type < 0 ? FILEID_INVALID : type;
}

/* The upper dentry of a lower one, whose reference goes. */
static struct dentry *fb_obtain(struct super_block *sb, struct dentry *lower)
{
	struct dentry *dentry;

	if (IS_ERR_OR_NULL(lower))
		return lower;
	dentry = d_obtain_alias(fb_iget(sb, d_inode(lower)));
	if (!IS_ERR(dentry))
		fb_set_lower(dentry, lower);
	dput(lower);
	return dentry;
}

static int fb_acceptable(void *root, struct dentry *lower)
{
	if (lower->d_flags & DCACHE_DISCONNECTED)
		return !d_is_dir(lower);
	return is_subdir(lower, root);
}

static struct dentry *fb_fh_to_dentry(struct super_block *sb, struct fid *fid, int len, int type)
{
	struct fb_sb *fsb = FB_SB(sb);
	const struct cred *old;
	struct dentry *lower;

	old = override_creds(fsb->cred);	/* reconnecting looks names up */
	lower = exportfs_decode_fh(fsb->lower.mnt, fid, len, type, fb_acceptable,
				   fsb->lower.dentry);
	revert_creds(old);
	return fb_obtain(sb, lower);
}

static struct dentry *fb_fh_to_parent(struct super_block *sb, struct fid *fid, int len, int type)
{
	struct super_block *lower_sb = FB_SB(sb)->lower.dentry->d_sb;

	if (!lower_sb->s_export_op->fh_to_parent)
		return NULL;
	return fb_obtain(sb, lower_sb->s_export_op->fh_to_parent(lower_sb, fid, len, type));
}

static struct dentry *fb_get_parent(struct dentry *dentry)
{
	struct dentry *lower = fb_lower_dentry(dentry);
	const struct export_operations *ops = lower->d_sb->s_export_op;
	struct dentry *parent;

	if (!IS_ROOT(lower))
		return fb_obtain(dentry->d_sb, dget_parent(lower));
	if (lower == lower->d_sb->s_root || !ops->get_parent)
		return ERR_PTR(-ESTALE);	/* outside of the mounted tree */
	inode_lock(d_inode(lower));
	parent = ops->get_parent(lower);
	inode_unlock(d_inode(lower));
	return fb_obtain(dentry->d_sb, parent);
}

/*
 * Nothing is dirty in an upper inode; knfsd wants the lower one on storage. A record that says "exactly"
 * (FB_SIZE_EXACT) would make recovery undo what has made the file longer since.
 */
static int fb_commit_metadata(struct inode *inode)
{
	struct inode *lower = FB_I(inode)->lower;
	const struct export_operations *ops = lower->i_sb->s_export_op;
	int err = 0;

	if (test_bit(FB_SIZE_EXACT, &FB_I(inode)->flags))
		err = fb_flush_truncation(FB_I(inode));
	if (err)
		return err;
	if (ops && ops->commit_metadata)
		return ops->commit_metadata(lower);
	return sync_inode_metadata(lower, 1);
}

const struct export_operations fb_export_operations = {
	.encode_fh		= fb_encode_fh,
	.fh_to_dentry		= fb_fh_to_dentry,
	.fh_to_parent		= fb_fh_to_parent,
	.get_parent		= fb_get_parent,
	.commit_metadata	= fb_commit_metadata,
};
