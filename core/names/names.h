/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The name log: changes of names and attributes, durable in persistent memory before the lower file system
 * has them on storage. They are found again after a crash.
 *
 * This is the only code that writes a name log's region. Core functions don't sleep, lock or allocate:
 * the caller does all allocation and locking. A change goes through these steps:
 *
 *	nl_reserve()	space for the record, before the change is made below; none: the next sync goes
 *			below. A change that failed below gives the space back by nl_cancel().
 *	nl_take()	the record's place, after the change was made below, under the locks that order
 *			the change
 *	nl_write()	the record
 *	nl_done()	the record is whole
 *	nl_commit()	a sync call: all records before a place are durable on return
 *	nl_trim()	a lower sync that began after a place was taken has returned
 *
 * After a crash: nl_open(), the cursor of read.c, judge.c, nl_decide(), bind.c, and nl_empty(), which
 * begins the next life of the log. nl_reserve() finds no space before nl_empty().
 *
 * EXCLUSION, provided by the caller
 *   - nl_reserve(), nl_cancel(), nl_take(), nl_done(), nl_next(), nl_settle(): the place lock, one lock
 *     around each. They touch no persistent memory.
 *   - nl_write(): none. Any number run at once, each for its own place.
 *   - nl_commit(), nl_trim(), nl_beat(): the commit lock, one of them at a time; concurrent with all
 *     of the above.
 *   - nl_decide(), nl_empty(), cursors, nl_check(): nothing else uses the log meanwhile.
 */
#ifndef FOREBAY_CORE_NAMES_NAMES_H
#define FOREBAY_CORE_NAMES_NAMES_H

#include "format.h"

/* A place in the log from reservation to nl_done(). The caller's memory. */
struct nl_place {
	u64	began;		/* set by nl_reserve(): the log's next place */
	u32	reserved;	/* lines; 0: has none */
	u64	start;		/* set by nl_take() */
	u64	end;		/* and the next record's; what nl_commit() takes */
	struct nl_place *prev, *next;	/* of those taken and not done, in their order */
};

/* An open log. Set by nl_open(); read-only to callers. */
struct nl {
	u8	*base;
	bool	flush_caches;	/* the persistence domain is the memory controller */
	u64	nr_lines;
	u32	seed;		/* of checksums, from the UUID */
	struct nl_words_onmedia *words;
	struct nl_decisions_onmedia *decisions;
	u8	*bits;		/* of the decisions */
	u8	*ring;
	u32	bad;		/* NL_BAD_*_WORD, NL_BAD_DECISIONS: found at nl_open() */
	u32	repaired;	/* bit i: header copy i was damaged and has been rewritten */
	struct nl_header_onmedia header;	/* the copy that counts */
	u64	decided;	/* decisions cover the places before it; 0: there are none */

	/* The commit lock. */
	u64	trim;		/* durable; nl_reserve() reads it, too */
	u64	commit;		/* durable */
	u64	flushed;	/* lines before it have been flushed, and fenced */
	u64	beat;		/* number of the newest heartbeat */

	/* The place lock. */
	u64	next;		/* the place that nl_take() gives next */
	u64	reserved;	/* lines reserved and not taken */
	u64	whole;		/* all records before it are whole; nl_commit() reads it, too */
	u64	limit;		/* a commit can't pass it: an opaque record isn't settled; the same */
	u64	opaque;		/* the last opaque record that isn't settled; 0: there is none */
	struct nl_place *oldest, *newest;	/* of the places that are taken and not done */
};

struct nl_format_options {
	u8	uuid[NL_UUID_SIZE];	/* new at each format */
	u64	first;			/* first place; 0: 1 */
};

/* Flags of nl_open(). */
#define NL_OPEN_READ_ONLY	1	/* write nothing, don't repair a header copy */
#define NL_OPEN_FLUSH_CACHES	2	/* sets nl->flush_caches */

/* Minimum size of a region for nl_format(), in bytes. */
#define NL_MIN_SIZE		(64u << 10)

/* Results of nl_open(); nl_strerror() has a sentence for each. */
enum nl_error {
	NL_OK = 0,
	NL_E_TOO_SMALL,		/* region is below NL_MIN_SIZE */
	NL_E_NOT_FORMATTED,	/* both copies are blank (all zero) */
	NL_E_FOREIGN,		/* a header page holds foreign data */
	NL_E_CORRUPT,		/* ours, but no copy is valid; also after an interrupted format */
	NL_E_VERSION,		/* made by a newer Forebay */
	NL_E_GEOMETRY,		/* layout reaches beyond the region or overlaps */
};

enum nl_error nl_format(void *base, u64 size, const struct nl_format_options *opt);
enum nl_error nl_open(struct nl *nl, void *base, u64 size, u32 flags);
const char *nl_strerror(enum nl_error err);
/* Reads one copy as it is in the region. False: not valid. For core/ itself. */
bool nl_header_read(void *base, u32 copy, struct nl_header_onmedia *h);

/* An object's identity. Handle and time of birth are the same in all records of the object. */
struct nl_identity {
	u64	birth;
	s64	btime;
	u8	type;		/* of the handle */
	u8	len;
	u8	handle[NL_HANDLE_MAX];
};

/* A directory's change: its counter before it, its ctime after it. */
struct nl_count {
	u64	before;
	s64	ctime;
};

struct nl_dir {
	struct nl_count count;
	struct nl_identity id;
};

struct nl_attr {
	u32	mask;		/* NL_ATTR_* */
	u32	mode, uid, gid, rdev, iflags;
	s64	atime, mtime;
};

struct nl_text {
	const u8 *bytes;
	u32	len;
};

/* A change, as a writer describes it and a reader finds it. Fields that @has leaves out don't count. */
struct nl_change {
	enum nl_kind kind;
	u32	flags;		/* NL_NOREPLACE, NL_EXCHANGE, NL_SAME_CTIME(), NL_STEPPED */
	u32	has;		/* bit NL_F_*: the field is there */
	struct nl_dir dir, dir2;
	struct nl_identity object, object2, needs;
	struct nl_count self, self2;
	struct nl_attr attr;
	struct nl_text name, name2, target, xattr, value;
};

/* A record that was read. Texts of @change point into @bytes. */
struct nl_record {
	u64	start, end;	/* its place, and the next record's */
	u64	began;
	struct nl_change change;
	u8	bytes[NL_MAX_RECORD];
};

/* Records: record.c. */
int nl_change_lines(const struct nl_change *change);
int nl_read(const struct nl *nl, u64 place, struct nl_record *record);

/* Appending: append.c. */
int nl_reserve(struct nl *nl, struct nl_place *place, u32 lines);
void nl_cancel(struct nl *nl, struct nl_place *place);
void nl_take(struct nl *nl, struct nl_place *place, u32 lines, bool opaque);
void nl_write(const struct nl *nl, const struct nl_place *place, const struct nl_change *change);
void nl_done(struct nl *nl, struct nl_place *place);
u64 nl_next(const struct nl *nl);
void nl_settle(struct nl *nl, u64 end);

/* Commit and heartbeat: commit.c. Both durable on return. */
int nl_commit(struct nl *nl, u64 end);
void nl_beat(struct nl *nl, s64 time, s64 until, s64 back);

struct nl_beat {
	u64	seq;		/* 0: there is none */
	s64	time, until, back;
	u64	durable, commit;
};

void nl_beat_read(const struct nl *nl, struct nl_beat *beat);

/* Trimming: trim.c. Durable on return. */
int nl_trim(struct nl *nl, u64 end);
int nl_empty(struct nl *nl);

/* Reading: read.c. */
enum nl_damage_kind {
	NL_BAD_HEADER = 1,		/* only nl_check(); @place is the number of the copy */
	NL_BAD_TRIM_WORD = 2,
	NL_BAD_COMMIT_WORD = 4,
	NL_BAD_DECIDED_WORD = 8,
	NL_BAD_DECISIONS = 16,	/* the bits, or what they cover */
	NL_BAD_RECORD = 32,	/* a committed record, and the place is known */
	NL_BAD_COMMIT = 64,	/* the commit word is older than a heartbeat knows */
	NL_BAD_TAIL = 128,	/* the tail ends before a place that a heartbeat knows as durable */
};

struct nl_damage {
	enum nl_damage_kind kind;
	u64	place;
	const char *why;	/* the rest of a sentence: "is damaged" */
};

/* Position of a reader. Callers use only @place, @committed and @damage. */
struct nl_cursor {
	const struct nl *nl;
	u64	place;			/* the next record's; at the end: where the tail ended */
	u64	durable;		/* the newest heartbeat's */
	bool	committed;		/* the record just returned is committed */
	bool	ended;
	struct nl_damage damage;	/* after -EUCLEAN */
};

void nl_cursor_start(struct nl_cursor *cursor, const struct nl *nl);
int nl_cursor_next(struct nl_cursor *cursor, struct nl_record *record);

/* Decisions: decide.c. */
u64 nl_bits_size(const struct nl *nl);
void nl_bit_set(const struct nl *nl, u8 *bits, u64 place);
bool nl_bit(const struct nl *nl, const u8 *bits, u64 place);
int nl_decide(struct nl *nl, const u8 *bits, u64 end);
int nl_on_storage(const struct nl *nl, u64 place);

/*
 * Check: reads everything, calls @report for every inconsistency, and returns their number. @scratch is
 * overwritten.
 */
typedef void (*nl_report_fn)(void *arg, const struct nl_damage *damage);
u64 nl_check(const struct nl *nl, struct nl_record *scratch, nl_report_fn report, void *arg);

#endif
