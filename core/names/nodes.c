// SPDX-License-Identifier: GPL-2.0-only
/*
 * The objects that records of a name log name, found by handle and time of birth.
 *
 * Within one log the two are unique: a log is empty before the first inode of a new life is handed out.
 * So an object whose records name no birth is still joined with its creation.
 */
#include "layout.h"
#include "replay.h"

static u32 identity_hash(const struct nl_identity *id)
{
	__le64 covered[] = { cpu_to_le64(id->btime), cpu_to_le64(id->type) };

	return crc32c(crc32c_few(~0u, covered, sizeof(covered)), id->handle, id->len);
}

static bool same_identity(const struct nl_identity *a, const struct nl_identity *b)
{
	return a->btime == b->btime && a->type == b->type && a->len == b->len &&
	       !memcmp(a->handle, b->handle, a->len);
}

static_assert(sizeof(struct nl_node) <= 112);
static_assert(sizeof(struct nl_name) <= 24);

/* The slot of an object: its own, or the free one where it belongs. */
static u32 *slot_of(const struct nl_nodes *nodes, const struct nl_identity *id, u32 hash)
{
	u32 at = hash & (nodes->nr_slots - 1);

	while (nodes->slots[at]) {
		const struct nl_node *node = &nodes->nodes[nodes->slots[at] - 1];

		if (node->hash == hash && same_identity(&node->id, id))
			break;
		at = (at + 1) & (nodes->nr_slots - 1);
	}
	return &nodes->slots[at];
}

/**
 * nl_node_find - find an object
 * @nodes: table
 * @id: identity
 *
 * Context: Any.
 * Return: the node; NULL: no record has named it.
 */
struct nl_node *nl_node_find(const struct nl_nodes *nodes, const struct nl_identity *id)
{
	u32 slot = *slot_of(nodes, id, identity_hash(id));

	return slot ? &nodes->nodes[slot - 1] : NULL;
}

/**
 * nl_node_get - find an object, or add it
 * @nodes: table
 * @id: identity
 *
 * Context: Any.
 * Return: the node; NULL: the table is full.
 */
struct nl_node *nl_node_get(struct nl_nodes *nodes, const struct nl_identity *id)
{
	u32 hash = identity_hash(id), *slot = slot_of(nodes, id, hash);
	struct nl_node *node;

	if (*slot)
		return &nodes->nodes[*slot - 1];
	if (nodes->nr == nodes->max)
		return NULL;
	node = &nodes->nodes[nodes->nr++];
	*node = (struct nl_node){ .id = *id, .hash = hash };
	*slot = nodes->nr;
	return node;
}

/**
 * nl_node_born - add the object that a record has created
 * @nodes: table
 * @record: NL_CREATE or NL_TMPFILE
 *
 * Context: Any.
 * Return: the node; NULL: the table is full, or an earlier record named the object.
 */
struct nl_node *nl_node_born(struct nl_nodes *nodes, const struct nl_record *record)
{
	u32 before = nodes->nr;
	struct nl_node *node = nl_node_get(nodes, &record->change.object);

	if (!node || nodes->nr == before)
		return NULL;
	node->born = record->start;
	node->is_dir = (record->change.attr.mode & NL_MODE_TYPE) == NL_MODE_DIR;
	return node;
}

/**
 * nl_replay_sizes - how much memory judging and binding need
 * @nl: log
 * @record: scratch
 * @sizes: set
 *
 * Context: Any; reads all records.
 * Return: 0; -EUCLEAN: the log is damaged.
 */
int nl_replay_sizes(const struct nl *nl, struct nl_record *record, struct nl_replay_sizes *sizes)
{
	struct nl_cursor cursor;
	int got;

	*sizes = (struct nl_replay_sizes){ };
	nl_cursor_start(&cursor, nl);
	while ((got = nl_cursor_next(&cursor, record)) > 0) {
		u32 has = record->change.has;

		sizes->records++;
		sizes->nodes += !!(has & NL_HAS(DIR)) + !!(has & NL_HAS(DIR2)) +
				!!(has & NL_HAS(OBJECT)) + !!(has & NL_HAS(OBJECT2));
		sizes->names += !!(has & NL_HAS(NAME)) + !!(has & NL_HAS(NAME2));
		cond_resched();
	}
	return got;
}
