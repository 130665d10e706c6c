// SPDX-License-Identifier: GPL-2.0-only
/*
 * What replay has to do: not the steps again, but what each name stands for in the end.
 *
 * For each (directory, name) the last record counts that is committed and that storage lacks: the name is
 * bound to the record's object, or removed. Records that storage has leave nothing to do. None of them
 * changed the name later, because in one directory no change that storage has comes after one that it lacks
 * (judge.c). The steps come in this order, each in the order of the records:
 *   1. MAKE: objects that storage lacks and that a name will stand for, in staging;
 *   2. STAGE: directories on storage that move or go. Any order of moving one into another's place, and
 *      exchanging them, is possible from there; and no removed directory stands where a name is added;
 *   3. ADD: names; nothing loses its last name before it has the new one;
 *   4. REMOVE: names.
 * So every step can be made again, and if space runs out it is the newest records' that lack it.
 *
 * Nothing is written here. Attributes are absolute: the caller makes them again from the committed records
 * in their order, for objects that exist in the end.
 */
#include "layout.h"
#include "replay.h"

/* One of the names that a record has changed. */
struct part {
	const struct nl_identity *dir;
	const struct nl_text *name;
	const struct nl_identity *object;	/* NULL: the name is removed */
};

/* The record's first or second name. False: it has none. */
static bool part_of(const struct nl_change *c, bool second, struct part *part)
{
	bool exchange = c->flags & NL_EXCHANGE;

	switch (c->kind) {
	case NL_CREATE:
	case NL_LINK:
		*part = (struct part){ &c->dir.id, &c->name, &c->object };
		return !second;
	case NL_UNLINK:
	case NL_RMDIR:
		*part = (struct part){ &c->dir.id, &c->name, NULL };
		return !second;
	case NL_RENAME:
		if (second)
			*part = (struct part){ c->has & NL_HAS(DIR2) ? &c->dir2.id : &c->dir.id,
					       &c->name2, &c->object };
		else
			*part = (struct part){ &c->dir.id, &c->name, exchange ? &c->object2 : NULL };
		return true;
	default:
		return false;
	}
}

static u32 index_of(const struct nl_bind *bind, const struct nl_node *node)
{
	return node - bind->nodes.nodes + 1;
}

static u32 name_hash(u32 dir, const struct nl_text *name)
{
	__le64 covered = cpu_to_le64(dir);

	return crc32c(crc32c_few(~0u, &covered, sizeof(covered)), name->bytes, name->len);
}

/* Positive if an entry belongs to this name, which its own record says; 0 if not; or an error. */
static int same_name(struct nl_bind *bind, const struct nl_name *entry, const struct nl_text *name)
{
	struct part part;
	int err = nl_read(bind->nl, entry->place, bind->other);

	if (err || !part_of(&bind->other->change, entry->second, &part))
		return -EUCLEAN;
	return part.name->len == name->len && !memcmp(part.name->bytes, name->bytes, name->len);
}

/* Sets *@found to the entry of a name, or to the free one where it belongs. */
static int find_name(struct nl_bind *bind, u32 dir, const struct nl_text *name, struct nl_name **found)
{
	u32 hash = name_hash(dir, name), at = hash & (bind->nr_names - 1), tried;

	for (tried = 0; tried < bind->nr_names; tried++) {
		struct nl_name *entry = &bind->names[at];
		int same = 0;

		*found = entry;
		if (!entry->dir)
			return 0;
		if (entry->hash == hash && entry->dir == dir)
			same = same_name(bind, entry, name);
		if (same)
			return same < 0 ? same : 0;
		at = (at + 1) & (bind->nr_names - 1);
	}
	return -ENOSPC;
}

/* A record that is committed and that storage lacks says what a name stands for. */
static int note_name(struct nl_bind *bind, const struct part *part, bool second)
{
	struct nl_node *dir = nl_node_get(&bind->nodes, part->dir), *object = NULL;
	struct nl_name *entry;
	int err;

	if (part->object)
		object = nl_node_get(&bind->nodes, part->object);
	if (!dir || (part->object && !object))
		return -ENOSPC;
	err = find_name(bind, index_of(bind, dir), part->name, &entry);
	if (err)
		return err;
	*entry = (struct nl_name){
		.place = bind->record->start,
		.hash = name_hash(index_of(bind, dir), part->name),
		.dir = index_of(bind, dir),
		.object = object ? index_of(bind, object) : 0,
		.second = second,
		.op = object ? NL_BIND_ADD : NL_BIND_REMOVE,
	};
	return 0;
}

/* A directory that moves or goes, if storage has it. */
static int note_staged(struct nl_bind *bind, const struct nl_identity *id)
{
	struct nl_node *node = nl_node_get(&bind->nodes, id);

	if (!node)
		return -ENOSPC;
	node->staged = !node->born || nl_on_storage(bind->nl, node->born) > 0;
	return 0;
}

static int note_moves(struct nl_bind *bind)
{
	const struct nl_change *c = &bind->record->change;
	int err = 0;

	if (c->kind == NL_RMDIR || (c->kind == NL_RENAME && c->has & NL_HAS(SELF)))
		err = note_staged(bind, &c->object);
	if (!err && c->kind == NL_RENAME && c->has & NL_HAS(SELF2))
		err = note_staged(bind, &c->object2);
	return err;
}

static int note_record(struct nl_bind *bind)
{
	const struct nl_change *c = &bind->record->change;
	int stored = nl_on_storage(bind->nl, bind->record->start), err = 0;
	struct part part;
	u32 second;

	if (stored < 0)
		return stored;
	if ((c->kind == NL_CREATE || c->kind == NL_TMPFILE) && !nl_node_born(&bind->nodes, bind->record))
		return bind->nodes.nr == bind->nodes.max ? -ENOSPC : -EUCLEAN;
	if (!bind->cursor.committed || stored)
		return 0;
	for (second = 0; second < 2 && !err; second++)
		if (part_of(c, second, &part))
			err = note_name(bind, &part, second);
	return err ? err : note_moves(bind);
}

/**
 * nl_bind_start - work out what replay has to do
 * @bind: what the caller sets is set, the rest is zero
 *
 * Context: May sleep; reads all records. Nothing changes the log until the last step.
 * Return: 0; -EUCLEAN: the log is damaged; -ENOSPC: too few nodes or names; -ENOENT: there are no
 * decisions.
 */
int nl_bind_start(struct nl_bind *bind)
{
	struct nl_node *node;
	int got, err;
	u32 i;

	nl_cursor_start(&bind->cursor, bind->nl);
	while ((got = nl_cursor_next(&bind->cursor, bind->record)) > 0) {
		err = note_record(bind);
		if (err)
			return err;
		cond_resched();
	}
	bind->damage = bind->cursor.damage;
	for (i = 0; i < bind->nr_names; i++) {
		if (bind->names[i].op == NL_BIND_ADD) {
			node = &bind->nodes.nodes[bind->names[i].object - 1];
			node->names++;
			node->name = i;
		}
	}
	bind->phase = NL_BIND_MAKE;
	nl_cursor_start(&bind->cursor, bind->nl);
	return got;
}

static bool lacking(const struct nl_bind *bind, const struct nl_node *node)
{
	return node->born && nl_on_storage(bind->nl, node->born) <= 0;
}

/**
 * nl_node_made - whether an object is made again
 * @bind: after nl_bind_start()
 * @node: object
 *
 * Context: Any.
 * Return: true if it is found in staging by its birth, and not by its handle.
 */
bool nl_node_made(const struct nl_bind *bind, const struct nl_node *node)
{
	return lacking(bind, node) && node->names;
}

/**
 * nl_bind_only_name - the name that an object has in the end, if it is the only one that is added
 * @bind: after nl_bind_start(); @bind->other is overwritten
 * @node: object that is made again
 * @dir: set to the directory
 * @name: set; the text is in @bind->other
 *
 * Context: Any.
 * Return: 1; 0: the object gets several names; -EUCLEAN: the log is damaged.
 */
int nl_bind_only_name(struct nl_bind *bind, const struct nl_node *node, const struct nl_node **dir,
		      struct nl_text *name)
{
	const struct nl_name *entry = &bind->names[node->name];
	struct part part;

	if (node->names != 1)
		return 0;
	if (nl_read(bind->nl, entry->place, bind->other) ||
	    !part_of(&bind->other->change, entry->second, &part))
		return -EUCLEAN;
	*dir = &bind->nodes.nodes[entry->dir - 1];
	*name = *part.name;
	return 1;
}

static bool next_staged(struct nl_bind *bind, struct nl_binding *binding)
{
	while (bind->node < bind->nodes.nr) {
		const struct nl_node *node = &bind->nodes.nodes[bind->node++];

		if (!node->staged)
			continue;
		*binding = (struct nl_binding){ .op = NL_BIND_STAGE, .object = node };
		return true;
	}
	return false;
}

/* The present record's object, if it is made again. */
static bool next_made(struct nl_bind *bind, struct nl_binding *binding)
{
	const struct nl_change *c = &bind->record->change;
	const struct nl_node *node;

	bind->loaded = false;
	if (c->kind != NL_CREATE && c->kind != NL_TMPFILE)
		return false;
	node = nl_node_find(&bind->nodes, &c->object);
	*binding = (struct nl_binding){ .op = NL_BIND_MAKE, .record = bind->record, .object = node };
	return node && nl_node_made(bind, node);
}

/*
 * Whether nothing is to be done about a name. A directory that is made again gets final names only, so it has
 * none that goes. One that isn't made has no names at all.
 */
static bool needs_nothing(const struct nl_bind *bind, const struct nl_node *dir, const struct nl_name *entry)
{
	return lacking(bind, dir) && (entry->op == NL_BIND_REMOVE || !dir->names);
}

/* The entry of a name that the present record was the last to change. NULL: there is a later record. */
static const struct nl_name *entry_of_last(const struct nl_bind *bind, u32 dir, const struct nl_text *name,
					   bool second)
{
	u32 at = name_hash(dir, name) & (bind->nr_names - 1), tried;

	for (tried = 0; tried < bind->nr_names && bind->names[at].dir; tried++) {
		if (bind->names[at].place == bind->record->start && bind->names[at].second == second)
			return &bind->names[at];
		at = (at + 1) & (bind->nr_names - 1);
	}
	return NULL;
}

/* The present record's next name, if this record is its last and the phase is that of its step. */
static bool next_name(struct nl_bind *bind, struct nl_binding *binding)
{
	bool second = bind->second;
	const struct nl_name *entry;
	struct nl_node *dir;
	struct part part;

	bind->second = !second;
	bind->loaded = !second;
	if (!part_of(&bind->record->change, second, &part))
		return false;
	dir = nl_node_find(&bind->nodes, part.dir);
	entry = dir ? entry_of_last(bind, index_of(bind, dir), part.name, second) : NULL;
	if (!entry || entry->op != bind->phase || needs_nothing(bind, dir, entry))
		return false;
	*binding = (struct nl_binding){
		.op = entry->op, .record = bind->record, .dir = dir, .name = *part.name,
	};
	if (entry->object)
		binding->object = &bind->nodes.nodes[entry->object - 1];
	return true;
}

/**
 * nl_bind_next - the next step of replay
 * @bind: after nl_bind_start()
 * @binding: set if 1 is returned; valid until the next call
 *
 * Context: May sleep.
 * Return: 1: a step; 0: there are no more; -EUCLEAN: the log is damaged.
 */
int nl_bind_next(struct nl_bind *bind, struct nl_binding *binding)
{
	int got;

	while (bind->phase <= NL_BIND_REMOVE) {
		if (bind->phase == NL_BIND_STAGE) {
			if (next_staged(bind, binding))
				return 1;
			bind->phase++;
			continue;
		}
		if (!bind->loaded) {
			got = nl_cursor_next(&bind->cursor, bind->record);
			if (got < 0)
				return got;
			if (!got) {
				bind->phase++;
				nl_cursor_start(&bind->cursor, bind->nl);
				continue;
			}
			bind->loaded = true;
		}
		if (bind->phase == NL_BIND_MAKE ? next_made(bind, binding) : next_name(bind, binding))
			return 1;
	}
	return 0;
}
