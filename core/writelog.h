/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The write log: writes to a block device, made durable by appending them to
 * persistent memory, and found again in order after a crash.
 *
 * This is the only code that writes a log device's metadata. There is no index
 * here: which entry holds the newest version of a sector is the caller's to
 * know; replay hands it all entries in order. Core functions don't sleep, don't
 * lock and don't allocate.
 *
 * A log is cut into generations, the unit of writeback and reclaim; those into
 * chunks; a chunk is filled with entries by one slot, which is whoever holds a
 * struct wl_slot. How a write becomes durable:
 *
 *	wl_slot_room()		how much of it fits? The rest goes into another chunk
 *	wl_begin()		place and range; a sequence number from the caller
 *	wl_write()		the data, in as many pieces as it has
 *	wl_end()		the entry's header
 *	  ... more entries of the same slot, if there are
 *	wl_commit()		two fences and one store; on return all are durable
 *
 * ORDER. Entries are ordered by (identifier of the generation, sequence number);
 * wl_order() packs both into one number. Replay and the caller's index must go
 * by the same order, or a crash changes what was read before. For that
 *   - the caller counts sequence numbers for each generation, from 0, with one
 *     atomic increment per entry; never one it doesn't commit;
 *   - a write that arrives after another has completed gets a later order: it
 *     looks up which generation is current AFTER it arrived, and leaves its
 *     slot's chunk if that belongs to an earlier one.
 * Two writes in flight at once may get either order.
 *
 * WHO EXCLUDES WHOM
 *   - wl_slot_*(), wl_begin(), wl_write(), wl_end(), wl_commit(): one thread at
 *     a time for each slot; slots don't exclude each other in any way.
 *   - wl_slot_take(): the chunk is given to no other slot in this life of the
 *     generation (an atomic count of chunks handed out will do).
 *   - wl_gen_open(), wl_gen_seal(), wl_gen_free(): one at a time in the whole
 *     log (the caller's lock), beside any slot's functions. While one runs for
 *     a generation, no slot holds a chunk of that generation.
 *   - wl_bind(), wl_unbind(): one at a time; beside everything else.
 *   - wl_chunk_read(), wl_entry_read(), wl_entry_verify(): no slot holds that
 *     chunk, and the generation stays as it is; of an entry that wl_end() gave,
 *     only that wl_commit() has returned.
 *   - wl_cursor_*(), wl_check(): nothing changes the log meanwhile.
 *   - the rest read only what doesn't change.
 *
 * LIFE OF A GENERATION
 *	free	--wl_gen_open()-->	open: slots take its chunks
 *	open	--wl_gen_seal()-->	sealed: all slots have left, nothing is added
 *	sealed	(the caller writes back; the origin's cache is flushed)
 *		--wl_gen_free()-->	free: none of its entries will be replayed
 * Generations are freed oldest first, each durably before the next: else an
 * older version could be replayed over a newer one that is on the origin only.
 * After a crash, generations found open are as good as sealed: nothing is
 * appended to them, and they may be freed as they are.
 */
#ifndef FOREBAY_CORE_WRITELOG_H
#define FOREBAY_CORE_WRITELOG_H

#include "writelog_format.h"

enum wl_gen_state { WL_GEN_FREE = 0, WL_GEN_OPEN = 1, WL_GEN_SEALED = 2 };

enum wl_op {
	WL_OP_WRITE = 1,
	WL_OP_DISCARD = 2,	/* these two have no data, whatever their length */
	WL_OP_ZEROES = 3,
};

/* An open log. Filled in by wl_open(); read-only to callers. */
struct wl {
	u8	*base;
	u64	size;
	bool	flush_caches;	/* the persistence domain is the memory controller */
	bool	data_crc;	/* entries carry a checksum of their data */
	u32	nr_gens;
	u32	nr_chunks;	/* of each generation */
	u32	chunk_size;
	u32	align;		/* of data whose length is a multiple of it */
	u32	seed;		/* of checksums, from the UUID */
	struct wl_gen_onmedia *gens;
	u8	*data;
	struct wl_super_onmedia super;	/* the copy that counts */
	u32	repaired;		/* bit i: copy i was bad and has been rewritten */
};

/* 0 in any number: chosen from the size of the device. */
struct wl_format_options {
	u8	uuid[WL_UUID_SIZE];
	u32	nr_gens;
	u32	nr_chunks;	/* of each generation */
	u32	chunk_size;
	u32	align;		/* a power of 2, WL_DATA_ALIGN to WL_PAGE_SIZE */
	bool	data_crc;
};

struct wl_gen_info {
	enum wl_gen_state state;
	u64	id;		/* of a free one: of its last life; 0: never used */
	u64	entries;	/* if sealed */
};

/* One entry, as replay finds it and as wl_end() has made it. */
struct wl_entry {
	u64	order;		/* wl_order() */
	u64	sector;
	u64	nr_sectors;
	u64	data;		/* byte offset from wl->base; no data: 0 */
	enum wl_op op;
	u32	data_crc;
	u32	gen;		/* where its header is: number of the generation, */
	u32	chunk;		/* of the chunk within it, */
	u32	index;		/* and of the entry within that */
};

/* A writer's place in the log. Zeroed: holds no chunk. */
struct wl_slot {
	u64	id;		/* of the generation; 0: holds no chunk */
	u32	gen;
	u32	chunk;
	u32	fill;		/* entries made so far, committed or not */
	u32	head;		/* where the next data may begin, in the chunk */
	u32	written;	/* of the data of the entry being made */
	struct wl_entry entry;	/* the one being made */
};

/* Flags of wl_open(). */
#define WL_OPEN_READ_ONLY	1	/* write nothing, don't repair a superblock copy */
#define WL_OPEN_FLUSH_CACHES	2	/* sets wl->flush_caches */

/* Least size of a device that wl_format() takes, in bytes. */
#define WL_MIN_SIZE		(1u << 20)

/* What wl_open() may say; each has a sentence in wl_strerror(). */
enum wl_error {
	WL_OK = 0,
	WL_E_TOO_SMALL,		/* device is below WL_MIN_SIZE */
	WL_E_NOT_FORMATTED,	/* both copies are blank (all zero) */
	WL_E_PAGESTORE,		/* a cache of the forebay file system */
	WL_E_FOREIGN,		/* a superblock page holds something that is not ours */
	WL_E_CORRUPT,		/* ours, but no copy is whole; also: a format was cut short */
	WL_E_VERSION,		/* made by a newer Forebay, or with features unknown here */
	WL_E_GEOMETRY,		/* layout reaches beyond the device or overlaps */
};

/* The superblock: writelog_super.c. */
enum wl_error wl_format(void *base, u64 size, const struct wl_format_options *opt);
enum wl_error wl_open(struct wl *wl, void *base, u64 size, u32 flags);
const char *wl_strerror(enum wl_error err);
/* One copy as it is on the device; false: not whole. For core/ itself. */
bool wl_super_read(void *base, u32 copy, struct wl_super_onmedia *s);

/* Binding to an origin; durable on return. */
bool wl_is_bound(const struct wl *wl);
bool wl_bound_to(const struct wl *wl, const u8 origin_id[WL_ORIGIN_ID_SIZE]);
void wl_bind(struct wl *wl, u64 origin_sectors, const u8 origin_id[WL_ORIGIN_ID_SIZE]);
void wl_unbind(struct wl *wl);

/* Generations; all durable on return: writelog_gen.c. */
int wl_gen_read(const struct wl *wl, u32 gen, struct wl_gen_info *info);
u64 wl_next_id(const struct wl *wl);
int wl_gen_open(struct wl *wl, u32 gen, u64 id);
void wl_gen_seal(struct wl *wl, u32 gen, u64 entries);
void wl_gen_free(struct wl *wl, u32 gen);

/* Appending: writelog_append.c. */
static inline u64 wl_order(u64 id, u32 seq)
{
	return id << WL_ID_SHIFT | seq;
}

static inline u64 wl_order_id(u64 order)
{
	return order >> WL_ID_SHIFT;
}

void wl_slot_take(struct wl_slot *slot, u32 gen, u64 id, u32 chunk);
u32 wl_slot_room(const struct wl *wl, const struct wl_slot *slot, u32 want);
bool wl_slot_full(const struct wl *wl, const struct wl_slot *slot);
void wl_begin(const struct wl *wl, struct wl_slot *slot, enum wl_op op, u64 sector,
	      u64 nr_sectors, u32 seq);
void wl_write(const struct wl *wl, struct wl_slot *slot, const void *src, u32 len);
void wl_end(const struct wl *wl, struct wl_slot *slot, struct wl_entry *entry);
void wl_commit(const struct wl *wl, struct wl_slot *slot);

/* Reading: writelog_replay.c. */
static inline void *wl_entry_data(const struct wl *wl, const struct wl_entry *entry)
{
	return wl->base + entry->data;
}

/* Bytes of PMem that the entry's data take; 0 for a discard. */
static inline u32 wl_entry_len(const struct wl_entry *entry)
{
	return entry->op == WL_OP_WRITE ? entry->nr_sectors << WL_SECTOR_SHIFT : 0;
}

int wl_chunk_read(const struct wl *wl, u32 gen, u64 id, u32 chunk);
int wl_entry_read(const struct wl *wl, u32 gen, u64 id, u32 chunk, u32 index,
		  struct wl_entry *entry);
bool wl_entry_verify(const struct wl *wl, const struct wl_entry *entry);

/*
 * What is damaged. Of WL_BAD_DATA the range is known, so everything else is
 * independent of it: a caller that goes on makes those sectors unreadable until
 * a later entry covers them. The others have lost entries whose sectors nobody
 * knows. To go on then and replay all that is whole is never worse than not to:
 * where a lost entry was the newest, the truth is gone either way, and what an
 * older entry holds is newer than the origin; everywhere else it is the truth.
 */
enum wl_damage_kind {
	WL_BAD_SUPER,		/* only wl_check(); @gen is the number of the copy */
	WL_BAD_GENERATION,	/* its word: whether it holds anything is not known */
	WL_BAD_SUM,		/* a sealed one: its chunks don't hold what it was sealed with */
	WL_BAD_CHUNK,		/* its word: how many entries it holds is not known */
	WL_BAD_ENTRY,		/* the header: which sectors it wrote is not known */
	WL_BAD_DATA,		/* the checksum of the data: the sectors are known */
};

struct wl_damage {
	enum wl_damage_kind kind;
	const char *why;	/* the rest of a sentence: "is damaged" */
	u64	id;		/* of the generation; 0: not known */
	u32	gen;
	u32	chunk;		/* from WL_BAD_CHUNK on */
	u32	index;		/* from WL_BAD_ENTRY on */
};

/* A chunk being replayed; scratch memory of a cursor. */
struct wl_stream {
	u64	order;		/* of the next entry */
	u32	chunk;
	u32	next;		/* index of the next entry */
	u32	fill;
	u32	data_end;	/* of the data of the entries before, in the chunk */
};

/* Where a replay is. Nothing in it is the caller's business but @damage. */
struct wl_cursor {
	const struct wl *wl;
	u32	flags;
	struct wl_stream *streams;	/* a heap by order */
	u32	nr_streams;
	struct wl_stream loading;	/* not in the heap yet, or empty */
	u32	gens_verified;
	u32	gen;			/* being replayed */
	u64	id;			/* its identifier; 0: none yet */
	u32	chunks_seen;		/* of the generation */
	u64	sum;			/* of the entries that its chunks hold */
	u64	sealed_with;		/* so many; only if @sum_matters */
	bool	sum_matters;
	u64	order;			/* of the last entry returned */
	struct wl_damage damage;	/* after -EUCLEAN */
};

/* Flags of wl_cursor_start(). */
#define WL_VERIFY_DATA		1	/* where the log has checksums of data */

void wl_cursor_start(struct wl_cursor *cursor, const struct wl *wl, struct wl_stream *streams,
		     u32 flags);
int wl_cursor_next(struct wl_cursor *cursor, struct wl_entry *entry);

/*
 * Check: reads everything, calls @report for every inconsistency; returns how
 * many there were. @streams has room for wl->nr_chunks.
 */
typedef void (*wl_report_fn)(void *arg, const struct wl_damage *damage);
u64 wl_check(const struct wl *wl, struct wl_stream *streams, wl_report_fn report, void *arg);

#endif
