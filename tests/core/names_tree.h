/* SPDX-License-Identifier: GPL-2.0-only */
/* A small tree of files, its journal and its name log, for tests of replay. See names_tree.c. */
#ifndef FOREBAY_TESTS_CORE_NAMES_TREE_H
#define FOREBAY_TESTS_CORE_NAMES_TREE_H

#include "names/replay.h"

#define TREE_OBJECTS	64
#define TREE_NAMES	4	/* of a directory */
#define TREE_OPS	48
#define TREE_ROOT	1

/* What storage has. Object 0 is none. */
struct tree {
	bool dir[TREE_OBJECTS];
	u32 entry[TREE_OBJECTS][TREE_NAMES];
	u64 counter[TREE_OBJECTS];
	s64 ctime[TREE_OBJECTS];
	bool removed[TREE_OBJECTS];	/* a directory that was removed */
	bool still;			/* like ext4: an object has no counter of its names */
	u32 step;			/* of a directory's counter, with each change; or 0 */
};

struct tree_op {
	enum nl_kind kind;
	bool exchange, dir;		/* the object is a directory */
	u32 dir1, name1, dir2, name2;
	u32 object, object2;
	s64 time;
	u32 raise;			/* of counters */
	u64 place, began;		/* in the log */
	struct nl_change change;
};

void tree_init(struct tree *tree);
bool tree_draw(const struct tree *tree, struct tree_op *op, u32 next_object);
void tree_run(struct tree *tree, const struct tree_op *op);
/* Describes the change that the operation will be; before tree_run(). */
void tree_describe(const struct tree *tree, struct tree_op *op, const u64 *births);
u32 tree_entry(const struct tree *tree, u32 dir, const struct nl_text *name);
void tree_bind(struct tree *tree, u32 dir, const struct nl_text *name, u32 object);
bool tree_has(const struct tree *tree, u32 object);
bool tree_same(const struct tree *a, const struct tree *b);
bool tree_disjoint(const struct tree_op *a, const struct tree_op *b);
struct nl_identity tree_id(u32 object, u64 birth);
u32 tree_object(const struct nl_identity *id);

#endif
