// SPDX-License-Identifier: GPL-2.0-only
/*
 * Recovery of the name log at mount: what the log has and storage lacks is done again.
 *
 * Nothing else uses the mount yet: there is no root inode. Power may fail at any point, any number of
 * times. The steps, and why each can begin again:
 *
 *   1. The lower journal is committed. What is seen below from now on is on storage.
 *   2. Decisions are made by looking, and become durable with one store (core/names/decide.c). Before it
 *      nothing was changed below, so a restart decides the same. After it only the decisions count, for
 *      replay changes what they came from.
 *   3. The staging folder is made, and named after this log (stage.c). A restart uses it.
 *   4. File records of creations that storage lacks, and that aren't made again, are freed: what is made
 *      next may get their handles. Step 5 never needs them. A restart finds them freed, or frees them.
 *   5. MAKE: objects are made in staging (make.c), files with their content, and those that are made in their
 *      directories with all that they had (attr.c). What is there is used again, and its content is copied
 *      again from its file record. The lower journal keeps the order: an entry is there with all of what was
 *      made before it.
 *   6. A full lower sync: what files have is on storage. Then "made" is made in staging, and the lower
 *      journal committed, with the notes that lead to directories. From now on a restart skips steps 5 and 6:
 *      a file may leave staging with its directory, and other users may put another one in its place.
 *   7. STAGE, ADD, REMOVE (bind.c). The steps are derived from log and decisions alone, so they are the
 *      same after a restart. All objects that they need have a name: made ones in staging, others where
 *      they were, in staging, or where they are bound.
 *   8. Attributes of all other objects (attr.c), absolute: first of what storage has, last of directories
 *      that were made. Until then what was made is the mounter's alone.
 *   9. "done" is made in staging.
 *  10. The lower journal is committed, which keeps the order: "done" is on storage with all of steps 7 and 8.
 *      From now on a restart skips steps 4 to 9: without its file record a made file would get neither
 *      content nor time again.
 *  11. File records of made files are freed.
 *  12. One store empties the log (nl_empty()).
 *  13. The staging folder is removed. Power may fail in between: a mount with an empty log looks for the
 *      folder of the log's last life, and empties the log once more only after that folder is gone, durably.
 *      What fails here is told and ends nothing.
 *
 * fb_names_start() commits the lower journal before the log's next life begins, also behind an empty log.
 * The records of that life take their counters from memory, so the next crash must not lose what was changed
 * here.
 *
 * An error ends the mount, and log, decisions and file records stay as they are.
 */
#include <linux/cred.h>
#include <linux/log2.h>
#include <linux/sched/signal.h>
#include <linux/vmalloc.h>

#include "../lower/lower.h"
#include "../names/names.h"
#include "../writeback/restore.h"
#include "attr.h"
#include "bind.h"
#include "change.h"
#include "decide.h"
#include "discard.h"
#include "find.h"
#include "make.h"
#include "replay.h"
#include "stage.h"
#include "tell.h"

/* Whether the file of a file record is made by replay: then only the log leads to it. */
enum fb_records_of { FB_NOT_MADE, FB_MADE };

/* 1: there are records, or damage; 0: there are none. */
static bool fb_log_has_any(struct nl *nl, struct nl_record *scratch)
{
	struct nl_cursor cursor;

	nl_cursor_start(&cursor, nl);
	return nl_cursor_next(&cursor, scratch) != 0;
}

/**
 * fb_replay_has_records() - whether a name log holds anything
 * @fsb: the mount, its log open or NULL
 *
 * Return: true if it has records, or is damaged, or there is no memory to look.
 */
bool fb_replay_has_records(struct fb_sb *fsb)
{
	struct nl_record *scratch;
	bool any = true;

	if (!fsb->names)
		return false;
	scratch = kvmalloc(sizeof(*scratch), GFP_KERNEL);
	if (scratch)
		any = fb_log_has_any(&fsb->names->nl, scratch);
	kvfree(scratch);
	return any;
}

static int fb_commit(struct fb_replay *run)
{
	return fb_replay_stops() ? -ECANCELED : fb_commit_lower_fs(run->fsb);
}

/* Step 1. With lazytime there may be access times in memory alone; see fb_may_be_read(). */
static int fb_commit_and_write_times(struct fb_replay *run)
{
	if (!(run->fsb->lower.mnt->mnt_sb->s_flags & SB_LAZYTIME))
		return fb_commit(run);
	return fb_replay_stops() ? -ECANCELED : fb_sync_lower_fs(run->fsb);
}

/* The log's damage, or another error of core/names. */
static int fb_log_failed(struct fb_replay *run, int err)
{
	if (err == -EUCLEAN)
		return fb_log_damaged_somewhere(run);
	return fb_replay_failed(run, "find out what to do", NULL, err);
}

/* Tables for @run->sizes. The log bounds them: less than 600 bytes for each record. */
static int fb_tables_alloc(struct fb_replay *run)
{
	struct nl_bind *bind = &run->bind;

	if (run->sizes.nodes >= BIT(30) || run->sizes.names >= BIT(30))
		return -ENOMEM;
	bind->nodes.max = max(run->sizes.nodes, 1u);
	bind->nodes.nr_slots = roundup_pow_of_two(2 * bind->nodes.max);
	bind->nr_names = roundup_pow_of_two(2 * run->sizes.names + 2);
	bind->nodes.nodes = vcalloc(bind->nodes.max, sizeof(*bind->nodes.nodes));
	bind->nodes.slots = vcalloc(bind->nodes.nr_slots, sizeof(*bind->nodes.slots));
	bind->names = vcalloc(bind->nr_names, sizeof(*bind->names));
	return bind->nodes.nodes && bind->nodes.slots && bind->names ? 0 : -ENOMEM;
}

/* Judging has used the nodes. */
static void fb_tables_clear(struct fb_replay *run)
{
	struct nl_nodes *nodes = &run->bind.nodes;

	nodes->nr = 0;
	memset(nodes->slots, 0, array_size(nodes->nr_slots, sizeof(*nodes->slots)));
}

static void fb_replay_free(struct fb_replay *run)
{
	fb_forget_dirs(run);
	vfree(run->bind.nodes.nodes);
	vfree(run->bind.nodes.slots);
	vfree(run->bind.names);
	vfree(run->finals);
	dput(run->staging);
	kvfree(run);
}

/* Steps 1 and 2, and the tables for the rest. */
static int fb_replay_prepare(struct fb_replay *run)
{
	int err = nl_replay_sizes(run->nl, &run->scratch, &run->sizes);

	if (err)
		return fb_log_failed(run, err);
	run->fsb->names->replayed = run->sizes.records;
	pr_info("%s: the name log has %llu records\n", run->fsb->cache_name, run->sizes.records);
	err = fb_tables_alloc(run);
	if (err)
		return fb_replay_failed(run, "allocate memory to look", NULL, err);
	if (!run->nl->decided) {
		err = fb_commit_and_write_times(run);
		if (err)
			return fb_replay_failed(run, "commit the journal", NULL, err);
		err = fb_decide(run);
		if (err == -ENOMEM)
			return fb_replay_failed(run, "allocate memory to look", NULL, err);
		if (err)
			return err;
		fb_tables_clear(run);
	}
	run->bind.nl = run->nl;
	run->bind.record = &run->record;
	run->bind.other = &run->other;
	err = nl_bind_start(&run->bind);
	return err ? fb_log_failed(run, err) : 0;
}

/* Steps 4 and 11: file records of creations that storage lacks. Durable on return. */
static void fb_free_records(struct fb_replay *run, enum fb_records_of which)
{
	const struct nl_node *node;
	struct ps_handle handle;
	u32 i;

	for (i = 0; i < run->bind.nodes.nr; i++) {
		node = &run->bind.nodes.nodes[i];
		if (!node->born || nl_on_storage(run->nl, node->born) ||
		    nl_node_made(&run->bind, node) != (which == FB_MADE))
			continue;
		if (fb_replay_stops())
			return;
		handle = fb_handle_of(&node->id);
		fb_restore_free(run->fsb, &handle);
		cond_resched();
	}
}

/* Step 5, for one object. */
static int fb_replay_make(struct fb_replay *run, const struct nl_binding *binding)
{
	const struct nl_change *change = &binding->record->change;
	struct dentry *object = fb_make_again(run, binding->record, binding->object);
	int err = PTR_ERR_OR_ZERO(object);

	if (err)
		return fb_replay_failed(run, "make a file or directory again",
					change->has & BIT(NL_F_NAME) ? &change->name : NULL, err);
	if (object && fb_is_at_home(run, binding->object))
		err = fb_replay_home_attributes(run, binding->object, object);
	dput(object);
	return err;
}

/* Step 6. */
static int fb_replay_all_made(struct fb_replay *run)
{
	struct super_block *lower = run->fsb->lower.mnt->mnt_sb;
	int err = fb_replay_home_xattrs(run);

	if (err)
		return err;
	err = fb_replay_stops() ? -ECANCELED : fb_sync_lower_fs(run->fsb);
	err = err ?: errseq_check_and_advance(&lower->s_wb_err, &run->write_errors);
	if (err)
		return fb_replay_failed(run, "sync the file system", NULL, err);
	err = fb_stage_set_made(run) ?: fb_commit(run);
	return err ? fb_replay_failed(run, "note that all files are made", NULL, err) : 0;
}

static int fb_replay_step(struct fb_replay *run, const struct nl_binding *binding)
{
	int err;

	switch (binding->op) {
	case NL_BIND_MAKE:
		return fb_replay_make(run, binding);
	case NL_BIND_STAGE:
		err = fb_bind_stage(run, binding->object);
		return err ? fb_replay_failed(run, "move a directory to staging", NULL, err) : 0;
	case NL_BIND_ADD:
		err = fb_bind_add(run, binding);
		return err ? fb_replay_failed(run, "bind", &binding->name, err) : 0;
	default:
		err = fb_bind_remove(run, binding);
		return err ? fb_replay_failed(run, "remove", &binding->name, err) : 0;
	}
}

/* Steps 5 to 7. */
static int fb_replay_steps(struct fb_replay *run)
{
	int made = fb_stage_is_made(run), got, err;
	struct nl_binding binding;
	bool making = false;

	if (made < 0)
		return fb_replay_failed(run, "look into replay's folder", NULL, made);
	while ((got = nl_bind_next(&run->bind, &binding)) > 0) {
		if (made && binding.op == NL_BIND_MAKE)
			continue;
		if (making && binding.op != NL_BIND_MAKE) {
			err = fb_replay_all_made(run);
			if (err)
				return err;
		}
		making = binding.op == NL_BIND_MAKE;
		err = fatal_signal_pending(current) ? fb_replay_failed(run, "go on", NULL, -EINTR) :
		      fb_replay_step(run, &binding);
		if (err)
			return err;
		fb_tell_progress(run);
		cond_resched();
	}
	return got ? fb_log_failed(run, got) : 0;
}

/* Steps 4 to 10. */
static int fb_replay_all(struct fb_replay *run)
{
	int err = fb_replay_read_attributes(run);

	if (err)
		return err;
	run->write_errors = errseq_sample(&run->fsb->lower.mnt->mnt_sb->s_wb_err);
	fb_free_records(run, FB_NOT_MADE);
	err = fb_replay_steps(run) ?: fb_replay_attributes(run);
	if (err)
		return err;
	err = fb_stage_set_done(run) ?: fb_commit(run);
	return err ? fb_replay_failed(run, "note the end of replay", NULL, err) : 0;
}

/* Step 10 again: the last mount may have ended without a commit, and without a power cut. */
static int fb_replay_was_done(struct fb_replay *run)
{
	int err = fb_commit(run);

	return err ? fb_replay_failed(run, "commit the journal", NULL, err) : 0;
}

/* Steps 1 to 12. */
static int fb_replay_log(struct fb_replay *run)
{
	int err = fb_replay_prepare(run), done;

	if (err)
		return err;
	err = fb_stage_open(run);
	if (err == -EEXIST)
		return err;
	if (err)
		return fb_replay_failed(run, "make replay's folder", NULL, err);
	done = fb_stage_is_done(run);
	if (done < 0)
		return fb_replay_failed(run, "look into replay's folder", NULL, done);
	err = done ? fb_replay_was_done(run) : fb_replay_all(run);
	if (err)
		return err;
	fb_free_records(run, FB_MADE);
	err = fb_empty_log(run);
	if (!err)
		pr_info("%s: replayed %llu name changes of %llu: %llu objects made, %llu directories moved, %llu names bound, %llu removed, attributes of %llu set; %lu pages copied, %lu lost\n",
			run->fsb->cache_name, run->changes, run->sizes.records, run->made, run->moved,
			run->added, run->removed, run->attrs, run->pages, run->lost_pages);
	return err;
}

/* Step 13. Returns whether there was a folder, and is none now. */
static bool fb_replay_clear(struct fb_replay *run)
{
	char buf[FB_STAGE_NAME];
	struct qstr name = fb_stage_name(run, buf);
	int removed = fb_stage_remove(run);

	if (removed < 0)
		pr_warn("%s: the folder %s in %s can't be removed (error %d): look what is in it, and remove it\n",
			run->fsb->cache_name, name.name, run->fc->source, removed);
	return removed > 0;
}

static int fb_replay_or_discard(struct fb_replay *run, bool discard)
{
	bool any = fb_log_has_any(run->nl, &run->scratch), removed;
	int err = 0;

	run->life = any ? run->nl->trim : run->nl->trim - run->nl->nr_lines;
	if (any)
		err = discard ? fb_discard_log(run) : fb_replay_log(run);
	if (err)
		return err;
	/* Step 13. */
	removed = fb_replay_clear(run);
	if (any)
		return fb_replay_stops() ? -ECANCELED : 0;
	err = removed ? fb_commit(run) : 0;
	return err ? fb_replay_failed(run, "commit the journal", NULL, err) : fb_empty_log(run);
}

/**
 * fb_replay() - bring the lower directory to what the name log says, and empty the log
 * @fsb: the mount, scanned and bound to its lower directory; it has no root inode yet
 * @fc: its context, with the options
 *
 * Context: process. Sleeps, for as long as the lower file system needs.
 * Return: 0, also without a log; or an error, after a message. Then the next mount goes on.
 */
int fb_replay(struct fb_sb *fsb, struct fs_context *fc)
{
	const struct fb_options *opt = fc->fs_private;
	const struct cred *old;
	struct fb_replay *run;
	int err;

	if (!fsb->names)
		return 0;
	run = kvzalloc(sizeof(*run), GFP_KERNEL);
	if (!run)
		return -ENOMEM;
	run->fsb = fsb;
	run->fc = fc;
	run->nl = &fsb->names->nl;
	run->told = jiffies;
	old = override_creds(fsb->cred);
	err = fb_replay_or_discard(run, opt->names_discard);
	revert_creds(old);
	fb_replay_free(run);
	return err;
}
