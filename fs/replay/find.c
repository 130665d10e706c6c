// SPDX-License-Identifier: GPL-2.0-only
/*
 * Objects below, by handle and time of birth.
 *
 * xfs gives the handle of a creation that a crash has lost to another file. So a handle is decoded only for
 * what storage has, and the time of birth must agree if the log knows it.
 */
#include <linux/exportfs.h>

#include "find.h"

static_assert(NL_HANDLE_MAX <= PS_HANDLE_MAX);

static int fb_any_dentry(void *context, struct dentry *dentry)
{
	return 1;
}

/* Whether the object was born when the log says. */
static int fb_check_btime(struct fb_sb *fsb, struct dentry *dentry, s64 btime)
{
	struct path path = { .mnt = fsb->lower.mnt, .dentry = dentry };
	struct kstat stat;
	int err;

	if (!btime)
		return 0;
	err = vfs_getattr_nosec(&path, &stat, STATX_BTIME, 0);
	if (err)
		return err;
	return stat.result_mask & STATX_BTIME && timespec64_to_ns(&stat.btime) == btime ? 0 : -ESTALE;
}

/**
 * fb_find_identity() - find an object that storage has
 * @fsb: the mount
 * @id: its identity
 * @connected: of a directory, the dentry must have its parents
 *
 * Context: process. Sleeps.
 * Return: a dentry with a reference; -ESTALE: there is no such object, or another one has the handle; or
 * another error.
 */
struct dentry *fb_find_identity(struct fb_sb *fsb, const struct nl_identity *id, bool connected)
{
	struct ps_handle handle = fb_handle_of(id);
	struct dentry *dentry;
	int err;

	/* Not exportfs_decode_fh(), to which every error is -ESTALE. */
	dentry = exportfs_decode_fh_raw(fsb->lower.mnt, (struct fid *)handle.bytes, handle.len / sizeof(u32),
					handle.type, 0, connected ? fb_any_dentry : NULL, NULL);
	if (!dentry || dentry == ERR_PTR(-ENOENT))
		return ERR_PTR(-ESTALE);
	if (IS_ERR(dentry))
		return dentry;
	err = fb_check_btime(fsb, dentry, id->btime);
	if (!err)
		return dentry;
	dput(dentry);
	return ERR_PTR(err);
}
