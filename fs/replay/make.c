// SPDX-License-Identifier: GPL-2.0-only
/*
 * Objects that storage lacks are made again in the staging folder, and found there until all are made.
 *
 * A directory is found by its birth, and leaves when it is bound. So a symbolic link beside it says its new
 * handle, and the caller commits the lower journal before the first directory leaves.
 *
 * A file that gets one name, in a directory that was made before it, is made in that directory under that
 * name: no other task can look there, and nothing else has the name. It leaves staging with the directory.
 * Any other file is found by its birth, and keeps its entry until the log is empty: its names are further
 * links. ("File" is anything but a directory; see fb_is_at_home().)
 *
 * What a name of these stands for is the same after each restart: it is the mapping from birth to object, and
 * it is never replaced. When all are made and on storage, "made" says so.
 */
#include <linux/hex.h>

#include "../lower/lower.h"
#include "../writeback/restore.h"
#include "change.h"
#include "find.h"
#include "make.h"
#include "stage.h"

#define FB_MADE_MODE	0600	/* attr.c gives objects their own at the end */

#ifdef FB_BREAK_BIRTH		/* a fault on purpose: handles that storage has lost are decoded */
#define FB_DECODE_LOST	1
#else
#define FB_DECODE_LOST	0
#endif

/* What has a lost file's handle now, with the fault; without it nothing. */
static struct dentry *fb_find_lost(struct fb_replay *run, const struct nl_node *node)
{
	struct nl_identity id = node->id;

	id.btime = 0;
	return FB_DECODE_LOST ? fb_find_identity(run->fsb, &id, true) : ERR_PTR(-ESTALE);
}

/* What a pages' record says of the lost file goes into the new one. */
static int fb_fill(struct fb_replay *run, const struct nl_identity *lost, struct dentry *object)
{
	struct path path = { .mnt = run->fsb->lower.mnt, .dentry = object };
	struct ps_handle handle = fb_handle_of(lost);
	struct fb_restored restored;
	int err;

	if (fb_replay_stops())
		return -ECANCELED;
	err = fb_restore_content(run->fsb, &handle, &path, &restored);
	run->pages += restored.copied;
	run->lost_pages += restored.lost;
	return err;
}

/* An entry of an object in the staging folder; negative if it isn't there. */
static struct dentry *fb_find_entry(struct fb_replay *run, u64 birth, const char *suffix)
{
	char buf[FB_STAGE_NAME];
	struct qstr name = fb_birth_name(buf, birth, suffix);

	return fb_find_name(run->fsb, run->staging, &name);
}

/* Notes where a made directory is to be found when it has left staging. */
static int fb_note_dir(struct fb_replay *run, u64 birth, struct dentry *object)
{
	struct dentry *note = fb_find_entry(run, birth, ".at");
	char text[2 * PS_HANDLE_MAX + 8], buf[FB_STAGE_NAME];
	struct qstr at = fb_birth_name(buf, birth, ".at");
	struct ps_handle handle;
	int err;

	if (IS_ERR(note))
		return PTR_ERR(note);
	err = d_really_is_positive(note) ? 0 : fb_encode_handle(d_inode(object), &handle);
	if (!err && d_really_is_negative(note)) {
		dput(note);
		scnprintf(text, sizeof(text), "%02x:%*phN", handle.type, handle.len, handle.bytes);
		note = fb_make_name(run->fsb, run->staging, &at, S_IFLNK, 0, text);
		if (IS_ERR(note))
			return PTR_ERR(note);
	}
	dput(note);
	return err;
}

/* What fb_note_dir() has written. */
static int fb_parse_note(const char *text, struct nl_identity *id)
{
	size_t hex = strlen(text);

	if (hex < 5 || text[2] != ':' || hex2bin(&id->type, text, 1))
		return -EUCLEAN;
	hex -= 3;
	if (hex & 1 || hex / 2 > NL_HANDLE_MAX || hex2bin(id->handle, text + 3, hex / 2))
		return -EUCLEAN;
	id->len = hex / 2;
	return 0;
}

/* The handle of a made directory that has left staging. -ESTALE: there is no such directory. */
static int fb_read_note(struct fb_replay *run, u64 birth, struct nl_identity *id)
{
	struct dentry *note = fb_find_entry(run, birth, ".at");
	DEFINE_DELAYED_CALL(done);
	const char *text;
	int err = -ESTALE;

	*id = (struct nl_identity){ };
	if (IS_ERR(note))
		return PTR_ERR(note);
	if (d_is_symlink(note)) {
		text = vfs_get_link(note, &done);
		err = IS_ERR(text) ? PTR_ERR(text) : fb_parse_note(text, id);
		do_delayed_call(&done);
	}
	dput(note);
	return err;
}

static bool fb_can_make(const struct nl_change *change)
{
	umode_t mode = change->attr.mode;

	if (!(change->attr.mask & NL_ATTR_MODE))
		return false;
	if (S_ISLNK(mode))
		return change->has & BIT(NL_F_TARGET);
	return S_ISREG(mode) || S_ISDIR(mode) || S_ISCHR(mode) || S_ISBLK(mode) || S_ISFIFO(mode) ||
	       S_ISSOCK(mode);
}

/* Where a file is made. */
struct fb_home {
	struct dentry *dir;
	struct qstr name;
	char buf[NAME_MAX + 1];
};

static_assert(sizeof_field(struct fb_home, buf) >= FB_STAGE_NAME);

/* @home->dir is for dput(). */
static int fb_find_home(struct fb_replay *run, const struct nl_node *node, struct fb_home *home)
{
	const struct nl_node *dir;
	struct nl_text name;
	int got;

	if (!fb_is_at_home(run, node)) {
		home->dir = dget(run->staging);
		home->name = fb_birth_name(home->buf, node->born, "");
		return 0;
	}
	got = nl_bind_only_name(&run->bind, node, &dir, &name);
	if (got <= 0)
		return got ?: -EUCLEAN;
	if (name.len > NAME_MAX)
		return -ENAMETOOLONG;
	memcpy(home->buf, name.bytes, name.len);
	home->name = (struct qstr)QSTR_INIT(home->buf, name.len);
	home->dir = fb_find_dir(run, dir);
	return PTR_ERR_OR_ZERO(home->dir);
}

/* The object itself, with modes that let no other task look. */
static struct dentry *fb_make_object(struct fb_replay *run, const struct nl_record *record,
				     struct dentry *dir, const struct qstr *name)
{
	const struct nl_change *change = &record->change;
	umode_t type = change->attr.mode & S_IFMT;
	struct dentry *object;
	char *target = NULL;

	if (!fb_can_make(change))
		return ERR_PTR(-EUCLEAN);
	if (type == S_IFLNK) {
		target = kmemdup_nul(change->target.bytes, change->target.len, GFP_KERNEL);
		if (!target)
			return ERR_PTR(-ENOMEM);
	}
	object = fb_make_name(run->fsb, dir, name,
			      type | (type == S_IFDIR ? 0700 : FB_MADE_MODE),
			      new_decode_dev(change->attr.rdev), target);
	kfree(target);
	if (!IS_ERR(object))
		run->made++;
	return object;
}

/* The directory of a creation, made if it isn't there. NULL: it has left already. */
static struct dentry *fb_make_dir(struct fb_replay *run, const struct nl_record *record)
{
	struct dentry *object = fb_find_entry(run, record->start, "");
	char buf[FB_STAGE_NAME];
	struct qstr name = fb_birth_name(buf, record->start, "");
	struct nl_identity id;
	int err;

	if (IS_ERR(object) || d_really_is_positive(object))
		return object;
	dput(object);
	err = fb_read_note(run, record->start, &id);
	if (err != -ESTALE)
		return ERR_PTR(err);	/* NULL if there is a note */
	return fb_make_object(run, record, run->staging, &name);
}

/*
 * The file of a creation; negative if it isn't there. An entry in staging comes first: an older Forebay made
 * all files there, and may have begun this replay.
 */
static struct dentry *fb_look_for_file(struct fb_replay *run, const struct nl_node *node,
				       const struct fb_home *home)
{
	struct dentry *object;

	if (!run->new_staging && home->dir != run->staging) {
		object = fb_find_entry(run, node->born, "");
		if (IS_ERR(object) || d_really_is_positive(object))
			return object;
		dput(object);
	}
	return fb_find_name(run->fsb, home->dir, &home->name);
}

/* The file of a creation, made if it isn't there. */
static struct dentry *fb_make_file(struct fb_replay *run, const struct nl_record *record,
				   const struct nl_node *node)
{
	struct dentry *object = fb_find_lost(run, node);
	struct fb_home home;
	int err;

	if (!IS_ERR(object))
		return object;
	err = fb_find_home(run, node, &home);
	if (err)
		return ERR_PTR(err);
	object = fb_look_for_file(run, node, &home);
	if (!IS_ERR(object) && d_really_is_negative(object)) {
		dput(object);
		object = fb_make_object(run, record, home.dir, &home.name);
	}
	dput(home.dir);
	return object;
}

/**
 * fb_make_again() - make the object of a creation that storage lacks
 * @run: the replay, its staging folder open, and not all objects are made
 * @record: the creation
 * @node: the object
 *
 * Can be made any number of times. A file gets its content as well.
 *
 * Return: a dentry with a reference; NULL: a directory that has left staging already; or an ERR_PTR.
 */
struct dentry *fb_make_again(struct fb_replay *run, const struct nl_record *record,
			     const struct nl_node *node)
{
	const struct nl_change *change = &record->change;
	struct dentry *object = node->is_dir ? fb_make_dir(run, record) : fb_make_file(run, record, node);
	int err = 0;

	if (IS_ERR_OR_NULL(object))
		return object;
	if ((d_inode(object)->i_mode ^ change->attr.mode) & S_IFMT)
		err = -EUCLEAN;
	else if (d_is_dir(object))
		err = fb_note_dir(run, record->start, object);
	else if (d_is_reg(object))
		err = fb_fill(run, &change->object, object);
	if (!err)
		return object;
	dput(object);
	return ERR_PTR(err);
}

/* A dentry of an object, or -ESTALE for a negative one. */
static struct dentry *fb_positive(struct dentry *object)
{
	if (IS_ERR(object) || d_really_is_positive(object))
		return object;
	dput(object);
	return ERR_PTR(-ESTALE);
}

/**
 * fb_find_staged() - find an object that was made again, if staging has it under its birth
 * @run: the replay, its staging folder open
 * @node: the object
 *
 * Return: a dentry with a reference; -ESTALE: it isn't there; or another error.
 */
struct dentry *fb_find_staged(struct fb_replay *run, const struct nl_node *node)
{
	return fb_positive(fb_find_entry(run, node->born, ""));
}

static struct dentry *fb_find_made_dir(struct fb_replay *run, const struct nl_node *node)
{
	struct dentry *object = fb_find_staged(run, node);
	struct nl_identity id;
	int err;

	if (object != ERR_PTR(-ESTALE))
		return object;
	err = fb_read_note(run, node->born, &id);
	return err ? ERR_PTR(err) : fb_find_identity(run->fsb, &id, true);
}

static struct dentry *fb_find_made_file(struct fb_replay *run, const struct nl_node *node)
{
	struct dentry *object;
	struct fb_home home;
	int err = fb_find_home(run, node, &home);

	if (err)
		return ERR_PTR(err);
	object = fb_positive(fb_look_for_file(run, node, &home));
	dput(home.dir);
	return object;
}

/**
 * fb_find_object() - find an object of the log below
 * @run: the replay, its staging folder open, @run->bind started
 * @node: the object
 *
 * The handle of a creation that storage lacks is not decoded. A file at home (run.h) must not be looked for
 * here when all are made: another task may have put its own there.
 *
 * Return: a dentry with a reference; -ESTALE: there is no such object; or another error.
 */
struct dentry *fb_find_object(struct fb_replay *run, const struct nl_node *node)
{
	struct dentry *lost = fb_find_lost(run, node);

	if (!IS_ERR(lost))
		return lost;
	if (nl_node_made(&run->bind, node))
		return node->is_dir ? fb_find_made_dir(run, node) : fb_find_made_file(run, node);
	if (node->born && nl_on_storage(run->nl, node->born) <= 0)
		return ERR_PTR(-ESTALE);
	return fb_find_identity(run->fsb, &node->id, true);
}

/**
 * fb_find_dir() - find a directory of the log below, that names are changed in
 * @run: the replay, as for fb_find_object()
 * @node: the directory
 *
 * Some directories stay found, each in a place that its node says: a directory has one dentry, wherever it
 * moves, and replay removes none.
 *
 * Return: as fb_find_object(); -ENOTDIR: it is no directory.
 */
struct dentry *fb_find_dir(struct fb_replay *run, const struct nl_node *node)
{
	struct fb_found_dir *found = &run->dirs[(node - run->bind.nodes.nodes) % ARRAY_SIZE(run->dirs)];
	struct dentry *dentry;

	if (found->node == node)
		return dget(found->dentry);
	dentry = fb_find_object(run, node);
	if (IS_ERR(dentry))
		return dentry;
	if (!d_is_dir(dentry)) {
		dput(dentry);
		return ERR_PTR(-ENOTDIR);
	}
	dput(found->dentry);
	*found = (struct fb_found_dir){ .node = node, .dentry = dget(dentry) };
	return dentry;
}

/**
 * fb_forget_dirs() - forget the directories that were found
 * @run: the replay
 */
void fb_forget_dirs(struct fb_replay *run)
{
	u32 i;

	for (i = 0; i < ARRAY_SIZE(run->dirs); i++)
		dput(run->dirs[i].dentry);
	memset(run->dirs, 0, sizeof(run->dirs));
}
