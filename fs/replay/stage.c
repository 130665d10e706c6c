// SPDX-License-Identifier: GPL-2.0-only
/*
 * The staging folder of replay, in the lower root: .forebay-replay
 *
 *	log			a symbolic link to nothing: which log's replay this is, by UUID and trim word
 *	done			the same: storage has all that the log had; see replay.c
 *	<birth>			an object that is made again; 16 hexadecimal digits
 *	<birth>.at		a directory that is made again: type and hex of its new handle
 *	d<type><handle>		a directory that moves, or goes
 *	f<type><handle>		a replaced file: this name keeps it until it has its new one
 *	next			a further name of a file, about to replace another file
 *
 * "log" is made last, when the folder is as it should be, and goes last. A folder with another log's name
 * is a leftover. Trim words grow, and the UUID is new at each format, so no two replays have the same.
 *
 * Another user must not put anything here: replay gives what it finds an owner and a mode. So the folder is
 * used only if it belongs to the mounter or to root, and no other user may write to it.
 */
#include <linux/cred.h>
#include <linux/ctype.h>
#include <linux/fs.h>
#include <linux/posix_acl.h>
#include <linux/posix_acl_xattr.h>

#include "../../compat/attr.h"
#include "../fail.h"
#include "change.h"
#include "list.h"
#include "stage.h"

#define FB_STAGING	".forebay-replay"

static const struct qstr fb_staging_name = QSTR_INIT(FB_STAGING, sizeof(FB_STAGING) - 1);
static const struct qstr fb_log_name = QSTR_INIT("log", 3);
static const struct qstr fb_done_name = QSTR_INIT("done", 4);

/* Inode flags that new objects inherit. */
#define FB_INHERITED_FLAGS	(FS_PROJINHERIT_FL | FS_SYNC_FL | FS_DIRSYNC_FL | FS_NODUMP_FL | \
				 FS_NOATIME_FL | FS_DAX_FL)

/* A name that this file has made. */
static bool fb_stage_owns(const char *name, unsigned int len)
{
	unsigned int digits = 0;

	if ((len == 3 && !memcmp(name, "log", 3)) || (len == 4 && !memcmp(name, "done", 4)) ||
	    (len == 4 && !memcmp(name, "next", 4)))
		return true;
	if (len > 3 && (*name == 'd' || *name == 'f')) {
		name++;
		len--;
		while (digits < len && isxdigit(name[digits]))
			digits++;
		return digits == len;
	}
	while (digits < len && isxdigit(name[digits]))
		digits++;
	return digits == 16 && (len == 16 || (len == 19 && !memcmp(name + 16, ".at", 3)));
}

/* Only the mounter, and root, can have made what is in it. */
static bool fb_stage_is_ours(const struct fb_sb *fsb, const struct inode *inode)
{
	return S_ISDIR(inode->i_mode) && !(inode->i_mode & 0022) &&
	       (uid_eq(inode->i_uid, fsb->cred->fsuid) || uid_eq(inode->i_uid, GLOBAL_ROOT_UID));
}

static int fb_stage_in_the_way(struct fb_replay *run)
{
	return fb_fail(run->fc, -EEXIST,
		       "%s/%s is in the way: mount makes a folder of this name to replay the name log, and what is there belongs to another user; move it away, then mount again",
		       run->fc->source, FB_STAGING);
}

/* The root's mtime is the user's: making and removing the folder doesn't change it. */
static int fb_keep_root_mtime(struct fb_sb *fsb, struct timespec64 mtime)
{
	struct iattr attr = { .ia_valid = ATTR_MTIME | ATTR_MTIME_SET | ATTR_FORCE, .ia_mtime = mtime };

	return fb_change_attr(fsb, fsb->lower.dentry, &attr, NULL);
}

/* What new objects would inherit from the folder is taken from it. */
static int fb_stage_inherit_nothing(struct fb_sb *fsb, struct dentry *staging)
{
	struct mnt_idmap *idmap = mnt_idmap(fsb->lower.mnt);
	struct file_kattr fa = { };
	int err = mnt_want_write(fsb->lower.mnt);

	if (err)
		return err;
	err = vfs_remove_acl(idmap, staging, XATTR_NAME_POSIX_ACL_DEFAULT);
	if (!err || err == -ENODATA || err == -EOPNOTSUPP)
		err = vfs_remove_acl(idmap, staging, XATTR_NAME_POSIX_ACL_ACCESS);
	if (err == -ENODATA || err == -EOPNOTSUPP)
		err = 0;
	if (!err && !vfs_fileattr_get(staging, &fa) && fa.flags & FB_INHERITED_FLAGS) {
		fileattr_fill_flags(&fa, fa.flags & ~FB_INHERITED_FLAGS);
		err = vfs_fileattr_set(idmap, staging, &fa);
	}
	mnt_drop_write(fsb->lower.mnt);
	return err;
}

/* The log's name, for the link "log". */
static void fb_stage_log(const struct nl *nl, char *buf)
{
	scnprintf(buf, FB_STAGE_NAME, "%*phN:%llx", NL_UUID_SIZE, nl->header.uuid, nl->trim);
}

static int fb_stage_put_note(struct fb_replay *run, const struct qstr *name, const char *text)
{
	struct dentry *note = fb_make_name(run->fsb, run->staging, name, S_IFLNK, 0, text);

	if (IS_ERR(note))
		return PTR_ERR(note);
	dput(note);
	return 0;
}

/* Makes the folder; "log" says that it is complete. */
static int fb_stage_make(struct fb_replay *run)
{
	struct fb_sb *fsb = run->fsb;
	struct timespec64 mtime = inode_get_mtime(d_inode(fsb->lower.dentry));
	struct iattr attr = { .ia_valid = ATTR_MODE | ATTR_FORCE, .ia_mode = S_IFDIR | 0700 };
	struct dentry *staging = fb_make_name(fsb, fsb->lower.dentry, &fb_staging_name, S_IFDIR | 0700, 0,
					      NULL);
	char log[FB_STAGE_NAME];

	if (IS_ERR(staging))
		return PTR_ERR(staging);
	run->staging = staging;
	fb_stage_log(run->nl, log);
	return fb_keep_root_mtime(fsb, mtime) ?: fb_stage_inherit_nothing(fsb, staging) ?:
	       fb_change_attr(fsb, staging, &attr, NULL) ?: fb_stage_put_note(run, &fb_log_name, log);
}

/* Whether a folder belongs to this log, or to any (@log is NULL). */
static bool fb_stage_is_of(struct fb_sb *fsb, struct dentry *staging, const char *log)
{
	struct dentry *note = fb_find_name(fsb, staging, &fb_log_name);
	DEFINE_DELAYED_CALL(done);
	const char *text;
	bool same = false;

	if (IS_ERR(note))
		return false;
	if (d_is_symlink(note)) {
		text = vfs_get_link(note, &done);
		same = !IS_ERR(text) && (!log || !strcmp(text, log));
		do_delayed_call(&done);
	}
	dput(note);
	return same;
}

/* Removes one entry. A directory that isn't empty stays. */
static int fb_stage_remove_entry(struct fb_sb *fsb, struct dentry *staging, const struct qstr *name)
{
	struct dentry *entry = fb_find_name(fsb, staging, name);
	int err = PTR_ERR_OR_ZERO(entry);

	if (err)
		return err;
	if (d_really_is_positive(entry))
		err = fb_remove_name(fsb, staging, name, d_is_dir(entry));
	dput(entry);
	return err;
}

static bool fb_stage_removes(const char *name, unsigned int len)
{
	return fb_stage_owns(name, len) && !(len == 3 && !memcmp(name, "log", 3));
}

/* Removes what replay has made there, "log" last, and the folder. Names that aren't ours stay. */
static int fb_stage_clear(struct fb_sb *fsb, struct dentry *staging)
{
	struct timespec64 mtime = inode_get_mtime(d_inode(fsb->lower.dentry));
	struct fb_names_list *list;
	struct qstr name;
	u32 removed;
	int err;

	do {
		list = fb_list_names(fsb, staging, fb_stage_removes);
		if (IS_ERR(list))
			return PTR_ERR(list);
		removed = 0;
		err = 0;
		while (fb_list_next(list, &name)) {
			int failed = fb_stage_remove_entry(fsb, staging, &name);

			removed += !failed;
			err = err ?: failed;
			cond_resched();
		}
		fb_list_free(list);
	} while (removed);
	err = err ?: fb_stage_remove_entry(fsb, staging, &fb_log_name) ?:
	      fb_remove_name(fsb, fsb->lower.dentry, &fb_staging_name, true);
	return err ?: fb_keep_root_mtime(fsb, mtime);
}

static struct dentry *fb_stage_look(struct fb_sb *fsb)
{
	return fb_find_name(fsb, fsb->lower.dentry, &fb_staging_name);
}

/* The folder gets a name under which an administrator finds it. */
static int fb_stage_rename(struct fb_replay *run)
{
	struct fb_sb *fsb = run->fsb;
	char buf[FB_STAGE_NAME];
	unsigned int len = scnprintf(buf, sizeof(buf), "forebay-replay.%llx", run->nl->trim);
	struct qstr name = QSTR_INIT(buf, len);
	struct dentry *there = fb_find_name(fsb, fsb->lower.dentry, &name);
	int err;

	if (IS_ERR(there))
		return PTR_ERR(there);
	if (d_really_is_positive(there))
		err = fb_fail(run->fc, -EEXIST,
			      "%s/%s is in the way: mount sets a folder aside by this name; move it away, then mount again",
			      run->fc->source, buf);
	else
		err = fb_move_name(fsb, fsb->lower.dentry, &fb_staging_name, fsb->lower.dentry, &name);
	dput(there);
	if (!err)
		pr_warn("%s: %s/%s has objects that a replay of the name log has left: look for what you miss there, then remove it\n",
			fsb->cache_name, run->fc->source, buf);
	return err;
}

/* A folder that is no leftover of ours, or of another log: it goes, or is set aside. */
static int fb_stage_replace(struct fb_replay *run, struct dentry *staging)
{
	int err;

	if (!fb_stage_is_ours(run->fsb, d_inode(staging)))
		return fb_stage_in_the_way(run);
	err = fb_stage_clear(run->fsb, staging);
	if (err == -ENOTEMPTY)
		err = fb_stage_rename(run);
	return err ?: fb_stage_make(run);
}

/**
 * fb_stage_open() - find the staging folder of this log, or make it
 * @run: the replay; the log has decisions
 *
 * Return: 0 or an error.
 */
int fb_stage_open(struct fb_replay *run)
{
	struct dentry *staging = fb_stage_look(run->fsb);
	char log[FB_STAGE_NAME];
	int err = 0;

	if (IS_ERR(staging))
		return PTR_ERR(staging);
	fb_stage_log(run->nl, log);
	if (d_really_is_negative(staging))
		err = fb_stage_make(run);
	else if (fb_stage_is_ours(run->fsb, d_inode(staging)) && fb_stage_is_of(run->fsb, staging, log))
		run->staging = dget(staging);
	else
		err = fb_stage_replace(run, staging);
	dput(staging);
	return err;
}

/**
 * fb_stage_is_done() - whether storage has all that the log had
 * @run: the replay, its staging folder open
 */
bool fb_stage_is_done(struct fb_replay *run)
{
	struct dentry *note = fb_find_name(run->fsb, run->staging, &fb_done_name);
	bool done;

	if (IS_ERR(note))
		return false;
	done = d_is_symlink(note);
	dput(note);
	return done;
}

/**
 * fb_stage_set_done() - note that storage has all that the log had
 * @run: the replay; a lower sync has returned. Durable after fb_commit_lower_fs()
 *
 * Return: 0 or an error.
 */
int fb_stage_set_done(struct fb_replay *run)
{
	return fb_stage_put_note(run, &fb_done_name, "done");
}

/* Power may have failed before the folder had a "log". One that isn't empty then is a user's. */
static int fb_stage_remove_empty(struct fb_sb *fsb)
{
	struct timespec64 mtime = inode_get_mtime(d_inode(fsb->lower.dentry));
	int err = fb_remove_name(fsb, fsb->lower.dentry, &fb_staging_name, true);

	if (err)
		return err == -ENOTEMPTY ? 0 : err;
	return fb_keep_root_mtime(fsb, mtime);
}

/**
 * fb_stage_remove() - remove a staging folder that is left
 * @run: the replay; the log is empty
 *
 * Return: 0, also if there is none; or an error.
 */
int fb_stage_remove(struct fb_replay *run)
{
	struct dentry *staging = fb_stage_look(run->fsb);
	int err = 0;

	if (IS_ERR(staging))
		return PTR_ERR(staging);
	if (d_really_is_positive(staging) && fb_stage_is_ours(run->fsb, d_inode(staging)))
		err = fb_stage_is_of(run->fsb, staging, NULL) ? fb_stage_clear(run->fsb, staging) :
		      fb_stage_remove_empty(run->fsb);
	dput(staging);
	return err;
}

/**
 * fb_stage_set_aside() - keep what an unfinished replay has moved to staging
 * @run: the replay, which is given up
 *
 * Return: 0, also if there is none; or an error.
 */
int fb_stage_set_aside(struct fb_replay *run)
{
	struct dentry *staging = fb_stage_look(run->fsb);
	int err = 0;

	if (IS_ERR(staging))
		return PTR_ERR(staging);
	if (d_really_is_positive(staging) && fb_stage_is_ours(run->fsb, d_inode(staging)) &&
	    fb_stage_is_of(run->fsb, staging, NULL))
		err = fb_stage_rename(run);
	dput(staging);
	return err;
}
