// SPDX-License-Identifier: GPL-2.0-only
/*
 * The steps of core/names/bind.c are made below: directories move to staging, names are added and removed.
 *
 * Invariants:
 *   - an object that a later step needs has a name. A file that is about to lose its last name to another
 *     file gets one in staging first; all names are added before the first is removed;
 *   - a name that stands for the right object is left alone. So each step can be made again;
 *   - a file that was made under its only name (make.c) has it, or had it: it isn't looked for;
 *   - a name of a file is replaced by one rename: it stands for the old file or the new one;
 *   - no directory is removed here. One that goes has been moved to staging.
 */
#include <linux/dcache.h>

#include "../lower/lower.h"
#include "bind.h"
#include "change.h"
#include "make.h"
#include "stage.h"

static const struct qstr fb_next_name = QSTR_INIT("next", 4);

static struct qstr fb_name_of(const struct nl_binding *binding)
{
	return (struct qstr)QSTR_INIT(binding->name.bytes, binding->name.len);
}

/* Renames a directory from where it is. Does nothing if it is there already. */
static int fb_move_dir(struct fb_replay *run, struct dentry *object, struct dentry *to,
		       const struct qstr *new_name)
{
	struct dentry *from = dget_parent(object);
	struct name_snapshot old_name;
	struct qstr name;
	int err;

	take_dentry_name_snapshot(&old_name, object);
	name = (struct qstr)QSTR_INIT(old_name.name.name, old_name.name.len);
	if (from == to && name.len == new_name->len && !memcmp(name.name, new_name->name, name.len))
		err = 0;
	else
		err = fb_move_name(run->fsb, from, &name, to, new_name, FB_NEW_CTIME);
	release_dentry_name_snapshot(&old_name);
	dput(from);
	return err;
}

/**
 * fb_bind_stage() - move a directory that storage has to staging
 * @run: the replay, its staging folder open
 * @node: the directory
 *
 * Return: 0 or an error.
 */
int fb_bind_stage(struct fb_replay *run, const struct nl_node *node)
{
	struct dentry *object = fb_find_object(run, node);
	struct ps_handle handle;
	char buf[FB_STAGE_NAME];
	struct qstr name;
	int err;

	if (IS_ERR(object))
		return PTR_ERR(object);
	if (!d_is_dir(object))
		err = -ENOTDIR;
	else if (!is_subdir(object, run->fsb->lower.dentry))
		err = -EXDEV;	/* it was moved away meanwhile, and isn't ours to move */
	else
		err = fb_encode_handle(d_inode(object), &handle);
	if (!err) {
		name = fb_handle_name(buf, 'd', &handle);
		err = fb_move_dir(run, object, run->staging, &name);
	}
	run->moved += !err;
	dput(object);
	return err;
}

/* A file that loses its last name may get another one later: staging keeps it until then. */
static int fb_keep_file(struct fb_replay *run, struct dentry *file)
{
	struct ps_handle handle;
	char buf[FB_STAGE_NAME];
	struct dentry *kept;
	struct qstr name;
	int err;

	if (d_inode(file)->i_nlink > 1)
		return 0;
	err = fb_encode_handle(d_inode(file), &handle);
	if (err)
		return err;
	name = fb_handle_name(buf, 'f', &handle);
	kept = fb_find_name(run->fsb, run->staging, &name);
	if (IS_ERR(kept))
		return PTR_ERR(kept);
	if (d_really_is_negative(kept))
		err = fb_link_name(run->fsb, file, run->staging, &name, FB_KEEP_CTIME);
	dput(kept);
	return err;
}

/* Binds a file. @there: what the name stands for; a file, or negative. */
static int fb_add_file(struct fb_replay *run, struct dentry *object, struct dentry *dir,
		       const struct qstr *name, struct dentry *there, enum fb_ctime keep)
{
	struct fb_sb *fsb = run->fsb;
	struct dentry *next;
	int err;

	if (d_really_is_negative(there))
		return fb_link_name(fsb, object, dir, name, keep);
	next = fb_find_name(fsb, run->staging, &fb_next_name);
	if (IS_ERR(next))
		return PTR_ERR(next);
	err = 0;
	if (d_really_is_positive(next))
		err = fb_remove_name(fsb, run->staging, &fb_next_name, false, FB_KEEP_CTIME);
	dput(next);
	return err ?: fb_keep_file(run, there) ?:
	       fb_link_name(fsb, object, run->staging, &fb_next_name, keep) ?:
	       fb_move_name(fsb, run->staging, &fb_next_name, dir, name, keep);
}

/* Binds a directory. @there: as above. */
static int fb_add_dir(struct fb_replay *run, struct dentry *object, struct dentry *dir,
		      const struct qstr *name, struct dentry *there)
{
	int err = 0;

	if (d_really_is_positive(there))
		err = fb_keep_file(run, there) ?:
		      fb_remove_name(run->fsb, dir, name, false, FB_KEEP_CTIME);
	return err ?: fb_move_dir(run, object, dir, name);
}

/* @dir and @object are found. */
static int fb_add_there(struct fb_replay *run, struct dentry *dir, struct dentry *object,
			const struct qstr *name, enum fb_ctime keep)
{
	struct dentry *there = fb_find_name(run->fsb, dir, name);
	int err;

	if (IS_ERR(there))
		return PTR_ERR(there);
	if (d_inode(there) == d_inode(object))
		err = 0;
	else if (d_really_is_positive(there) && d_is_dir(there))
		err = -EEXIST;
	else if (d_is_dir(object))
		err = fb_add_dir(run, object, dir, name, there);
	else
		err = fb_add_file(run, object, dir, name, there, keep);
	dput(there);
	return err;
}

/**
 * fb_bind_add() - bind a name to its object, in place of what is there
 * @run: the replay, its staging folder open
 * @binding: NL_BIND_ADD
 *
 * Return: 0; -EEXIST: a directory is there that the log doesn't know of; or another error.
 */
int fb_bind_add(struct fb_replay *run, const struct nl_binding *binding)
{
	const struct nl_node *node = binding->object;
	bool made = nl_node_made(&run->bind, node), at_home = fb_is_at_home(run, node);
	struct qstr name = fb_name_of(binding);
	struct dentry *dir, *object;
	int err;

	if (at_home && run->new_staging) {
		run->added++;
		return 0;
	}
	object = at_home ? fb_find_staged(run, node) : fb_find_object(run, node);
	if (at_home && object == ERR_PTR(-ESTALE)) {
		run->added++;
		return 0;
	}
	if (IS_ERR(object))
		return PTR_ERR(object);
	dir = fb_find_dir(run, binding->dir);
	err = PTR_ERR_OR_ZERO(dir);
	if (!err) {
		err = fb_add_there(run, dir, object, &name, made ? FB_NEW_CTIME : FB_KEEP_CTIME);
		dput(dir);
	}
	run->added += !err;
	dput(object);
	return err;
}

/**
 * fb_bind_remove() - remove a name, if it is there
 * @run: the replay, its staging folder open
 * @binding: NL_BIND_REMOVE
 *
 * Return: 0; -EISDIR: it stands for a directory that the log doesn't know of; or another error.
 */
int fb_bind_remove(struct fb_replay *run, const struct nl_binding *binding)
{
	struct dentry *dir = fb_find_dir(run, binding->dir), *there;
	struct qstr name = fb_name_of(binding);
	int err = 0;

	if (IS_ERR(dir))
		return PTR_ERR(dir);
	there = fb_find_name(run->fsb, dir, &name);
	if (IS_ERR(there))
		err = PTR_ERR(there);
	else if (d_really_is_positive(there))
		err = d_is_dir(there) ? -EISDIR : fb_remove_name(run->fsb, dir, &name, false, FB_KEEP_CTIME);
	if (!IS_ERR(there))
		dput(there);
	run->removed += !err;
	dput(dir);
	return err;
}
