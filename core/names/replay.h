/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What recovery concludes from a name log, before it changes anything: which records storage has (judge.c),
 * and what is left to do (bind.c). Pure logic; the caller looks at storage, and does the work.
 *
 * Memory is the caller's, and bounded by the records: nl_replay_sizes() counts. A record names four objects
 * and two names at most: with the tables of hashes, less than 600 bytes.
 */
#ifndef FOREBAY_CORE_NAMES_REPLAY_H
#define FOREBAY_CORE_NAMES_REPLAY_H

#include "names.h"

/* What is known of an object that records name. */
enum nl_node_state {
	NL_NODE_UNKNOWN = 0,	/* not looked at */
	NL_NODE_PRESENT,	/* on storage */
	NL_NODE_REMOVED,	/* storage had it, and has it no more */
	NL_NODE_ABSENT,		/* storage never had it: its creation is in the log, and was lost */
};

struct nl_node {
	struct nl_identity id;
	u64	born;		/* place of its creation's record in this log; 0: none */
	u64	counter;	/* on storage; if present */
	s64	ctime;
	s64	known;		/* ctime after the last change that storage has */
	union {
		u64	place;	/* judging: of the last record that changed it as a directory; 0: none */
		u32	name;	/* binding: index in nl_bind.names of one of @names, if there is any */
	};
	u32	hash;
	u32	names;		/* bindings to it that are to be added */
	u8	state;		/* enum nl_node_state */
	bool	stored;		/* storage has one of its changes */
	bool	unstored;	/* storage lacks one of its changes */
	bool	staged;		/* a directory on storage that moves, or goes */
	bool	is_dir;		/* created as a directory; if @born */
	bool	nameless;	/* created without a name; */
	bool	named;		/* and the log has a name for it */
	u8	read;		/* enum nl_seen: whether access times may have raised the counter */
};

/* All objects that records name. */
struct nl_nodes {
	struct nl_node *nodes;
	u32	max;		/* of @nodes */
	u32	nr;
	u32	*slots;		/* zero at first: by hash, index + 1 */
	u32	nr_slots;	/* a power of 2, more than @max */
};

struct nl_replay_sizes {
	u64	records;
	u32	nodes;		/* at most so many objects */
	u32	names;		/* and so many names */
};

int nl_replay_sizes(const struct nl *nl, struct nl_record *record, struct nl_replay_sizes *sizes);

/* Nodes: nodes.c. */
struct nl_node *nl_node_find(const struct nl_nodes *nodes, const struct nl_identity *id);
struct nl_node *nl_node_get(struct nl_nodes *nodes, const struct nl_identity *id);
struct nl_node *nl_node_born(struct nl_nodes *nodes, const struct nl_record *record);

/* Judging: judge.c. */
enum nl_verdict {
	NL_EXPLAINED = 0,	/* decide */
	NL_ROLLED_BACK,		/* storage is older than what it had when the log was trimmed or settled */
	NL_CHANGED,		/* a directory was changed without Forebay */
	NL_NO_CUT,		/* storage has a change without one that came before it */
	NL_CONTRADICTION,	/* the log contradicts itself */
	NL_UNCLEAR,		/* access times may have raised a directory's counter, or a change has */
};

/* What a look at an object on storage says of access times, which may raise its counter without a change. */
enum nl_seen {
	NL_SEEN_UNREAD = 0,	/* none has since the crash */
	NL_SEEN_READ,		/* one has, or none */
	NL_SEEN_READ_OFTEN,	/* any number of them */
	NL_SEEN_READ_BEFORE,	/* one may have while the clock was behind; then ctime is not of that time */
};

/*
 * Looks at an object on storage: sets counter and ctime, and returns a value of enum nl_seen; -ENOENT: there
 * is none; another error ends the judgment. It is never asked for an object whose creation storage lacks, but
 * for a file that was created without a name: to one without a name on storage it says -ENOENT.
 */
typedef int (*nl_look_fn)(void *arg, const struct nl_identity *object, u64 *counter, s64 *ctime);

struct nl_judge {
	/* Set by the caller. */
	const struct nl *nl;		/* without decisions */
	struct nl_record *record;	/* scratch */
	struct nl_nodes nodes;
	u8	*bits;			/* nl_bits_size(), zero at first: the decisions */
	nl_look_fn look;
	void	*arg;
	/* Results. */
	u64	end;			/* for nl_decide() */
	enum nl_verdict verdict;
	u64	place;			/* of the record that shows it; 0: of none */
	struct nl_identity dir;		/* the directory that shows it, if @has_dir */
	bool	has_dir;
	struct nl_damage damage;	/* if -EUCLEAN is returned */
	/* While judging. */
	struct nl_beat beat;
	u64	began;			/* the latest beginning of a change that storage has */
	u64	lacks;			/* the earliest place of a change that storage lacks */
};

int nl_judge(struct nl_judge *judge);

/* Binding: bind.c. */
enum nl_bind_op {
	NL_BIND_MAKE = 1,	/* make the object of @record's creation again, in staging */
	NL_BIND_STAGE,		/* move a directory that storage has to staging: @object */
	NL_BIND_ADD,		/* bind (@dir, @name) to @object, in place of what is there */
	NL_BIND_REMOVE,		/* remove (@dir, @name), if it is there */
};

/* A step of replay. A node with @born that storage lacks is found by its birth, any other by its handle. */
struct nl_binding {
	enum nl_bind_op op;
	const struct nl_record *record;	/* that says so; NULL for NL_BIND_STAGE */
	const struct nl_node *dir;	/* for NL_BIND_ADD and _REMOVE */
	const struct nl_node *object;	/* not for NL_BIND_REMOVE */
	struct nl_text name;		/* as @dir */
};

/* The last record that says what a name stands for. */
struct nl_name {
	u64	place;
	u32	hash;
	u32	dir;		/* index of the node, plus 1; 0: free */
	u32	object;		/* the same; 0: none */
	u8	second;		/* the record's second name */
	u8	op;		/* NL_BIND_ADD, _REMOVE */
};

struct nl_bind {
	/* Set by the caller. */
	const struct nl *nl;		/* with decisions */
	struct nl_record *record, *other;	/* scratch */
	struct nl_nodes nodes;
	struct nl_name *names;		/* zero at first */
	u32	nr_names;		/* a power of 2, more than there are names */
	/* Results. */
	struct nl_damage damage;	/* if -EUCLEAN is returned */
	/* While binding. */
	struct nl_cursor cursor;
	enum nl_bind_op phase;
	u32	node;			/* the next to be staged */
	bool	second;			/* the record's second name is next */
	bool	loaded;			/* @record holds the present record */
};

int nl_bind_start(struct nl_bind *bind);
int nl_bind_next(struct nl_bind *bind, struct nl_binding *binding);
bool nl_node_made(const struct nl_bind *bind, const struct nl_node *node);
int nl_bind_only_name(struct nl_bind *bind, const struct nl_node *node, const struct nl_node **dir,
		      struct nl_text *name);

#endif
