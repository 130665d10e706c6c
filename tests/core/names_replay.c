// SPDX-License-Identifier: GPL-2.0-only
/*
 * Replay of random operations: a machine loses its power, storage has some prefix of its journal, the log
 * another one. The judgment must find just what storage has; replay, cut off at random and begun again,
 * must leave just the tree that had been committed, or a later one where storage is ahead.
 */
#include "names/layout.h"
#include "names_log.h"
#include "names_tree.h"
#include "pm_sim.h"
#include "test.h"

#include <stdio.h>
#include <stdlib.h>

#define RUNS		4000
#define FIRST_TIME	1000
#define SET_BACK	500		/* the first time after the clock was set back */

static struct {
	struct tree_op ops[TREE_OPS];	/* in the order of the journal */
	u32 n, stored;			/* storage has so many of them */
	u32 tick;			/* so many have the same time */
	u32 set_back;			/* the clock is set back before this one; TREE_OPS: it isn't */
	struct tree before;		/* what storage had before the first of them */
	u64 committed;			/* the log has those before this place */
	u64 end;			/* the record at this place, and those behind it, are lost */
	enum nl_seen read[TREE_OBJECTS];	/* since the cut: like xfs, that has raised the counter */
	u64 births[TREE_OBJECTS];
	u32 born[TREE_OBJECTS];		/* index of the operation that creates the object, plus 1 */
	struct tree storage;
	struct nl nl;
} run;

static _Alignas(4096) u8 region[NAMES_SIZE];
static struct nl_record record, other;
static struct nl_node nodes[4 * TREE_OPS];
static u32 slots[256];
static struct nl_name table[128];
static u8 bits[256];

/* Appends an operation's record. */
static void append(struct tree_op *op, struct nl_place *place)
{
	if (op->kind == NL_CREATE) {
		run.births[op->object] = place->start;
		op->change.object.birth = place->start;
	}
	op->place = place->start;
	op->began = place->began;
	names_write(&run.nl, place, &op->change);
}

static void reserve_and_take(struct tree_op **ops, u32 n)
{
	struct nl_place place[2];

	for (u32 i = 0; i < n; i++)
		if (nl_reserve(&run.nl, &place[i], nl_change_lines(&ops[i]->change)))
			abort();
	for (u32 i = 0; i < n; i++)
		nl_take(&run.nl, &place[i], place[i].reserved, false);
	for (u32 i = 0; i < n; i++)
		append(ops[i], &place[i]);
}

static void beat(void)
{
	nl_beat(&run.nl, FIRST_TIME, FIRST_TIME + TREE_OPS, run.n < run.set_back ? 0 : SET_BACK);
}

static void draw_op(struct tree *tree, u32 *next_object)
{
	struct tree_op *op = &run.ops[run.n];

	if (run.n == run.set_back)
		beat();
	while (!tree_draw(tree, op, *next_object))
		;
	op->time = (run.n < run.set_back ? FIRST_TIME : SET_BACK) + run.n / run.tick;
	tree_describe(tree, op, run.births);
	tree_run(tree, op);
	run.n++;
	if (op->kind != NL_CREATE)
		return;
	run.born[op->object] = run.n;
	++*next_object;
}

/* What the log has no records of any more. Returns the first object that is not used. */
static u32 make_past(struct tree *tree)
{
	u32 next_object = TREE_ROOT + 1;

	memset(run.births, 0, sizeof(run.births));
	memset(run.born, 0, sizeof(run.born));
	tree_init(tree);
	tree->still = sim_random(2);
	tree->step = !tree->still && sim_random(2) ? NL_STEP : 0;
	run.tick = sim_random(2) ? 1 : 1 + sim_random(TREE_OPS);
	run.set_back = sim_random(4) ? TREE_OPS : 1 + sim_random(TREE_OPS - 1);
	for (u32 n = sim_random(16); n; n--) {
		struct tree_op op;

		while (!tree_draw(tree, &op, next_object))
			;
		op.time = 10;
		tree_run(tree, &op);
		next_object += op.kind == NL_CREATE;
	}
	run.before = *tree;
	return next_object;
}

/* Runs operations; two that no lock orders may get their places in the other order. */
static void make_history(struct tree *tree)
{
	u32 next_object = make_past(tree), wanted = 2 + sim_random(TREE_OPS - 2);

	run.n = 0;
	while (run.n < wanted) {
		struct tree_op *first = &run.ops[run.n], *ops[2];

		draw_op(tree, &next_object);
		if (run.n < wanted && !sim_random(3)) {
			draw_op(tree, &next_object);
			ops[0] = first + 1;
			ops[1] = first;
			if (tree_disjoint(first, first + 1)) {
				reserve_and_take(ops, 2);
				continue;
			}
			reserve_and_take(&ops[1], 1);
			reserve_and_take(ops, 1);
			continue;
		}
		reserve_and_take(&first, 1);
	}
}

static int look(void *arg, const struct nl_identity *dir, u64 *counter, s64 *ctime)
{
	u32 object = tree_object(dir);

	(void)arg;
	if (run.born[object] > run.stored)
		EXPECT(!"a handle of an object that storage lacks is decoded");
	*counter = run.storage.counter[object];
	*ctime = run.storage.ctime[object];
	if (!tree_has(&run.storage, object))
		return -ENOENT;
	return run.read[object];
}

static struct nl_nodes fresh_nodes(void)
{
	memset(slots, 0, sizeof(slots));
	return (struct nl_nodes){ .nodes = nodes, .max = 4 * TREE_OPS, .slots = slots, .nr_slots = 256 };
}

static struct nl_judge judge_now(void)
{
	struct nl_judge judge = {
		.nl = &run.nl, .record = &record, .nodes = fresh_nodes(), .bits = bits, .look = look,
	};

	memset(bits, 0, sizeof(bits));
	EXPECT(!nl_judge(&judge));
	return judge;
}

/* Of the records that no commit has reached, some last ones may be lost. */
static void lose_tail(void)
{
	const struct tree_op *op = &run.ops[sim_random(run.n)];
	struct nl_beat beat;

	nl_beat_read(&run.nl, &beat);
	run.end = ~0ULL;
	if (sim_random(2) || op->place < max_t(u64, run.nl.commit, run.nl.trim) || op->place < beat.durable)
		return;
	run.end = op->place;
	memset(nl_line(&run.nl, run.end), 0, NL_LINE);
}

/* With steps, a directory may be read any number of times, at any time. */
static void read_again_and_again(u32 dir)
{
	static const enum nl_seen seen[] = { NL_SEEN_READ, NL_SEEN_READ_OFTEN, NL_SEEN_READ_BEFORE };

	run.read[dir] = seen[sim_random(3)];
	run.storage.counter[dir] += sim_random(3) ? sim_random(3) : sim_random(NL_STEP);
}

/* Like xfs: an object that was read has a counter that is greater by one. */
static void read_some(void)
{
	memset(run.read, 0, sizeof(run.read));
	if (run.storage.still || sim_random(2))
		return;
	for (u32 object = TREE_ROOT; object < TREE_OBJECTS; object++) {
		if (run.storage.step && run.storage.dir[object]) {
			read_again_and_again(object);
		} else if (run.set_back == TREE_OPS && sim_random(2)) {
			run.read[object] = NL_SEEN_READ;
			run.storage.counter[object]++;
		}
	}
}

/* Power fails: storage has the first @stored operations, the log is committed up to the end of one. */
static void cut(u32 stored)
{
	u64 end = run.ops[sim_random(run.n)].place;

	run.stored = stored;
	run.storage = run.before;
	for (u32 i = 0; i < stored; i++)
		tree_run(&run.storage, &run.ops[i]);
	if (sim_random(4))
		EXPECT(!nl_commit(&run.nl, end));
	lose_tail();
	read_some();
	EXPECT(!nl_open(&run.nl, region, NAMES_SIZE, 0));
	run.committed = max_t(u64, run.nl.commit, run.nl.trim);
}

/* A directory has one name, and nothing replaces a directory: what a file system would refuse. */
static bool possible(const struct tree *tree, const struct nl_binding *step, u32 object)
{
	u32 there = tree_entry(tree, tree_object(&step->dir->id), &step->name);

	if (there == object)
		return true;
	for (u32 i = 0; tree->dir[object] && i < TREE_OBJECTS * TREE_NAMES; i++)
		if (tree->entry[i / TREE_NAMES][i % TREE_NAMES] == object)
			return false;
	return !there || !tree->dir[there];
}

/* An object that is made again. If it gets one name, that is the name of this step. */
static void check_only_name(struct nl_bind *bind, const struct nl_binding *step)
{
	const struct nl_node *dir;
	struct nl_text name;

	if (nl_bind_only_name(bind, step->object, &dir, &name) != (step->object->names == 1))
		EXPECT(!"an object has another number of names");
	else if (step->object->names == 1 && (dir != step->dir || name.len != step->name.len ||
					      memcmp(name.bytes, step->name.bytes, name.len)))
		EXPECT(!"an object's only name is another one");
}

/* The steps of replay on the model; @steps of them. True: all were made. */
static bool replay(u32 steps)
{
	struct nl_bind bind = {
		.nl = &run.nl, .record = &record, .other = &other, .nodes = fresh_nodes(),
		.names = table, .nr_names = 128,
	};
	struct tree *tree = &run.storage;
	struct nl_binding step;
	u32 object;
	int got;

	memset(table, 0, sizeof(table));
	EXPECT(!nl_bind_start(&bind));
	while ((got = nl_bind_next(&bind, &step)) > 0) {
		if (!steps--)
			return false;
		object = step.object ? tree_object(&step.object->id) : 0;
		if (step.op == NL_BIND_MAKE) {
			if (run.born[object] <= run.stored)
				EXPECT(!"an object that storage has is made again");
			tree->dir[object] = run.ops[run.born[object] - 1].dir;
			continue;
		}
		if (step.object && nl_node_made(&bind, step.object) != (run.born[object] > run.stored))
			EXPECT(!"an object is looked for in the wrong place");
		if (step.op == NL_BIND_STAGE) {
			for (u32 i = 0; i < TREE_OBJECTS * TREE_NAMES; i++)
				if (tree->entry[i / TREE_NAMES][i % TREE_NAMES] == object)
					tree->entry[i / TREE_NAMES][i % TREE_NAMES] = 0;
			continue;
		}
		if (run.born[tree_object(&step.dir->id)] > run.stored && !nl_node_made(&bind, step.dir))
			EXPECT(!"a name in a directory that is nowhere");
		if (step.op == NL_BIND_ADD && !possible(tree, &step, object))
			EXPECT(!"a step that no file system makes");
		if (step.op == NL_BIND_ADD && nl_node_made(&bind, step.object))
			check_only_name(&bind, &step);
		if (step.op == NL_BIND_REMOVE && nl_node_made(&bind, step.dir))
			EXPECT(!"a name is removed that was never there");
		tree_bind(tree, tree_object(&step.dir->id), &step.name, object);
	}
	EXPECT(!got);
	return true;
}

/* What must be there: the operations that are committed, or on storage. */
static void expected(struct tree *tree)
{
	*tree = run.before;
	for (u32 i = 0; i < run.n; i++)
		if (i < run.stored || run.ops[i].place < run.committed)
			tree_run(tree, &run.ops[i]);
}

/* Storage has a later change of the same file's attributes. */
static bool set_again(u32 n)
{
	for (u32 i = n + 1; i < run.stored; i++)
		if (run.ops[i].kind == NL_SETATTR && run.ops[i].object == run.ops[n].object)
			return true;
	return false;
}

/*
 * Whether the decision about an operation is right. Attributes of a file that storage has may be set again,
 * but not over later ones.
 */
static bool well_decided(u32 n)
{
	bool has = nl_bit(&run.nl, bits, run.ops[n].place);

	if (run.ops[n].kind != NL_SETATTR || run.ops[n].dir)
		return has == (n < run.stored);
	return has ? n < run.stored : !set_again(n);
}

static bool random_replay(void)
{
	struct tree tree;
	struct nl_judge judge;

	names_forget();
	memset(region, 0, sizeof(region));
	names_format(region, 1);
	EXPECT(!nl_open(&run.nl, region, NAMES_SIZE, 0) && !nl_empty(&run.nl));
	run.n = 0;
	run.set_back = TREE_OPS;
	beat();
	make_history(&tree);
	cut(sim_random(run.n + 1));
	judge = judge_now();
	if (!EXPECT(judge.verdict == NL_EXPLAINED))
		return false;
	for (u32 i = 0; i < run.n; i++)
		if (!EXPECT(run.ops[i].place >= run.end || well_decided(i)))
			return false;
	EXPECT(!nl_decide(&run.nl, bits, judge.end));
	while (sim_random(3))
		replay(sim_random(12));
	EXPECT(replay(~0u));
	expected(&tree);
	return EXPECT(tree_same(&run.storage, &tree) && tree_same(&tree, &run.storage));
}

void names_replay_tests(void)
{
	sim_seed(1);
	for (u32 i = 0; i < RUNS; i++) {
		if (!random_replay()) {
			printf("\thistory %u\n", i);
			return;
		}
	}
	printf("names replay: %u random histories\n", RUNS);
}
