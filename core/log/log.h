/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The write log: writes to a block device, made durable by appending them to persistent memory, and
 * found again in order after a crash.
 *
 * This is the only code that writes a log device's metadata. There is no index here: the caller knows
 * which entry holds the newest version of a sector, and replay returns all entries in order. Core
 * functions don't sleep, lock or allocate, except where Context says otherwise.
 *
 * A log consists of generations, the unit of writeback and reclaim. A generation consists of chunks. A
 * chunk is filled with entries by one slot: the thread that holds a struct wl_slot. A write becomes
 * durable in these steps:
 *
 *	wl_slot_space()		how much data fits; the rest goes into another chunk
 *	wl_begin()		op and range; a sequence number from the caller
 *	wl_write()		the data, in one or more calls
 *	wl_end()		the entry's header
 *	  ... more entries of the same slot, if there are any
 *	wl_commit()		two fences and one store; on return all are durable
 *
 * ORDER. Entries are ordered by (identifier of the generation, sequence number); wl_order() packs both
 * into one number. Replay and the caller's index must use the same order; otherwise a crash changes
 * what was read before. Therefore:
 *   - The caller counts sequence numbers for each generation, from 0, with one atomic increment per
 *     entry. Each number taken is committed.
 *   - A write that arrives after another has completed gets a later order. So the writer looks up the
 *     current generation AFTER the write arrived, and leaves its slot's chunk if that belongs to an
 *     earlier generation.
 * Two concurrent writes may get either order.
 *
 * EXCLUSION, provided by the caller
 *   - wl_slot_*(), wl_begin(), wl_write(), wl_end(), wl_commit(): one thread at
 *     a time for each slot; slots don't exclude each other in any way.
 *   - wl_slot_take(): the chunk is given to no other slot in this life of the
 *     generation (an atomic count of chunks handed out will do).
 *   - wl_gen_open(), wl_gen_seal(), wl_gen_free(): one at a time in the whole
 *     log (the caller's lock), concurrent with any slot's functions. While one
 *     runs for a generation, no slot holds a chunk of that generation.
 *   - wl_bind(), wl_unbind(), wl_fingerprint_set(): one at a time; concurrent
 *     with all other functions.
 *   - wl_open() with WL_OPEN_READ_ONLY, on another struct wl: concurrent with all.
 *   - wl_chunk_read(), wl_entry_read(), wl_entry_verify(): no slot holds that
 *     chunk, and the generation stays as it is; for an entry from wl_end(),
 *     it suffices that wl_commit() has returned.
 *   - wl_cursor_*(), wl_check(): nothing changes the log meanwhile.
 *   - the other functions read only what doesn't change.
 *
 * LIFE OF A GENERATION
 *	free	--wl_gen_open()-->	open: slots take its chunks
 *	open	--wl_gen_seal()-->	sealed: all slots have left, nothing is added
 *	sealed	(the caller writes back; the origin's cache is flushed)
 *		--wl_gen_free()-->	free: none of its entries will be replayed
 * Generations are freed oldest first, each durably before the next. Otherwise replay could write an
 * older version over a newer one that only the origin has. After a crash, open generations count as
 * sealed: nothing is appended to them, and they may be freed as they are.
 */
#ifndef FOREBAY_CORE_LOG_LOG_H
#define FOREBAY_CORE_LOG_LOG_H

#include "format.h"

enum wl_gen_state { WL_GEN_FREE = 0, WL_GEN_OPEN = 1, WL_GEN_SEALED = 2 };

enum wl_op {
	WL_OP_WRITE = 1,
	WL_OP_DISCARD = 2,	/* these two have no data, whatever their length */
	WL_OP_ZEROES = 3,
};

/* An open log. Set by wl_open(); read-only to callers. */
struct wl {
	u8	*base;
	u64	size;
	bool	flush_caches;	/* the persistence domain is the memory controller */
	bool	data_crc;	/* entries carry a checksum of their data */
	u32	nr_gens;
	u32	nr_chunks;	/* of each generation */
	u32	chunk_size;
	u32	align;		/* alignment of data whose length is a multiple of it */
	u32	seed;		/* of checksums, from the UUID */
	struct wl_gen_onmedia *gens;
	u8	*data;
	struct wl_super_onmedia super;	/* the copy that counts */
	u32	repaired;		/* bit i: copy i was damaged and has been rewritten */
};

/* Fields of 0 are chosen from the size of the device. */
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
	u64	id;		/* of a free generation: of its last life; 0: never used */
	u64	entries;	/* if sealed */
};

/* One entry, as wl_end() has made it and as replay finds it. */
struct wl_entry {
	u64	order;		/* wl_order() */
	u64	sector;
	u64	nr_sectors;
	u64	data;		/* byte offset from wl->base; no data: 0 */
	enum wl_op op;
	u32	data_crc;
	u32	gen;		/* location of the header: number of the generation, */
	u32	chunk;		/* of the chunk within it, */
	u32	index;		/* and of the entry within that */
};

/* A writer's position in the log. Zeroed: holds no chunk. */
struct wl_slot {
	u64	id;		/* of the generation; 0: holds no chunk */
	u32	gen;
	u32	chunk;
	u32	fill;		/* entries made so far, committed or not */
	u32	head;		/* offset in the chunk where the next data may begin */
	u32	written;	/* bytes written of the present entry's data */
	struct wl_entry entry;	/* the present entry */
};

/* Flags of wl_open(). */
#define WL_OPEN_READ_ONLY	1	/* write nothing, don't repair a superblock copy */
#define WL_OPEN_FLUSH_CACHES	2	/* sets wl->flush_caches */

/* Minimum size of a device for wl_format(), in bytes. */
#define WL_MIN_SIZE		(1u << 20)

/* Results of wl_open(); wl_strerror() has a sentence for each. */
enum wl_error {
	WL_OK = 0,
	WL_E_TOO_SMALL,		/* device is below WL_MIN_SIZE */
	WL_E_NOT_FORMATTED,	/* both copies are blank (all zero) */
	WL_E_PAGESTORE,		/* a cache of the forebay file system */
	WL_E_FOREIGN,		/* a superblock page holds foreign data */
	WL_E_CORRUPT,		/* ours, but no copy is valid; also after an interrupted format */
	WL_E_VERSION,		/* made by a newer Forebay, or with features unknown here */
	WL_E_GEOMETRY,		/* layout reaches beyond the device or overlaps */
};

/* The superblock: super.c. */
enum wl_error wl_format_fits(u64 size, const struct wl_format_options *opt);
enum wl_error wl_format(void *base, u64 size, const struct wl_format_options *opt);
enum wl_error wl_open(struct wl *wl, void *base, u64 size, u32 flags);
const char *wl_strerror(enum wl_error err);
/* Reads one copy as it is on the device. False: not valid. For core/ itself. */
bool wl_super_read(void *base, u32 copy, struct wl_super_onmedia *s);

/* Binding to an origin; durable on return. */
bool wl_is_bound(const struct wl *wl);
bool wl_bound_to(const struct wl *wl, const u8 origin_id[WL_ORIGIN_ID_SIZE]);
void wl_bind(struct wl *wl, u64 origin_sectors, const u8 origin_id[WL_ORIGIN_ID_SIZE]);
void wl_unbind(struct wl *wl);

/*
 * The fingerprint of the origin's first blocks, while the log holds writes to the origin: only the
 * log's user may change these blocks then. It is a checksum of the blocks' checksums, or one of these
 * two.
 */
#define WL_FINGERPRINT_NONE	0u	/* nothing is known */
#define WL_FINGERPRINT_CHANGING	1u	/* the log's user is changing them, or has changed them */
#define WL_FINGERPRINT_BLOCKS	256u	/* at most, of WL_PAGE_SIZE */

u32 wl_fingerprint(const struct wl *wl);
void wl_fingerprint_set(struct wl *wl, u32 fingerprint);
u32 wl_fingerprint_blocks(u64 origin_sectors);
__le32 wl_fingerprint_block(const struct wl *wl, const void *block);
u32 wl_fingerprint_of(const struct wl *wl, const __le32 *blocks, u32 nr_blocks);

/* Generations: gen.c. All durable on return. */
int wl_gen_read(const struct wl *wl, u32 gen, struct wl_gen_info *info);
u64 wl_next_id(const struct wl *wl);
bool wl_gen_live(const struct wl *wl, u32 gen, struct wl_gen_info *info);
int wl_gen_open(struct wl *wl, u32 gen, u64 id);
void wl_gen_seal(struct wl *wl, u32 gen, u64 id, u64 entries);
void wl_gen_free(struct wl *wl, u32 gen);

/* Appending: append.c. */
static inline u64 wl_order(u64 id, u32 seq)
{
	return id << WL_ID_SHIFT | seq;
}

static inline u64 wl_order_id(u64 order)
{
	return order >> WL_ID_SHIFT;
}

void wl_slot_take(struct wl_slot *slot, u32 gen, u64 id, u32 chunk);
u32 wl_slot_space(const struct wl *wl, const struct wl_slot *slot, u32 want);
bool wl_slot_full(const struct wl *wl, const struct wl_slot *slot);
void wl_begin(const struct wl *wl, struct wl_slot *slot, enum wl_op op, u64 sector,
	      u64 nr_sectors, u32 seq);
void wl_write(const struct wl *wl, struct wl_slot *slot, const void *src, u32 len);
void wl_end(const struct wl *wl, struct wl_slot *slot, struct wl_entry *entry);
void wl_commit(const struct wl *wl, struct wl_slot *slot);

/* Reading: replay.c. */
static inline void *wl_entry_data(const struct wl *wl, const struct wl_entry *entry)
{
	return wl->base + entry->data;
}

/* Bytes of PMem of the entry's data; 0 for a discard. */
static inline u32 wl_entry_len(const struct wl_entry *entry)
{
	return entry->op == WL_OP_WRITE ? entry->nr_sectors << WL_SECTOR_SHIFT : 0;
}

int wl_chunk_read(const struct wl *wl, u32 gen, u64 id, u32 chunk);
int wl_entry_read(const struct wl *wl, u32 gen, u64 id, u32 chunk, u32 index,
		  struct wl_entry *entry);
bool wl_entry_verify(const struct wl *wl, const struct wl_entry *entry);

/*
 * Kinds of damage. WL_BAD_DATA has a known range and affects no other sectors. A caller that continues
 * makes those sectors unreadable until a later entry covers them. The other kinds have lost entries of
 * unknown sectors.
 *
 * To continue and replay all valid entries is never worse than to stop. Where a lost entry was the
 * newest, the newest version is gone in either case, and an older entry is still newer than the origin.
 * All other sectors are correct.
 */
enum wl_damage_kind {
	WL_BAD_SUPER,		/* only wl_check(); @gen is the number of the copy */
	WL_BAD_GENERATION,	/* its word: whether it holds entries is unknown */
	WL_BAD_SUM,		/* a sealed one: the number of entries differs from the number at sealing */
	WL_BAD_CHUNK,		/* its word: the number of entries is unknown */
	WL_BAD_ENTRY,		/* the header: the sectors are unknown */
	WL_BAD_DATA,		/* the checksum of the data: the sectors are known */
};

struct wl_damage {
	enum wl_damage_kind kind;
	const char *why;	/* the rest of a sentence: "is damaged" */
	u64	id;		/* of the generation; 0: unknown */
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
	u32	data_end;	/* in the chunk, end of the data of earlier entries */
};

/* Position of a replay. Callers use only @damage. */
struct wl_cursor {
	const struct wl *wl;
	u32	flags;
	struct wl_stream *streams;	/* a heap by order */
	u32	nr_streams;
	struct wl_stream loading;	/* read but not yet in the heap; or empty */
	u32	gens_verified;
	u32	gen;			/* being replayed */
	u64	id;			/* its identifier; 0: none yet */
	u32	chunks_seen;		/* of the generation */
	u64	sum;			/* entries in the chunks seen so far */
	u64	sealed_with;		/* number of entries at sealing; valid if @sum_matters */
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
 * Check: reads everything, calls @report for every inconsistency, and returns their number. @streams is
 * an array of wl->nr_chunks.
 */
typedef void (*wl_report_fn)(void *arg, const struct wl_damage *damage);
u64 wl_check(const struct wl *wl, struct wl_stream *streams, wl_report_fn report, void *arg);

#endif
