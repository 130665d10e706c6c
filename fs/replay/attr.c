// SPDX-License-Identifier: GPL-2.0-only
/*
 * Attributes that replay sets: owner, mode and times, and the mtime of directories whose names replay has
 * changed.
 *
 * They are absolute. So the committed records are read first, in their order, and each object gets what it
 * had after the last of them, in one change. What an object has already isn't set. Extended attributes are
 * set before, in the order of their records: for that these are read again. An ACL changes the mode, and
 * chmod changes the ACL's mask. So the last ACL is set alone, with the permissions of the last mode.
 *
 * The lower file system can be used meanwhile, and replay may end before its last step. So other users must
 * not get to a made file before the directories that lead to it have their permissions, which may be less
 * than those on storage, or those in between. A file at home (run.h) has all its attributes before its
 * directory leaves staging, and is behind that directory until the end. All others get theirs when all names
 * are bound: first what storage has; then made files, which are the mounter's alone until then; then made
 * directories, which are, too.
 *
 * The mtime of a regular file has two sources: records of the name log, and the file record of the page
 * store, which an absorbed sync wrote. A file that is made again gets
 *   - that of its file record, if it is later than the last committed change of attributes; else
 *   - the mtime of that change; without one that of its creation.
 * Whether storage has the attributes of a regular file was decided with all else (core/names/judge.c). Where
 * it has not, the file gets the record's ctime, too. So a still later time in the file record of the page
 * store, which fb_recover_attach() compares with ctime, comes after it.
 *
 * A directory's mtime is the ctime that the log has from after its last change, for its names change both.
 */
#include <linux/fs.h>
#include <linux/posix_acl.h>
#include <linux/vmalloc.h>

#include "../../compat/attr.h"
#include "../names/object.h"
#include "../writeback/restore.h"
#include "attr.h"
#include "change.h"
#include "find.h"
#include "make.h"
#include "tell.h"
#include "xattr.h"

/* What an object has in the end. */
struct fb_final {
	u32 mask;		/* NL_ATTR_*: what is known */
	u32 mode, uid, gid, iflags;
	s64 atime, mtime;
	s64 ctime;		/* of a file after the last change of attributes; 0: there is none */
	u64 acl;		/* the place of the last record of its ACL; 0: there is none */
	bool xattrs;		/* it has other extended ones */
};

#define FB_HAS(change, field)	((change)->has & BIT(NL_F_##field))

/* Whose extended attributes are set while the records are read. */
enum fb_whose { FB_OF_NONE, FB_OF_FILES_AT_HOME, FB_OF_OTHERS };

static struct fb_final *fb_final_of_node(struct fb_replay *run, const struct nl_node *node)
{
	return &run->finals[node - run->bind.nodes.nodes];
}

static struct fb_final *fb_final_of(struct fb_replay *run, const struct nl_identity *id)
{
	struct nl_node *node = nl_node_get(&run->bind.nodes, id);

	return node ? fb_final_of_node(run, node) : NULL;
}

/* A record has changed names of a directory. */
static int fb_final_dir(struct fb_replay *run, const struct nl_dir *dir)
{
	struct fb_final *final = fb_final_of(run, &dir->id);

	if (!final)
		return -ENOSPC;
	final->mask |= NL_ATTR_MTIME;
	final->mtime = dir->count.ctime;
	return 0;
}

static int fb_final_attr(struct fb_replay *run, const struct nl_change *change)
{
	struct fb_final *final = fb_final_of(run, &change->object);
	const struct nl_attr *attr = &change->attr;

	if (!final)
		return -ENOSPC;
	final->mask |= attr->mask;
	if (attr->mask & NL_ATTR_MODE)
		final->mode = attr->mode;
	if (attr->mask & NL_ATTR_UID)
		final->uid = attr->uid;
	if (attr->mask & NL_ATTR_GID)
		final->gid = attr->gid;
	if (attr->mask & NL_ATTR_ATIME)
		final->atime = attr->atime;
	if (attr->mask & NL_ATTR_MTIME)
		final->mtime = attr->mtime;
	if (attr->mask & NL_ATTR_IFLAGS)
		final->iflags = attr->iflags;
	if (change->kind != NL_CREATE && FB_HAS(change, SELF))
		final->ctime = change->self.ctime;
	return 0;
}

/* Notes an extended attribute; or sets it, if it is no ACL of permissions, and one of @whose. */
static int fb_final_xattr(struct fb_replay *run, const struct nl_change *change, enum fb_whose whose)
{
	struct nl_node *node = nl_node_get(&run->bind.nodes, &change->object);

	if (!node)
		return -ENOSPC;
	if (fb_is_access_acl(&change->xattr)) {
		fb_final_of_node(run, node)->acl = run->scratch.start;
		return 0;
	}
	fb_final_of_node(run, node)->xattrs = true;
	if (whose != (fb_is_at_home(run, node) ? FB_OF_FILES_AT_HOME : FB_OF_OTHERS))
		return 0;
	return fb_replay_xattr(run, node, change);
}

/* Notes what a committed record that storage lacks says of attributes. */
static int fb_final_note(struct fb_replay *run, const struct nl_change *change, enum fb_whose whose)
{
	int err = 0;

	switch (change->kind) {
	case NL_SETATTR:
	case NL_IFLAGS:
		return fb_final_attr(run, change);
	case NL_XATTR_SET:
	case NL_XATTR_REMOVE:
		return fb_final_xattr(run, change, whose) ?: fb_final_attr(run, change);
	case NL_OPAQUE:
		return 0;
	case NL_CREATE:
	case NL_TMPFILE:
		err = fb_final_attr(run, change);
		break;
	default:
		break;
	}
	if (!err && FB_HAS(change, DIR))
		err = fb_final_dir(run, &change->dir);
	if (!err && FB_HAS(change, DIR2))
		err = fb_final_dir(run, &change->dir2);
	return err;
}

/* Whether an earlier record of an object is made again. */
static bool fb_final_is_known(struct fb_replay *run, const struct nl_identity *id)
{
	const struct nl_node *node = nl_node_find(&run->bind.nodes, id);

	return node && fb_final_of_node(run, node)->mask;
}

/*
 * Notes what a record that storage has says of attributes, if one is made again that came before it: within
 * one tick of the clock it isn't always known that storage has the earlier one (core/names/judge.c).
 */
static int fb_final_note_again(struct fb_replay *run, const struct nl_change *change, enum fb_whose whose)
{
	bool creates = change->kind == NL_CREATE || change->kind == NL_TMPFILE;
	int err = 0;

	if (FB_HAS(change, ATTR) && !creates) {
		if (fb_final_is_known(run, &change->object))
			err = fb_final_note(run, change, whose);
		return err;
	}
	if (FB_HAS(change, DIR) && fb_final_is_known(run, &change->dir.id))
		err = fb_final_dir(run, &change->dir);
	if (!err && FB_HAS(change, DIR2) && fb_final_is_known(run, &change->dir2.id))
		err = fb_final_dir(run, &change->dir2);
	return err;
}

/* Reads all records. What was noted before is forgotten. */
static int fb_final_read(struct fb_replay *run, enum fb_whose whose)
{
	const struct nl_change *change = &run->scratch.change;
	struct nl_cursor cursor;
	int got = 0, err = 0;

	memset(run->finals, 0, array_size(run->bind.nodes.max, sizeof(*run->finals)));
	run->changes = 0;
	nl_cursor_start(&cursor, run->nl);
	while (!err && (got = nl_cursor_next(&cursor, &run->scratch)) > 0) {
		if (nl_on_storage(run->nl, run->scratch.start) > 0) {
			err = fb_final_note_again(run, change, whose);
		} else if (cursor.committed) {
			err = fb_final_note(run, change, whose);
			run->changes++;
		}
		cond_resched();
	}
	return err ?: min(got, 0);
}

/* The mtime of a made file may be in its file record. */
static void fb_final_time(struct fb_replay *run, const struct nl_node *node, struct fb_final *final)
{
	struct ps_handle handle = fb_handle_of(&node->id);
	s64 time;

	if (!nl_node_made(&run->bind, node))
		return;
	time = fb_restore_time(run->fsb, &handle);
	if (!time || time <= final->ctime)
		return;
	final->mask |= NL_ATTR_MTIME;
	final->mtime = time;
}

/* chmod changes an ACL's mask in a transaction of its own. So storage may have the mode and lack the mask. */
static bool fb_mode_may_be_half(struct inode *inode)
{
	struct posix_acl *acl = IS_POSIXACL(inode) ? get_inode_acl(inode, ACL_TYPE_ACCESS) : NULL;

	if (IS_ERR_OR_NULL(acl))
		return acl;
	posix_acl_release(acl);
	return true;
}

/* Fills in @attr: the attributes that differ from the inode's. */
static void fb_final_differs(const struct fb_final *final, struct inode *inode, struct iattr *attr)
{
	struct timespec64 atime = inode_get_atime(inode), mtime = inode_get_mtime(inode);
	kuid_t uid = make_kuid(&init_user_ns, final->uid);
	kgid_t gid = make_kgid(&init_user_ns, final->gid);

	*attr = (struct iattr){ };
	if (final->mask & NL_ATTR_MODE && !S_ISLNK(inode->i_mode) &&
	    ((final->mode ^ inode->i_mode) & S_IALLUGO || fb_mode_may_be_half(inode))) {
		attr->ia_valid |= ATTR_MODE;
		attr->ia_mode = (inode->i_mode & S_IFMT) | (final->mode & S_IALLUGO);
	}
	if (final->mask & NL_ATTR_UID && !uid_eq(uid, inode->i_uid)) {
		attr->ia_valid |= ATTR_UID;
		attr->ia_vfsuid = VFSUIDT_INIT(uid);
	}
	if (final->mask & NL_ATTR_GID && !gid_eq(gid, inode->i_gid)) {
		attr->ia_valid |= ATTR_GID;
		attr->ia_vfsgid = VFSGIDT_INIT(gid);
	}
	if (final->mask & NL_ATTR_ATIME && final->atime != timespec64_to_ns(&atime)) {
		attr->ia_valid |= ATTR_ATIME | ATTR_ATIME_SET;
		attr->ia_atime = ns_to_timespec64(final->atime);
	}
	if (final->mask & NL_ATTR_MTIME && final->mtime != timespec64_to_ns(&mtime)) {
		attr->ia_valid |= ATTR_MTIME | ATTR_MTIME_SET;
		attr->ia_mtime = ns_to_timespec64(final->mtime);
	}
}

static bool fb_ctime_differs(const struct inode *inode, const struct timespec64 *ctime)
{
	struct timespec64 now = inode_get_ctime(inode);

	return ctime && !timespec64_equal(ctime, &now);
}

/*
 * The change of owner takes set-ID bits away, in some file systems also if the mode comes with it. So the
 * mode is set again.
 */
static int fb_final_set(struct fb_replay *run, struct dentry *object, struct fb_final *final,
			const struct timespec64 *ctime)
{
	struct iattr attr;
	int err, tries;

	for (tries = 0; tries < 2; tries++) {
		fb_final_differs(final, d_inode(object), &attr);
		if (!attr.ia_valid && !fb_ctime_differs(d_inode(object), ctime))
			break;
		err = fb_change_attr(run->fsb, object, &attr, ctime);
		if (err)
			return err;
		final->mask &= NL_ATTR_MODE;
		run->attrs += !tries;
	}
	return 0;
}

/* A file that storage has gets what the log says: storage has no later change. */
static int fb_final_set_stored(struct fb_replay *run, struct dentry *object, struct fb_final *final)
{
	struct timespec64 ctime = inode_get_ctime(d_inode(object));

	if (final->ctime)
		ctime = ns_to_timespec64(final->ctime);
	return fb_final_set(run, object, final, &ctime);
}

/* Sets all attributes of an object. */
static int fb_final_set_all(struct fb_replay *run, const struct nl_node *node, struct dentry *object)
{
	struct fb_final *final = fb_final_of_node(run, node);
	const u32 *mode = final->mask & NL_ATTR_MODE ? &final->mode : NULL;
	int err = 0;

	if (final->mask & NL_ATTR_IFLAGS)
		err = fb_change_flags(run->fsb, object, final->iflags);
	if (!err && final->acl)
		err = fb_replay_access_acl(run, object, final->acl, mode);
	if (!err) {
		fb_final_time(run, node, final);
		if (d_is_dir(object) || nl_node_made(&run->bind, node))
			err = fb_final_set(run, object, final, NULL);
		else
			err = fb_final_set_stored(run, object, final);
	}
	return err ? fb_replay_failed_attr(run, node, final->uid, err) : 0;
}

/*
 * An object that is gone needs nothing. Neither does one that is immutable: that can't be logged, so
 * storage has a later state than the record.
 */
static int fb_final_apply(struct fb_replay *run, const struct nl_node *node)
{
	const struct fb_final *final = fb_final_of_node(run, node);
	struct dentry *object;
	int err;

	if ((!final->mask && !final->acl) ||
	    (node->born && nl_on_storage(run->nl, node->born) <= 0 && !nl_node_made(&run->bind, node)))
		return 0;
	object = fb_find_object(run, node);
	if (object == ERR_PTR(-ESTALE))
		return 0;
	if (IS_ERR(object))
		return fb_replay_failed_attr(run, node, final->uid, PTR_ERR(object));
	err = 0;
	if (!IS_IMMUTABLE(d_inode(object)) && !IS_APPEND(d_inode(object)))
		err = fb_final_set_all(run, node, object);
	dput(object);
	return err;
}

/* Sets extended attributes in the order of their records, where there are any. */
static int fb_final_set_xattrs(struct fb_replay *run, enum fb_whose whose)
{
	bool any = false;
	int err;
	u32 i;

	for (i = 0; i < run->bind.nodes.nr && !any; i++)
		any = run->finals[i].xattrs &&
		      fb_is_at_home(run, &run->bind.nodes.nodes[i]) == (whose == FB_OF_FILES_AT_HOME);
	err = any ? fb_final_read(run, whose) : 0;
	return err ? fb_replay_failed(run, "set attributes", NULL, err) : 0;
}

/* The order in which objects get their attributes. Files at home have them already. */
static u32 fb_final_rank(const struct fb_replay *run, const struct nl_node *node)
{
	if (!nl_node_made(&run->bind, node))
		return 0;
	if (fb_is_at_home(run, node))
		return U32_MAX;
	return node->is_dir ? 2 : 1;
}

/**
 * fb_replay_read_attributes() - read what the committed records say of attributes
 * @run: the replay, @run->bind started; its @finals are allocated
 *
 * Return: 0; or an error, after a message.
 */
int fb_replay_read_attributes(struct fb_replay *run)
{
	int err;

	run->finals = vcalloc(run->bind.nodes.max, sizeof(*run->finals));
	if (!run->finals)
		return fb_replay_failed(run, "allocate memory to set attributes", NULL, -ENOMEM);
	err = fb_final_read(run, FB_OF_NONE);
	return err ? fb_replay_failed(run, "find out what to do", NULL, err) : 0;
}

/**
 * fb_replay_home_attributes() - set attributes of a file at home
 * @run: the replay, its attributes read; the file records of made files are still there
 * @node: the file
 * @object: the same, in staging
 *
 * A file with extended attributes is left to fb_replay_home_xattrs(). Both can be made any number of times.
 *
 * Return: 0; or an error, after a message.
 */
int fb_replay_home_attributes(struct fb_replay *run, const struct nl_node *node, struct dentry *object)
{
	return fb_final_of_node(run, node)->xattrs ? 0 : fb_final_set_all(run, node, object);
}

/**
 * fb_replay_home_xattrs() - set attributes of the files at home that have extended ones
 * @run: the replay; all objects are made, no name has changed, and the file records of made files are there
 *
 * Return: 0; -EOPNOTSUPP: a record has what can't be set; or another error. After a message.
 */
int fb_replay_home_xattrs(struct fb_replay *run)
{
	int err = fb_final_set_xattrs(run, FB_OF_FILES_AT_HOME);
	const struct nl_node *node;
	u32 i;

	for (i = 0; i < run->bind.nodes.nr && !err; i++) {
		node = &run->bind.nodes.nodes[i];
		if (run->finals[i].xattrs && fb_is_at_home(run, node))
			err = fb_final_apply(run, node);
		cond_resched();
	}
	return err;
}

/**
 * fb_replay_attributes() - set attributes of all objects but files at home
 * @run: the replay; all names are bound, and the file records of made files are still there
 *
 * Can be made any number of times, until those file records are freed.
 *
 * Return: as fb_replay_home_xattrs().
 */
int fb_replay_attributes(struct fb_replay *run)
{
	int err = fb_final_set_xattrs(run, FB_OF_OTHERS);
	const struct nl_node *node;
	u32 rank, i;

	for (rank = 0; rank <= 2; rank++) {
		for (i = 0; i < run->bind.nodes.nr && !err; i++) {
			node = &run->bind.nodes.nodes[i];
			if (fb_final_rank(run, node) == rank)
				err = fb_final_apply(run, node);
			cond_resched();
		}
	}
	return err;
}
