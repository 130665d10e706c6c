// SPDX-License-Identifier: GPL-2.0-only
/*
 * A small tree of files and directories with change counters, and random operations on it: the model that
 * tests of replay compare with. It knows names, and not what attributes are: only that they change.
 */
#include "names/layout.h"
#include "names_log.h"
#include "names_tree.h"
#include "pm_sim.h"

#include <stdlib.h>

static const char *const names[TREE_NAMES] = { "a", "b", "c", "longer name" };

void tree_init(struct tree *tree)
{
	memset(tree, 0, sizeof(*tree));
	tree->dir[TREE_ROOT] = true;
	tree->counter[TREE_ROOT] = 100;
	tree->ctime[TREE_ROOT] = 1;
}

struct nl_identity tree_id(u32 object, u64 birth)
{
	return names_id(birth, object);
}

u32 tree_object(const struct nl_identity *id)
{
	return id->btime - 1000000;
}

static bool empty(const struct tree *tree, u32 dir)
{
	for (u32 name = 0; name < TREE_NAMES; name++)
		if (tree->entry[dir][name])
			return false;
	return true;
}

/* True if @object is the directory @dir, or above it. */
static bool above(const struct tree *tree, u32 object, u32 dir)
{
	if (object == dir)
		return true;
	for (u32 name = 0; tree->dir[object] && name < TREE_NAMES; name++)
		if (tree->entry[object][name] && above(tree, tree->entry[object][name], dir))
			return true;
	return false;
}

/* A directory that can be reached. */
static u32 draw_dir(const struct tree *tree)
{
	u32 dirs[TREE_OBJECTS], n = 0;

	for (u32 object = TREE_ROOT; object < TREE_OBJECTS; object++)
		if (tree->dir[object] && above(tree, TREE_ROOT, object))
			dirs[n++] = object;
	return dirs[sim_random(n)];
}

static bool draw_rename(const struct tree *tree, struct tree_op *op)
{
	op->object2 = tree->entry[op->dir2][op->name2];
	if (op->object == op->object2 || above(tree, op->object, op->dir2))
		return false;
	op->exchange = op->object2 && sim_random(2);
	if (!op->object2)
		return true;
	if (op->exchange)
		return !above(tree, op->object2, op->dir1);
	return tree->dir[op->object] == tree->dir[op->object2] &&
	       (!tree->dir[op->object2] || empty(tree, op->object2));
}

/* Draws an operation that is possible now. */
bool tree_draw(const struct tree *tree, struct tree_op *op, u32 next_object)
{
	static const enum nl_kind kinds[] = { NL_CREATE, NL_CREATE, NL_CREATE, NL_LINK, NL_UNLINK, NL_RMDIR,
		NL_RENAME, NL_RENAME, NL_RENAME, NL_SETATTR, NL_SETATTR };
	u32 there;

	*op = (struct tree_op){
		.kind = kinds[sim_random(11)], .dir1 = draw_dir(tree), .name1 = sim_random(TREE_NAMES),
		.dir2 = draw_dir(tree), .name2 = sim_random(TREE_NAMES), .raise = 1 + sim_random(2),
	};
	there = tree->entry[op->dir1][op->name1];
	op->object = there;
	switch (op->kind) {
	case NL_CREATE:
		op->object = next_object;
		op->dir = sim_random(2);
		return !there && next_object < TREE_OBJECTS;
	case NL_LINK:
		op->object = tree->entry[op->dir2][op->name2];
		return !there && op->object && !tree->dir[op->object];
	case NL_UNLINK:
		return there && !tree->dir[there];
	case NL_RMDIR:
		op->dir = true;
		return there && tree->dir[there] && empty(tree, there);
	case NL_SETATTR:
		op->object = there && sim_random(2) ? there : op->dir1;
		op->dir = tree->dir[op->object];
		return true;
	default:
		op->dir = tree->dir[there];
		return there && draw_rename(tree, op);
	}
}

static u32 step_of(const struct tree *tree, u32 object)
{
	return tree->dir[object] ? tree->step : 0;
}

static void changed(struct tree *tree, const struct tree_op *op, u32 dir)
{
	tree->counter[dir] += op->raise + step_of(tree, dir);
	tree->ctime[dir] = op->time;
}

/* An object has a new name, or one less. */
static void named(struct tree *tree, const struct tree_op *op, u32 object)
{
	if (!tree->still)
		tree->counter[object] += op->raise + step_of(tree, object);
	tree->ctime[object] = op->time;
}

static void run_rename(struct tree *tree, const struct tree_op *op)
{
	tree->entry[op->dir1][op->name1] = op->exchange ? op->object2 : 0;
	tree->entry[op->dir2][op->name2] = op->object;
	if (op->dir2 != op->dir1)
		changed(tree, op, op->dir2);
	named(tree, op, op->object);
	if (!op->object2)
		return;
	named(tree, op, op->object2);
	tree->removed[op->object2] = tree->dir[op->object2] && !op->exchange;
}

void tree_run(struct tree *tree, const struct tree_op *op)
{
	if (op->kind == NL_SETATTR) {
		changed(tree, op, op->object);
		return;
	}
	changed(tree, op, op->dir1);
	switch (op->kind) {
	case NL_CREATE:
		tree->dir[op->object] = op->dir;
		tree->counter[op->object] = 1;
		tree->ctime[op->object] = op->time;
		tree->entry[op->dir1][op->name1] = op->object;
		break;
	case NL_LINK:
		named(tree, op, op->object);
		tree->entry[op->dir1][op->name1] = op->object;
		break;
	case NL_RENAME:
		run_rename(tree, op);
		break;
	default:
		named(tree, op, op->object);
		tree->entry[op->dir1][op->name1] = 0;
		tree->removed[op->object] = op->dir;
	}
}

/* The identity as a record has it: some records know no birth. */
static struct nl_identity record_id(u32 object, const u64 *births)
{
	return tree_id(object, sim_random(4) ? births[object] : 0);
}

/* Before the change, as fs/names/record.c has it: 0 if the counter doesn't rise. */
static struct nl_count named_count(const struct tree *tree, const struct tree_op *op, u32 object)
{
	return (struct nl_count){ tree->still ? 0 : tree->counter[object] + step_of(tree, object), op->time };
}

static struct nl_dir named_dir(const struct tree *tree, const struct tree_op *op, u32 dir, const u64 *births)
{
	return (struct nl_dir){ { tree->counter[dir] + tree->step, op->time }, record_id(dir, births) };
}

static void describe_attributes(const struct tree *tree, struct tree_op *op, const u64 *births)
{
	struct nl_change *c = &op->change;
	u32 after = op->dir ? tree->step : op->raise;	/* of a directory it is the counter from before */

	*c = (struct nl_change){ .kind = NL_SETATTR, .has = NL_HAS(OBJECT) | NL_HAS(SELF) | NL_HAS(ATTR) };
	c->object = record_id(op->object, births);
	c->self = (struct nl_count){ tree->counter[op->object] + after, op->time };
	c->attr = (struct nl_attr){ .mask = NL_ATTR_MODE, .mode = op->dir ? 040700 : 0100600 };
}

/* Which of the record's directories have the time already, and whether their counters make a step. */
static void describe_flags(const struct tree *tree, struct tree_op *op)
{
	struct nl_change *c = &op->change;
	const struct { u32 field, object; } dirs[] = {
		{ NL_HAS(DIR), op->dir1 }, { NL_HAS(DIR2), op->dir2 },
		{ NL_HAS(SELF), op->object }, { NL_HAS(SELF2), op->object2 },
	};

	for (u32 i = 0; i < 4; i++) {
		if (!(c->has & dirs[i].field) || !tree->dir[dirs[i].object])
			continue;
		c->flags |= tree->step ? NL_STEPPED : 0;
		if (tree->ctime[dirs[i].object] == op->time)
			c->flags |= NL_SAME_CTIME(dirs[i].field);
	}
}

/* All of a record but its flags. */
static void describe(const struct tree *tree, struct tree_op *op, const u64 *births)
{
	struct nl_change *c = &op->change;

	if (op->kind == NL_SETATTR) {
		describe_attributes(tree, op, births);
		return;
	}
	*c = (struct nl_change){ .kind = op->kind, .has = NL_HAS_ENTRY };
	c->dir = named_dir(tree, op, op->dir1, births);
	c->object = record_id(op->object, births);
	c->name = names_text(names[op->name1]);
	c->attr = (struct nl_attr){ .mask = NL_ATTR_MODE, .mode = op->dir ? 040755 : 0100644 };
	c->self = named_count(tree, op, op->object);
	if (op->kind == NL_CREATE) {
		c->has |= NL_HAS(ATTR);
		c->self.before = 0;
	}
	if (op->dir && op->kind != NL_RMDIR)
		c->has |= NL_HAS(SELF);
	if (op->kind != NL_RENAME)
		return;
	c->has |= NL_HAS(NAME2);
	c->name2 = names_text(names[op->name2]);
	c->flags = op->exchange ? NL_EXCHANGE : 0;
	if (op->dir2 != op->dir1) {
		c->has |= NL_HAS(DIR2);
		c->dir2 = named_dir(tree, op, op->dir2, births);
	}
	if (!op->object2)
		return;
	c->has |= NL_HAS(OBJECT2);
	c->object2 = record_id(op->object2, births);
	if (tree->dir[op->object2]) {
		c->has |= NL_HAS(SELF2);
		c->self2 = named_count(tree, op, op->object2);
	}
}

void tree_describe(const struct tree *tree, struct tree_op *op, const u64 *births)
{
	describe(tree, op, births);
	describe_flags(tree, op);
}

/* True if an object has a name that can be reached. */
bool tree_has(const struct tree *tree, u32 object)
{
	return above(tree, TREE_ROOT, object);
}

static bool same_below(const struct tree *a, const struct tree *b, u32 dir)
{
	for (u32 name = 0; name < TREE_NAMES; name++) {
		u32 object = a->entry[dir][name];

		if (object != b->entry[dir][name])
			return false;
		if (object && a->dir[object] && !same_below(a, b, object))
			return false;
	}
	return true;
}

/* True if all names stand for the same objects. */
bool tree_same(const struct tree *a, const struct tree *b)
{
	return same_below(a, b, TREE_ROOT);
}

static u32 name_index(const struct nl_text *name)
{
	for (u32 i = 0; i < TREE_NAMES; i++)
		if (name->len == strlen(names[i]) && !memcmp(name->bytes, names[i], name->len))
			return i;
	abort();
}

/* What a name stands for. */
u32 tree_entry(const struct tree *tree, u32 dir, const struct nl_text *name)
{
	return tree->entry[dir][name_index(name)];
}

/* A step of replay: the name stands for the object, or for none. */
void tree_bind(struct tree *tree, u32 dir, const struct nl_text *name, u32 object)
{
	tree->entry[dir][name_index(name)] = object;
}

/* Two operations that no lock orders. */
bool tree_disjoint(const struct tree_op *a, const struct tree_op *b)
{
	u32 one[] = { a->dir1, a->kind == NL_RENAME ? a->dir2 : a->dir1, a->object,
		      a->object2 ?: a->dir1 };
	u32 two[] = { b->dir1, b->kind == NL_RENAME ? b->dir2 : b->dir1, b->object,
		      b->object2 ?: b->dir1 };

	for (u32 i = 0; i < 4; i++)
		for (u32 j = 0; j < 4; j++)
			if (one[i] == two[j])
				return false;
	return true;
}
