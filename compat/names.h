/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Names: looked up, made, removed, renamed. Newer kernels have functions that lock a directory, look a name
 * up in it and unlock the directory again. One day these can lock the name instead.
 */
#ifndef FOREBAY_COMPAT_NAMES_H
#define FOREBAY_COMPAT_NAMES_H

#include <linux/dcache.h>
#include <linux/fs.h>
#include <linux/namei.h>

#include "compat.h"

/* Looks a name up; the directory @base is locked. */
static inline struct dentry *compat_lookup_one(struct mnt_idmap *idmap, const struct qstr *name,
					       struct dentry *base)
{
#ifdef COMPAT_HAS_QSTR_LOOKUP
	struct qstr copy = QSTR_INIT(name->name, name->len);	/* gets a hash of its own */

	return lookup_one(idmap, &copy, base);
#else
	return lookup_one(idmap, name->name, base, name->len);
#endif
}

/* Looks a name up; the directory @base is not locked. */
static inline struct dentry *compat_lookup_one_unlocked(struct mnt_idmap *idmap, const struct qstr *name,
							struct dentry *base)
{
#ifdef COMPAT_HAS_QSTR_LOOKUP
	struct qstr copy = QSTR_INIT(name->name, name->len);

	return lookup_one_unlocked(idmap, &copy, base);
#else
	return lookup_one_unlocked(idmap, name->name, base, name->len);
#endif
}

/*
 * Locks the directory @parent and looks @name up, which is there (@exists), or isn't. The return value is
 * the name's dentry with a reference, for compat_end_changing(). -ESTALE: it is there, or isn't, against
 * expectation. An older kernel leaves that question to the caller.
 */
static inline struct dentry *compat_start_changing(struct mnt_idmap *idmap, struct dentry *parent,
						   const struct qstr *name, bool exists)
{
	struct dentry *child;
#ifdef COMPAT_HAS_START_CREATING
	struct qstr copy = QSTR_INIT(name->name, name->len);

	child = exists ? start_removing(idmap, parent, &copy) : start_creating(idmap, parent, &copy);
	if (child == ERR_PTR(exists ? -ENOENT : -EEXIST))
		child = ERR_PTR(-ESTALE);
#else
	inode_lock_nested(d_inode(parent), I_MUTEX_PARENT);
	child = compat_lookup_one(idmap, name, parent);
	if (IS_ERR(child))
		inode_unlock(d_inode(parent));
#endif
	return child;
}

/* Unlocks the directory and drops @child; does nothing for an ERR_PTR. */
static inline void compat_end_changing(struct dentry *child)
{
#ifdef COMPAT_HAS_START_CREATING
	end_dirop(child);
#else
	if (IS_ERR(child))
		return;
	inode_unlock(d_inode(child->d_parent));
	dput(child);
#endif
}

/*
 * The calls that change a name, between those two. Linux 6.19 can hand out a delegation that has to be
 * broken; NULL waits for none.
 */
static inline int compat_vfs_create(struct mnt_idmap *idmap, struct inode *dir, struct dentry *child,
				    umode_t mode)
{
#ifdef COMPAT_HAS_DELEGATED_CREATE
	return vfs_create(idmap, child, mode, NULL);
#else
	return vfs_create(idmap, dir, child, mode, true);
#endif
}

/*
 * The return value takes the place of @child, and is for compat_end_changing(). After an error the
 * directory is unlocked, and @child dropped.
 */
static inline struct dentry *compat_vfs_mkdir(struct mnt_idmap *idmap, struct inode *dir,
					      struct dentry *child, umode_t mode)
{
#ifdef COMPAT_HAS_MKDIR_DENTRY
	return vfs_mkdir(idmap, dir, child, mode, NULL);
#else
	int err = vfs_mkdir(idmap, dir, child, mode);

	if (!err)
		return child;
	compat_end_changing(child);
	return ERR_PTR(err);
#endif
}

#ifdef COMPAT_HAS_DELEGATED_CREATE
#define compat_vfs_symlink(idmap, dir, child, target)	vfs_symlink(idmap, dir, child, target, NULL)
#define compat_vfs_mknod(idmap, dir, child, mode, rdev)	vfs_mknod(idmap, dir, child, mode, rdev, NULL)
#define compat_vfs_rmdir(idmap, dir, child)		vfs_rmdir(idmap, dir, child, NULL)
#else
#define compat_vfs_symlink	vfs_symlink
#define compat_vfs_mknod	vfs_mknod
#define compat_vfs_rmdir	vfs_rmdir
#endif

/* What a rename is told: idmapping, parents and flags by the caller, dentries by compat_start_renaming(). */
#ifdef COMPAT_HAS_START_RENAMING
#define compat_renamedata	renamedata
#else
struct compat_renamedata {
	struct mnt_idmap *mnt_idmap;
	struct dentry *old_parent;
	struct dentry *old_dentry;
	struct dentry *new_parent;
	struct dentry *new_dentry;
	unsigned int flags;
};

static inline void compat_end_renaming(struct compat_renamedata *rd)
{
	unlock_rename(rd->new_parent, rd->old_parent);
	dput(rd->new_dentry);
	dput(rd->old_dentry);
}

/* Looks both names up; the parents are locked. */
static inline int compat_lookup_renamed(struct compat_renamedata *rd, const struct qstr *old_name,
					const struct qstr *new_name)
{
	rd->old_dentry = compat_lookup_one(rd->mnt_idmap, old_name, rd->old_parent);
	if (IS_ERR(rd->old_dentry))
		return PTR_ERR(rd->old_dentry);
	rd->new_dentry = compat_lookup_one(rd->mnt_idmap, new_name, rd->new_parent);
	if (!IS_ERR(rd->new_dentry))
		return 0;
	dput(rd->old_dentry);
	return PTR_ERR(rd->new_dentry);
}
#endif

/*
 * Locks both directories and looks both names up. -ESTALE: one of them isn't what the VFS has seen above.
 * The source is missing, the target is against the flags, or a directory would move into itself.
 */
static inline int compat_start_renaming(struct compat_renamedata *rd, const struct qstr *old_name,
					const struct qstr *new_name)
{
#ifdef COMPAT_HAS_START_RENAMING
	struct qstr old_copy = QSTR_INIT(old_name->name, old_name->len);
	struct qstr new_copy = QSTR_INIT(new_name->name, new_name->len);
	int err = start_renaming(rd, 0, &old_copy, &new_copy);

	if (err == -ENOENT || err == -EEXIST || err == -EINVAL || err == -ENOTEMPTY)
		err = -ESTALE;
	return err;
#else
	struct dentry *trap = lock_rename(rd->new_parent, rd->old_parent);
	int err;

	if (IS_ERR(trap))
		return PTR_ERR(trap);
	err = compat_lookup_renamed(rd, old_name, new_name);
	if (err) {
		unlock_rename(rd->new_parent, rd->old_parent);
		return err;
	}
	if (rd->old_dentry != trap && rd->new_dentry != trap)
		return 0;
	compat_end_renaming(rd);
	return -ESTALE;
#endif
}

#ifdef COMPAT_HAS_START_RENAMING
#define compat_vfs_rename	vfs_rename
#define compat_end_renaming	end_renaming
#else
static inline int compat_vfs_rename(struct compat_renamedata *rd)
{
	struct renamedata old_rd = {
		.old_mnt_idmap = rd->mnt_idmap,
		.old_dir = d_inode(rd->old_parent),
		.old_dentry = rd->old_dentry,
		.new_mnt_idmap = rd->mnt_idmap,
		.new_dir = d_inode(rd->new_parent),
		.new_dentry = rd->new_dentry,
		.flags = rd->flags,
	};

	return vfs_rename(&old_rd);
}
#endif

/*
 * Operations of ours. COMPAT_DEFINE_..(name) stands after the function, which has the newest shape, and
 * COMPAT_..(name) in the table.
 */

/* int name(struct mnt_idmap *, struct inode *dir, struct dentry *, umode_t) */
#ifndef COMPAT_HAS_CREATE_EXCL
#define COMPAT_DEFINE_CREATE(name)
#define COMPAT_CREATE(name)	name
#else
#define COMPAT_DEFINE_CREATE(name)						\
static int name ## _adapted(struct mnt_idmap *idmap, struct inode *dir,	\
			    struct dentry *dentry, umode_t mode, bool excl)	\
{										\
	return name(idmap, dir, dentry, mode);					\
}

#define COMPAT_CREATE(name)	name ## _adapted
#endif

/* struct dentry *name(struct mnt_idmap *, struct inode *dir, struct dentry *, umode_t): NULL or an ERR_PTR */
#ifdef COMPAT_HAS_MKDIR_DENTRY
#define COMPAT_DEFINE_MKDIR(name)
#define COMPAT_MKDIR(name)	name
#else
#define COMPAT_DEFINE_MKDIR(name)						\
static int name ## _adapted(struct mnt_idmap *idmap, struct inode *dir,	\
			    struct dentry *dentry, umode_t mode)		\
{										\
	return PTR_ERR_OR_ZERO(name(idmap, dir, dentry, mode));			\
}

#define COMPAT_MKDIR(name)	name ## _adapted
#endif

/* int name(struct inode *, const struct qstr *, struct dentry *, unsigned int flags): uses the last two */
#ifdef COMPAT_HAS_REVALIDATE_NAME
#define COMPAT_DEFINE_REVALIDATE(name)
#define COMPAT_REVALIDATE(name)	name
#else
#define COMPAT_DEFINE_REVALIDATE(name)						\
static int name ## _adapted(struct dentry *dentry, unsigned int flags)		\
{										\
	return name(NULL, NULL, dentry, flags);					\
}

#define COMPAT_REVALIDATE(name)	name ## _adapted
#endif

/* The answer of @dentry's own d_revalidate(). The caller has a reference. */
static inline int compat_revalidate(struct dentry *dentry, unsigned int flags)
{
#ifdef COMPAT_HAS_REVALIDATE_NAME
	struct dentry *parent = dget_parent(dentry);
	struct name_snapshot name;
	int ret;

	take_dentry_name_snapshot(&name, dentry);
	ret = dentry->d_op->d_revalidate(d_inode(parent), &name.name, dentry, flags);
	release_dentry_name_snapshot(&name);
	dput(parent);
	return ret;
#else
	return dentry->d_op->d_revalidate(dentry, flags);
#endif
}

#ifndef COMPAT_HAS_DEFAULT_D_OP
static inline void set_default_d_op(struct super_block *sb, const struct dentry_operations *ops)
{
	sb->s_d_op = ops;
}
#endif

#endif
