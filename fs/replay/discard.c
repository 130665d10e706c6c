// SPDX-License-Identifier: GPL-2.0-only
/*
 * A name log is emptied; and given up, with mount -o names=discard.
 *
 * Giving up changes no name and no attribute below. Each creation in the log is looked for by its handle and
 * its time of birth. If storage has it, its pages stay and meet their file as always. If storage lacks it,
 * its pages are freed. The lower file system may give the handle to another file, which must not get these
 * pages. Where the time of birth isn't known, a handle proves nothing, and the pages are freed, too. Records
 * behind a damaged one aren't known, and their pages stay.
 *
 * What an unfinished replay has moved to staging is set aside first. The pages are freed before the log is
 * emptied, so that no page of a lost file outlives the log. After a power cut in between, mount has to be
 * told again to discard: replay would make these files empty.
 */
#include <linux/uuid.h>

#include "../fail.h"
#include "../writeback/restore.h"
#include "change.h"
#include "discard.h"
#include "find.h"
#include "stage.h"

/* A place beyond each that any word or heartbeat of the log knows. */
static u64 fb_beyond(const struct nl *nl)
{
	struct nl_beat beat;
	u64 place = max(le64_to_cpu(nl->header.first), max(nl->trim, nl->commit));

	nl_beat_read(nl, &beat);
	place = max(place, max(beat.durable, beat.commit)) + nl->nr_lines;
	return place < NL_MAX_PLACE / 2 ? place : 1;	/* the new UUID tells the logs apart as well */
}

/* Its words don't say any more where the log begins, or its places are used up: it is made anew. */
static int fb_format_log(struct fb_replay *run)
{
	u64 size = le64_to_cpu(run->nl->header.size);
	struct nl_format_options opt = { .first = fb_beyond(run->nl) };
	u32 flags = run->nl->flush_caches ? NL_OPEN_FLUSH_CACHES : 0;
	void *base = run->nl->base;
	enum nl_error err;

	generate_random_uuid(opt.uuid);
	err = nl_format(base, size, &opt);
	if (!err)
		err = nl_open(run->nl, base, size, flags);
	if (err)
		return fb_fail(run->fc, -EUCLEAN, "%s: the name log can't be formatted again: %s",
			       run->fsb->cache_name, nl_strerror(err));
	return nl_empty(run->nl);
}

/**
 * fb_empty_log() - the log begins its next life
 * @run: the replay; nothing in the log is needed any more
 *
 * Durable on return.
 *
 * Return: 0; or -EUCLEAN, after a message.
 */
int fb_empty_log(struct fb_replay *run)
{
	if (fb_replay_stops())
		return -ECANCELED;
	return nl_empty(run->nl) ? fb_format_log(run) : 0;
}

/* Whether a file is certainly on storage, or can't be looked for now. */
static bool fb_is_on_storage(struct fb_sb *fsb, const struct nl_identity *id)
{
	struct dentry *dentry;

	if (!id->btime)
		return false;
	dentry = fb_find_identity(fsb, id, false);
	if (IS_ERR(dentry))
		return dentry != ERR_PTR(-ESTALE);
	dput(dentry);
	return true;
}

/* Whether a committed record's change was given up, as far as is known. */
static bool fb_gives_up(const struct fb_replay *run, u64 place)
{
	return place < run->nl->commit && nl_on_storage(run->nl, place) != 1;
}

/**
 * fb_discard_log() - give up a name log, damaged or not
 * @run: the replay; the log has records, or is damaged
 *
 * Return: 0 or an error.
 */
int fb_discard_log(struct fb_replay *run)
{
	const struct nl_change *change = &run->scratch.change;
	struct fb_sb *fsb = run->fsb;
	u64 given_up = 0, pages = 0;
	struct nl_cursor cursor;
	struct ps_handle handle;
	int got, err = fb_stage_set_aside(run);

	if (err)
		return fb_fail(run->fc, err, "%s: replay's folder in %s can't be set aside: error %d",
			       fsb->cache_name, run->fc->source, err);
	nl_cursor_start(&cursor, run->nl);
	while ((got = nl_cursor_next(&cursor, &run->scratch)) > 0) {
		given_up += fb_gives_up(run, run->scratch.start);
		if ((change->kind == NL_CREATE || change->kind == NL_TMPFILE) &&
		    !fb_is_on_storage(fsb, &change->object)) {
			handle = fb_handle_of(&change->object);
			pages += fb_restore_free(fsb, &handle);
		}
		cond_resched();
	}
	err = fb_empty_log(run);
	if (!err)
		pr_warn("%s: the name log was given up as names=discard asks: up to %llu committed changes of names and attributes, and %llu pages of files that storage doesn't have%s\n",
			fsb->cache_name, given_up, pages,
			got < 0 ? ", and what was behind its first damaged record" : "");
	return err;
}
