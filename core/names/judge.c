// SPDX-License-Identifier: GPL-2.0-only
/*
 * Which records storage has, and whether its state can be explained at all.
 *
 * A record's change is on storage if and only if the change counter of each directory that it changed is
 * greater there than before the change. On xfs, reads raise counters, too: so each change makes a step
 * (NL_STEPPED), which reads don't get over.
 *
 * Attributes of other inodes have no such counter, nor has a directory whose counter didn't rise. They are
 * absolute: the record counts as stored if storage has a later state, and is made again otherwise. A state
 * with another counter than that from after the change is later if its counter is greater. ctime decides if
 * both are the same, or if the record has no counter. This must be decided here, too, for to set attributes
 * again moves ctime.
 *
 * Storage is explained if
 *   - each directory has a state that the log knows: the ctime of the last change that storage has; or it
 *     is newer than the last record that can be read, and not younger than the last heartbeat allows. If the
 *     clock was set back, the heartbeat says what is newer;
 *   - no directory is older than its first record in the log, and every committed opaque record is there;
 *   - all directories admit one cut. Changes of different directories may reach the lower journal in
 *     another order than they take their places, so a record covers the span from where it began to its
 *     place: no change that storage has began behind the place of one that it lacks.
 *
 * Nothing is written here.
 */
#include "layout.h"
#include "replay.h"

/* What the directories of a record say. */
struct votes {
	bool	yes;		/* storage has the change */
	bool	no;		/* it has not */
	bool	removed;	/* a directory is gone, so what came before its removal is there */
};

/* What a record says of one of its directories. */
struct claim {
	const struct nl_count *count;
	bool	same;		/* the change before has the same ctime */
	u64	step;		/* the counter was raised by so many for the change alone */
};

/* Storage can't be explained; the first reason counts. */
static void verdict(struct nl_judge *judge, enum nl_verdict why, const struct nl_node *dir, u64 place)
{
	if (judge->verdict)
		return;
	judge->verdict = why;
	judge->place = place;
	judge->has_dir = dir;
	if (dir)
		judge->dir = dir->id;
}

static int look_at(struct nl_judge *judge, struct nl_node *node)
{
	int err = judge->look(judge->arg, &node->id, &node->counter, &node->ctime);

	if (err < 0 && err != -ENOENT)
		return err;
	node->read = err < 0 ? NL_SEEN_UNREAD : err;
	node->state = err < 0 ? NL_NODE_REMOVED : NL_NODE_PRESENT;
	return 0;
}

/* Looks at a directory on storage, once. The handle of one that storage never had isn't decoded. */
static int look(struct nl_judge *judge, struct nl_node *node)
{
	if (node->state != NL_NODE_UNKNOWN)
		return 0;
	if (!node->born || nl_bit(judge->nl, judge->bits, node->born))
		return look_at(judge, node);
	node->state = NL_NODE_ABSENT;
	return 0;
}

/* One raise, and another ctime than that from after the change: an access time has raised the counter. */
static bool raised_by_reading(const struct nl_node *node, const struct nl_count *count)
{
	return node->counter == count->before + 1 && node->ctime != count->ctime;
}

/*
 * Whether a directory on storage has a change, if access times may have raised the counter: each time that
 * it was read after it came into memory. An access time leaves ctime alone, so ctime decides. If the change
 * before was made within the same tick, one raise is taken for an access time's. The record says so itself
 * (@same), for the log may not have the change before any more.
 */
static bool has_change_if_read(const struct nl_node *node, const struct nl_count *count, bool same)
{
	bool raised_more = node->counter > count->before + 1;

	if (!node->stored)
		return node->ctime > count->ctime || (node->ctime == count->ctime && (!same || raised_more));
	if (node->known == count->ctime)
		return raised_more;
	return node->ctime != node->known;	/* also if the clock was set back */
}

/* True if the counter of a directory on storage shows that storage has the change. */
static bool has_change(const struct nl_node *node, const struct claim *claim)
{
	const struct nl_count *count = claim->count;

	if (node->counter <= count->before)
		return BREAK_COUNTER && node->counter == count->before;
	if (claim->step || node->read == NL_SEEN_UNREAD)
		return true;
	if (raised_by_reading(node, count))
		return false;
	return node->read == NL_SEEN_READ_BEFORE || has_change_if_read(node, count, claim->same);
}

/*
 * True if the counter of a directory on storage is not the one from before the step of a change that storage
 * lacks, and reads don't explain it: they leave ctime alone. A whole step does, for the counter may have been
 * written between the step and the change.
 */
static bool raised_by_others(const struct nl_node *node, const struct claim *claim)
{
	u64 raised = node->counter + claim->step - claim->count->before;

	if (!raised || raised == claim->step)
		return false;
	return claim->same ? node->ctime != claim->count->ctime : node->read == NL_SEEN_UNREAD;
}

/*
 * True if the counter and the ctime of a directory on storage are those from after a change, and those from
 * before it that several access times have raised.
 */
static bool is_unclear(const struct nl_node *node, const struct claim *claim)
{
	const struct nl_count *count = claim->count;

	return !claim->step && node->read == NL_SEEN_READ_OFTEN && node->counter > count->before + 1 &&
	       node->ctime == count->ctime && (node->stored ? node->known == count->ctime : claim->same);
}

/* Votes for a directory on storage: whether it has the change. */
static void vote_present(struct nl_judge *judge, struct nl_node *node, const struct claim *claim,
			 struct votes *votes)
{
	bool has = has_change(node, claim), first = !node->stored && !node->unstored;
	u64 place = judge->record->start;

	if (first && node->counter + claim->step < claim->count->before)
		verdict(judge, NL_ROLLED_BACK, node, place);
	if (first && !has && claim->step && raised_by_others(node, claim))
		verdict(judge, NL_CHANGED, node, place);
	if (is_unclear(node, claim))
		verdict(judge, NL_UNCLEAR, node, place);
	if (has && node->unstored)
		verdict(judge, NL_CONTRADICTION, node, place);
	if (has) {
		votes->yes = true;
		node->stored = true;
		node->known = claim->count->ctime;
	} else {
		votes->no = true;
		node->unstored = true;
	}
}

/* One of the record's directories, and its bit in nl_change.has. */
static int vote(struct nl_judge *judge, const struct nl_identity *id, const struct nl_count *count,
		u32 field, struct votes *votes)
{
	u32 flags = judge->record->change.flags;
	struct claim claim = {
		.count = count, .same = flags & NL_SAME_CTIME(field),
		.step = flags & NL_STEPPED ? NL_STEP : 0,
	};
	struct nl_node *node = nl_node_get(&judge->nodes, id);
	int err;

	if (!node)
		return -ENOSPC;
	if (id->birth >= judge->nl->trim && id->birth != node->born)
		verdict(judge, NL_CONTRADICTION, node, judge->record->start);
	err = look(judge, node);
	if (err)
		return err;
	node->place = judge->record->start;
	if (node->state == NL_NODE_PRESENT)
		vote_present(judge, node, &claim, votes);
	else if (node->state == NL_NODE_ABSENT)
		votes->no = true;
	else
		votes->removed = true;
	return 0;
}

/* A change of attributes, with the mode from after it. */
static bool of_attributes(const struct nl_change *c)
{
	return c->kind == NL_SETATTR || c->kind == NL_XATTR_SET || c->kind == NL_XATTR_REMOVE ||
	       c->kind == NL_IFLAGS;
}

static bool of_directory(const struct nl_change *c)
{
	return (c->attr.mode & NL_MODE_TYPE) == NL_MODE_DIR;
}

/* The counter of the record's object says something. */
static bool self_votes(const struct nl_change *c)
{
	return c->has & NL_HAS(SELF) && c->kind != NL_CREATE && c->self.before &&
	       (!of_attributes(c) || of_directory(c));
}

/*
 * All directories that the record has changed. A directory that it made says nothing yet, nor does one whose
 * counter didn't rise with the change.
 */
static int vote_all(struct nl_judge *judge, struct votes *votes)
{
	const struct nl_change *c = &judge->record->change;
	int err = 0;

	if (c->has & NL_HAS(DIR))
		err = vote(judge, &c->dir.id, &c->dir.count, NL_HAS(DIR), votes);
	if (!err && c->has & NL_HAS(DIR2))
		err = vote(judge, &c->dir2.id, &c->dir2.count, NL_HAS(DIR2), votes);
	if (!err && self_votes(c))
		err = vote(judge, &c->object, &c->self, NL_HAS(SELF), votes);
	if (!err && c->has & NL_HAS(SELF2) && c->self2.before)
		err = vote(judge, &c->object2, &c->self2, NL_HAS(SELF2), votes);
	return err;
}

/* A creation: storage has a directory's first state if it has the creation. */
static int judge_creation(struct nl_judge *judge, bool stored)
{
	const struct nl_change *c = &judge->record->change;
	struct nl_node *node = nl_node_born(&judge->nodes, judge->record);

	if (!node && judge->nodes.nr == judge->nodes.max)
		return -ENOSPC;
	if (!node) {
		verdict(judge, NL_CONTRADICTION, NULL, judge->record->start);
		return 0;
	}
	node->nameless = c->kind == NL_TMPFILE;
	if (c->has & NL_HAS(SELF)) {
		node->stored = stored;
		node->known = c->self.ctime;
	}
	return 0;
}

/*
 * The object of any other change. Storage has it, if it has the change. A file that was created without a
 * name is on storage if its first name is: without one it is deleted when storage is mounted.
 */
static void judge_object(struct nl_judge *judge, bool stored)
{
	const struct nl_change *c = &judge->record->change;
	struct nl_node *node;

	if (!(c->has & NL_HAS(OBJECT)))
		return;
	node = nl_node_find(&judge->nodes, &c->object);
	if (node && c->kind == NL_LINK)
		node->named = true;
	if (c->object.birth >= judge->nl->trim && (!node || node->born != c->object.birth))
		verdict(judge, NL_CONTRADICTION, NULL, judge->record->start);
	if (!stored || !node || !node->born || nl_bit(judge->nl, judge->bits, node->born))
		return;
	if (node->nameless && c->kind == NL_LINK)
		nl_bit_set(judge->nl, judge->bits, node->born);
	else
		verdict(judge, NL_NO_CUT, NULL, judge->record->start);
}

/*
 * Files that were created without a name, and that have none in the log. One may have got its first name
 * while the log was off; or the record of that was lost, and storage had it. So handle and time of birth
 * decide. Without a time of birth, another file may have the handle.
 */
static int judge_nameless(struct nl_judge *judge)
{
	u32 i;

	for (i = 0; i < judge->nodes.nr; i++) {
		struct nl_node *node = &judge->nodes.nodes[i];
		int err;

		if (!node->nameless || node->named || !node->id.btime)
			continue;
		err = look_at(judge, node);
		if (err)
			return err;
		if (node->state == NL_NODE_PRESENT)
			nl_bit_set(judge->nl, judge->bits, node->born);
		else
			node->state = NL_NODE_ABSENT;
	}
	return 0;
}

/* Storage has a change that moved a directory's ctime, and not its counter. */
static void note_ctime(struct nl_judge *judge, const struct nl_identity *id, const struct nl_count *count)
{
	struct nl_node *node = count->before ? NULL : nl_node_find(&judge->nodes, id);

	if (node && node->stored)
		node->known = count->ctime;
}

static void note_ctimes(struct nl_judge *judge)
{
	const struct nl_change *c = &judge->record->change;

	if (c->has & NL_HAS(SELF) && c->kind != NL_CREATE)
		note_ctime(judge, &c->object, &c->self);
	if (c->has & NL_HAS(SELF2))
		note_ctime(judge, &c->object2, &c->self2);
}

static int judge_record(struct nl_judge *judge, bool committed)
{
	const struct nl_record *record = judge->record;
	struct votes votes = { };
	bool stored;
	int err = vote_all(judge, &votes);

	if (err)
		return err;
	stored = votes.yes || (votes.removed && !votes.no);
	if (votes.no && (votes.yes || votes.removed))
		verdict(judge, NL_NO_CUT, NULL, record->start);
	if (committed && record->change.kind == NL_OPAQUE && votes.no)
		verdict(judge, NL_ROLLED_BACK, NULL, record->start);
	if (stored) {
		nl_bit_set(judge->nl, judge->bits, record->start);
		judge->began = max_t(u64, judge->began, record->began);
		note_ctimes(judge);
	} else if (votes.no) {
		judge->lacks = min_t(u64, judge->lacks, record->start);
	}
	if (judge->began > judge->lacks)
		verdict(judge, NL_NO_CUT, NULL, record->start);
	if (record->change.kind == NL_CREATE || record->change.kind == NL_TMPFILE)
		return judge_creation(judge, stored);
	judge_object(judge, stored);
	return 0;
}

/*
 * True if storage has a later state of the object than the change has left. A ctime may be later with an
 * earlier state: the clock was set back, or ext4 has ended a truncation when it was mounted after the crash.
 */
static bool has_later(const struct nl_node *node, const struct nl_count *count)
{
	bool read = node->read == NL_SEEN_READ || node->read == NL_SEEN_READ_OFTEN;
	u64 counter = node->counter - read;

	if (node->state != NL_NODE_PRESENT)
		return node->state == NL_NODE_REMOVED;
	if (read && count->before && counter > count->before)
		return node->ctime >= count->ctime;	/* it may have been read more than once */
	if (count->before && counter != count->before)
		return counter > count->before;
	return node->ctime > count->ctime;
}

/* A change of attributes that no counter tells of. Whether storage has its object is decided by now. */
static int judge_attributes(struct nl_judge *judge, bool committed)
{
	const struct nl_change *c = &judge->record->change;
	struct nl_node *node;
	int err;

	(void)committed;
	if (!of_attributes(c) || !(c->has & NL_HAS(SELF)) || self_votes(c))
		return 0;
	node = nl_node_get(&judge->nodes, &c->object);
	if (!node)
		return -ENOSPC;
	err = look(judge, node);
	if (!err && has_later(node, &c->self))
		nl_bit_set(judge->nl, judge->bits, judge->record->start);
	return err;
}

/* All records, in their order. */
static int judge_each(struct nl_judge *judge, int (*one)(struct nl_judge *judge, bool committed))
{
	struct nl_cursor cursor;
	int got, err;

	nl_cursor_start(&cursor, judge->nl);
	while ((got = nl_cursor_next(&cursor, judge->record)) > 0) {
		err = one(judge, cursor.committed);
		if (err)
			return err;
		cond_resched();
	}
	judge->damage = cursor.damage;
	judge->end = cursor.place;
	return got;
}

/* True if the log explains the state of a directory on storage. Asked after all its records. */
static bool explained(const struct nl_judge *judge, const struct nl_node *node)
{
	if (!node->stored || node->ctime == node->known)
		return true;
	return !node->unstored && judge->beat.seq && node->ctime <= judge->beat.until &&
	       (node->ctime > node->known || (judge->beat.back && node->ctime >= judge->beat.back));
}

/**
 * nl_judge - decide which records storage has
 * @judge: what the caller sets is set, the rest is zero
 *
 * With NL_EXPLAINED, @judge->bits and @judge->end are for nl_decide(). With another verdict nothing may
 * be changed on storage. No object is looked at twice.
 *
 * Context: May sleep, and calls @judge->look; nothing changes the log or storage meanwhile.
 * Return: 0: there is a verdict; -EUCLEAN: the log is damaged; -EEXIST: there are decisions; -ENOSPC: too
 * few nodes; or an error of @judge->look.
 */
int nl_judge(struct nl_judge *judge)
{
	int err;
	u32 i;

	if (judge->nl->decided)
		return -EEXIST;
	judge->lacks = NL_NO_LIMIT;
	nl_beat_read(judge->nl, &judge->beat);
	err = judge_each(judge, judge_record);
	if (err)
		return err;
	for (i = 0; i < judge->nodes.nr; i++) {
		const struct nl_node *node = &judge->nodes.nodes[i];

		if (node->state == NL_NODE_PRESENT && !explained(judge, node))
			verdict(judge, NL_CHANGED, node, node->place);
	}
	return judge_nameless(judge) ?: judge_each(judge, judge_attributes);
}
