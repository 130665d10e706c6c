// SPDX-License-Identifier: GPL-2.0-only
/*
 * Recovered pages meet their inodes: a worker instantiates, after mount, the inode of each file that no
 * task opens (writeback/recover.c has the pages). So they can be written back like any others.
 */
#include <linux/exportfs.h>

#include "../page/alloc.h"
#include "../writeback/recover.h"
#include "inode.h"
#include "place.h"

static int fb_any_dentry(void *context, struct dentry *dentry)
{
	return 1;
}

/* Instantiates the file's inode, which takes its pages. -ESTALE: the file is gone; another error may pass. */
static int fb_recover_inode(struct fb_sb *fsb, const struct ps_handle *handle)
{
	struct inode *inode;
	struct dentry *lower;

	/* Not exportfs_decode_fh(), to which every error is -ESTALE. */
	lower = exportfs_decode_fh_raw(fsb->lower.mnt, (struct fid *)handle->bytes,
				       handle->len / sizeof(u32), handle->type, 0, fb_any_dentry, NULL);
	if (!lower || lower == ERR_PTR(-ENOENT))
		return -ESTALE;
	if (IS_ERR(lower))
		return PTR_ERR(lower);
	inode = fb_iget(fsb->sb, d_inode(lower));
	dput(lower);
	if (IS_ERR(inode))
		return PTR_ERR(inode);
	iput(inode);
	return 0;
}

/**
 * fb_recover_rest() - place all pages that still wait for their files
 * @fsb: the mount
 *
 * Return: 0, or why (one of) the files can't be had.
 */
int fb_recover_rest(struct fb_sb *fsb)
{
	unsigned int failed = 0;
	struct ps_handle handle;
	int err, first = 0;

	while (fb_recover_next(fsb, failed, &handle)) {
		err = fb_recover_tried(fsb, &handle, fb_recover_inode(fsb, &handle));
		if (err)
			failed++;
		first = first ?: err;
		cond_resched();
	}
	return first;
}

/**
 * fb_recover_work() - the worker that places pages after mount
 * @work: fb_sb->recover_work
 */
void fb_recover_work(struct work_struct *work)
{
	struct fb_sb *fsb = container_of(work, struct fb_sb, recover_work);

	fb_recover_rest(fsb);
	fb_writeback_kick(fsb);
}
