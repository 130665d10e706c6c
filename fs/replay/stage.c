// SPDX-License-Identifier: GPL-2.0-only
/*
 * The staging folder of replay, in the lower root: .forebay-replay.<16 hexadecimal digits>
 *
 *	log			a symbolic link to nothing: which log's replay this is, by UUID and trim word
 *	made			the same: all objects are made; see replay.c
 *	done			the same: storage has all that the log had
 *	<birth>			an object that is made again; 16 hexadecimal digits
 *	<birth>.at		a directory that is made again: type and hex of its new handle
 *	d<type><handle>		a directory that moves, or goes
 *	f<type><handle>		a replaced file: this name keeps it until it has its new one
 *	next			a further name of a file, about to replace another file
 *
 * "log" is made last, when the folder is as it should be, and goes last. Trim words grow, and the UUID is
 * new at each format, so no two replays have the same.
 *
 * The digits are a hash of the trim word, keyed with the UUID, which no file and no tool shows. So a user
 * with the right to write to the root can't make the name before replay does, and no record of the log is
 * about it. The name is the same until the log is empty.
 *
 * Another user must not put anything here: replay gives what it finds an owner and a mode. So the folder is
 * used only if it belongs to the mounter or to root, and no other user has any right.
 */
#include <linux/cred.h>
#include <linux/ctype.h>
#include <linux/fs.h>
#include <linux/posix_acl.h>
#include <linux/posix_acl_xattr.h>
#include <linux/random.h>
#include <linux/siphash.h>

#include "../../compat/attr.h"
#include "../fail.h"
#include "change.h"
#include "list.h"
#include "stage.h"

static const struct qstr fb_log_name = QSTR_INIT("log", 3);
static const struct qstr fb_made_name = QSTR_INIT("made", 4);
static const struct qstr fb_done_name = QSTR_INIT("done", 4);

#ifdef FB_BREAK_MADE		/* a fault on purpose: objects that have left staging are made again */
#define FB_BREAK_NOTE	1
#else
#define FB_BREAK_NOTE	0
#endif

/* Inode flags that new objects inherit. */
#define FB_INHERITED_FLAGS	(FS_PROJINHERIT_FL | FS_SYNC_FL | FS_DIRSYNC_FL | FS_NODUMP_FL | \
				 FS_NOATIME_FL | FS_DAX_FL)

static bool fb_is_hex(const char *name, unsigned int len)
{
	while (len && isxdigit(*name)) {
		name++;
		len--;
	}
	return !len;
}

/* True for a name that this file has made. */
static bool fb_stage_owns(const char *name, unsigned int len)
{
	if ((len == 3 && !memcmp(name, "log", 3)) || (len == 4 && !memcmp(name, "made", 4)) ||
	    (len == 4 && !memcmp(name, "done", 4)) || (len == 4 && !memcmp(name, "next", 4)))
		return true;
	if (len > 3 && (*name == 'd' || *name == 'f'))
		return fb_is_hex(name + 1, len - 1);
	if (len == FB_BIRTH_DIGITS + 3 && !memcmp(name + FB_BIRTH_DIGITS, ".at", 3))
		len = FB_BIRTH_DIGITS;
	return len == FB_BIRTH_DIGITS && fb_is_hex(name, len);
}

/**
 * fb_stage_name() - the name of the staging folder
 * @run: the replay, its @life set
 * @buf: FB_STAGE_NAME bytes, which the name needs
 *
 * Return: the name.
 */
struct qstr fb_stage_name(const struct fb_replay *run, char *buf)
{
	unsigned int len;
	siphash_key_t key;

	static_assert(sizeof(key) == NL_UUID_SIZE);
	memcpy(&key, run->nl->header.uuid, sizeof(key));
	len = scnprintf(buf, FB_STAGE_NAME, ".forebay-replay.%016llx", siphash_1u64(run->life, &key));
	return (struct qstr)QSTR_INIT(buf, len);
}

/* Only the mounter, and root, can have made what is in it. */
static bool fb_stage_is_ours(const struct fb_sb *fsb, const struct inode *inode)
{
	return S_ISDIR(inode->i_mode) && !(inode->i_mode & 0077) &&
	       (uid_eq(inode->i_uid, fsb->cred->fsuid) || uid_eq(inode->i_uid, GLOBAL_ROOT_UID));
}

static int fb_stage_changed(struct fb_replay *run)
{
	char buf[FB_STAGE_NAME];
	struct qstr name = fb_stage_name(run, buf);

	return fb_fail(run->fc, -EEXIST,
		       "%s/%s isn't as mount has made it: this folder is for replaying the name log, belongs to root and has mode 0700; undo what was changed, then mount again, or with -o names=discard",
		       run->fc->source, name.name);
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
	int err = fb_replay_stops() ? -ECANCELED : mnt_want_write(fsb->lower.mnt);

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
static void fb_stage_log(const struct fb_replay *run, char *buf)
{
	scnprintf(buf, FB_STAGE_NAME, "%*phN:%llx", NL_UUID_SIZE, run->nl->header.uuid, run->life);
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
	char buf[FB_STAGE_NAME], log[FB_STAGE_NAME];
	struct qstr name = fb_stage_name(run, buf);
	struct dentry *staging = fb_make_name(fsb, fsb->lower.dentry, &name, S_IFDIR | 0700, 0, NULL);

	if (IS_ERR(staging))
		return PTR_ERR(staging);
	run->staging = staging;
	run->new_staging = true;
	fb_stage_log(run, log);
	return fb_keep_root_mtime(fsb, mtime) ?: fb_stage_inherit_nothing(fsb, staging) ?:
	       fb_change_attr(fsb, staging, &attr, NULL) ?: fb_stage_put_note(run, &fb_log_name, log);
}

/* Whether a folder is complete, and this log's. */
static bool fb_stage_is_whole(struct fb_replay *run, struct dentry *staging)
{
	struct dentry *note = fb_find_name(run->fsb, staging, &fb_log_name);
	DEFINE_DELAYED_CALL(done);
	char log[FB_STAGE_NAME];
	const char *text;
	bool same = false;

	if (IS_ERR(note))
		return false;
	fb_stage_log(run, log);
	if (d_is_symlink(note)) {
		text = vfs_get_link(note, &done);
		same = !IS_ERR(text) && !strcmp(text, log);
		do_delayed_call(&done);
	}
	dput(note);
	return same;
}

/* Removes one entry. A directory that isn't empty stays. */
static int fb_stage_remove_entry(struct fb_sb *fsb, struct dentry *staging, const struct qstr *name)
{
	enum fb_ctime keep = name->len == FB_BIRTH_DIGITS ? FB_NEW_CTIME : FB_KEEP_CTIME;
	struct dentry *entry = fb_find_name(fsb, staging, name);
	int err = PTR_ERR_OR_ZERO(entry);

	if (err)
		return err;
	if (d_really_is_positive(entry))
		err = fb_remove_name(fsb, staging, name, d_is_dir(entry), keep);
	dput(entry);
	return err;
}

static bool fb_stage_removes(const char *name, unsigned int len)
{
	return fb_stage_owns(name, len) && !(len == 3 && !memcmp(name, "log", 3));
}

/* Removes what replay has made there, "log" last, and the folder. Names that aren't ours stay. */
static int fb_stage_clear(struct fb_replay *run, struct dentry *staging)
{
	struct timespec64 mtime = inode_get_mtime(d_inode(run->fsb->lower.dentry));
	struct fb_sb *fsb = run->fsb;
	struct fb_names_list *list;
	char buf[FB_STAGE_NAME];
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
	name = fb_stage_name(run, buf);
	err = err ?: fb_stage_remove_entry(fsb, staging, &fb_log_name) ?:
	      fb_remove_name(fsb, fsb->lower.dentry, &name, true, FB_NEW_CTIME);
	return err ?: fb_keep_root_mtime(fsb, mtime);
}

static struct dentry *fb_stage_look(struct fb_replay *run)
{
	char buf[FB_STAGE_NAME];
	struct qstr name = fb_stage_name(run, buf);

	return fb_find_name(run->fsb, run->fsb->lower.dentry, &name);
}

/* Power has failed before the folder had a "log". */
static int fb_stage_remove_empty(struct fb_replay *run)
{
	struct fb_sb *fsb = run->fsb;
	struct timespec64 mtime = inode_get_mtime(d_inode(fsb->lower.dentry));
	char buf[FB_STAGE_NAME];
	struct qstr name = fb_stage_name(run, buf);

	return fb_remove_name(fsb, fsb->lower.dentry, &name, true, FB_NEW_CTIME) ?:
	       fb_keep_root_mtime(fsb, mtime);
}

/* A folder without "log" is made anew. */
static int fb_stage_make_again(struct fb_replay *run)
{
	int err = fb_stage_remove_empty(run);

	return err == -ENOTEMPTY ? fb_stage_changed(run) : err ?: fb_stage_make(run);
}

/**
 * fb_stage_open() - find the staging folder of this log, or make it
 * @run: the replay, its @life set; the log has decisions
 *
 * Return: 0; -EEXIST: it was changed, after a message; or another error.
 */
int fb_stage_open(struct fb_replay *run)
{
	struct dentry *staging = fb_stage_look(run);
	int err = 0;

	if (IS_ERR(staging))
		return PTR_ERR(staging);
	if (d_really_is_negative(staging))
		err = fb_stage_make(run);
	else if (!fb_stage_is_ours(run->fsb, d_inode(staging)))
		err = fb_stage_changed(run);
	else if (fb_stage_is_whole(run, staging))
		run->staging = dget(staging);
	else
		err = fb_stage_make_again(run);
	dput(staging);
	return err;
}

/* 1: the note is there; 0: it isn't; or an error. */
static int fb_stage_has_note(struct fb_replay *run, const struct qstr *name)
{
	struct dentry *note = fb_find_name(run->fsb, run->staging, name);
	int there;

	if (IS_ERR(note))
		return PTR_ERR(note);
	there = d_is_symlink(note);
	dput(note);
	return there;
}

/**
 * fb_stage_is_made() - whether all objects are made
 * @run: the replay, its staging folder open
 *
 * Return: 1: they are; 0: they aren't; or an error.
 */
int fb_stage_is_made(struct fb_replay *run)
{
	return FB_BREAK_NOTE ? 0 : fb_stage_has_note(run, &fb_made_name);
}

/**
 * fb_stage_set_made() - note that all objects are made
 * @run: the replay; a lower sync has returned. On storage before each later change below
 *
 * Return: 0 or an error.
 */
int fb_stage_set_made(struct fb_replay *run)
{
	return FB_BREAK_NOTE ? 0 : fb_stage_put_note(run, &fb_made_name, "made");
}

/**
 * fb_stage_is_done() - whether storage has all that the log had
 * @run: the replay, its staging folder open
 *
 * Return: 1: it has; 0: it hasn't; or an error.
 */
int fb_stage_is_done(struct fb_replay *run)
{
	return fb_stage_has_note(run, &fb_done_name);
}

/**
 * fb_stage_set_done() - note that storage has all that the log had
 * @run: the replay. On storage after fb_commit_lower_fs(), with all that was changed before
 *
 * Return: 0 or an error.
 */
int fb_stage_set_done(struct fb_replay *run)
{
	return fb_stage_put_note(run, &fb_done_name, "done");
}

/**
 * fb_stage_remove() - remove a staging folder that is left
 * @run: the replay, its @life set; that life of the log is over
 *
 * Return: 1: it is removed; 0: there was none; or an error.
 */
int fb_stage_remove(struct fb_replay *run)
{
	struct dentry *staging = fb_stage_look(run);
	bool there;
	int err = 0;

	if (IS_ERR(staging))
		return PTR_ERR(staging);
	there = d_really_is_positive(staging);
	if (there && !fb_stage_is_ours(run->fsb, d_inode(staging)))
		err = -EPERM;
	else if (there)
		err = fb_stage_is_whole(run, staging) ? fb_stage_clear(run, staging) :
							fb_stage_remove_empty(run);
	dput(staging);
	return err ?: there;
}

/**
 * fb_stage_set_aside() - keep what an unfinished replay has moved to staging
 * @run: the replay, its @life set, which is given up
 *
 * An administrator finds the folder under a name that other users can't have taken before.
 *
 * Return: 0, also if there is none; or an error.
 */
int fb_stage_set_aside(struct fb_replay *run)
{
	struct dentry *root = run->fsb->lower.dentry, *staging = fb_stage_look(run);
	char old_buf[FB_STAGE_NAME], buf[FB_STAGE_NAME];
	struct qstr old = fb_stage_name(run, old_buf);
	unsigned int len = scnprintf(buf, sizeof(buf), "forebay-replay.%016llx", get_random_u64());
	struct qstr name = QSTR_INIT(buf, len);
	int err;

	if (IS_ERR(staging))
		return PTR_ERR(staging);
	if (d_really_is_negative(staging)) {
		dput(staging);
		return 0;
	}
	dput(staging);
	err = fb_move_name(run->fsb, root, &old, root, &name, FB_NEW_CTIME);
	if (!err)
		pr_warn("%s: %s/%s has objects that a replay of the name log has left: look for what you miss there, then remove it\n",
			run->fsb->cache_name, run->fc->source, buf);
	return err;
}
