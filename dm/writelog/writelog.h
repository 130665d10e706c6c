/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * dm-forebay-writelog.ko: a write cache below any file system. Writes are appended to a log in
 * persistent memory and complete there. Many writers append at the same time.
 *
 * The way of a write:
 *	map.c: dwl_map()		entry from device-mapper
 *	  space.c space.h		waits while the log has little space
 *	  append.c: dwl_append()	takes a slot and space in the log, copies, commits
 *	    slot.c			which writer appends to which chunk; opens generations
 *	    core/log/append.c		the only code that writes the log
 *	  index.c			where the newest version of each block is
 *	  direct.c			in cleaner mode: past the log
 * The way of its data to the origin:
 *	writeback.c			one generation after the other, the oldest first
 *	  extents.c			the extents of a generation that are still the newest, sorted
 *	  neighbours.c			blocks of younger generations that lie beside them
 *	  aside.c			sets blocks aside that the origin refuses
 *	  origin.c			large bios to the origin
 *	  flush.c			flushes of the origin
 *	  fingerprint.c			the fingerprint of the origin's first blocks, kept in the log
 *
 * The other files:
 *	target.c params.c		constructor, table, limits, messages
 *	status.c			status line, counters, latencies
 *	device.c			claims and maps the log device, opens the log
 *	state.c				suspend, resume, cleaner mode
 *	replay.c			fills the index after a restart
 *	read.c				copies logged blocks, remaps the others to the origin
 *	trace.c				tracepoints
 *
 * No lock is shared by all writers between a bio's arrival and its completion. A writer takes one slot,
 * the one of its CPU if that slot is free, and the locks of the regions that it writes to. Writers
 * share a lock only when a generation is full, or the log nearly so.
 *
 * ORDER: two writes to one block are ordered by (identifier of the generation, sequence number). A
 * writer takes its order while it holds its slot. The index and replay let the later order win,
 * whichever arrives first.
 *
 * A GENERATION is freed in this order: all slots have left it; it is sealed; its newest blocks are
 * written; the origin is flushed; these blocks are removed from the index; readers that may have found
 * them there have finished (srcu); it is freed in PMem. Its bytes don't change before that, so a reader
 * that found a block in the index under srcu may read it.
 *
 * LOCK ORDER, outermost first:
 *	w->aside.lock			(mutex) the worker, while it holds all slots
 *	slot->lock			(mutex) one writer
 *	w->gen_lock			(mutex) generations: open, seal, free, the lists
 *	region->lock, then the lock of its bucket
 *	w->space.lock
 * srcu is entered outside of region->lock, and is never held while waiting.
 */
#ifndef FOREBAY_DM_WRITELOG_H
#define FOREBAY_DM_WRITELOG_H

#include <linux/bio.h>
#include <linux/bitmap.h>
#include <linux/blkdev.h>
#include <linux/completion.h>
#include <linux/device-mapper.h>
#include <linux/mempool.h>
#include <linux/mutex.h>
#include <linux/percpu.h>
#include <linux/spinlock.h>
#include <linux/srcu.h>
#include <linux/wait.h>

#include "../../core/pm/ranges.h"
#include "../../core/log/log.h"
#include "../latency.h"

#define DM_MSG_PREFIX "forebay-wlog"

/* A region is this many blocks of the origin: the unit of the index's locks. */
#define DWL_REGION_SHIFT	5
#define DWL_REGION_BLOCKS	(1u << DWL_REGION_SHIFT)
/* Sectors of a segment, the unit of appending: device-mapper splits bios at its multiples. */
#define DWL_SEGMENT		2048u
#define DWL_SEGMENT_REGIONS	(DWL_SEGMENT / DWL_REGION_BLOCKS)
/* Maximum sectors of a discard. */
#define DWL_MAX_DISCARD		((u32)SZ_1G >> SECTOR_SHIFT)

/*
 * Where the newest version of a block is; 0: on the origin.
 *	bits 0-31	position in the log, in units of WL_DATA_ALIGN; for a
 *			block of zeros, of the chunk with its entry
 *	bits 32-59	sequence number
 *	bit 61		discarded while a writer may still store an older version:
 *			the log has no version, and bits 0-60 are the low bits of the
 *			discard's order; cleared when no such writer is left
 *	bit 62		the data was damaged: reading it fails; the position is unset
 *	bit 63		a block of zeros
 */
#define DWL_SEQ_SHIFT		32
#define DWL_DISCARDED		(1ULL << 61)
#define DWL_DISCARD_ORDER	(DWL_DISCARDED - 1)
#define DWL_POISON		(1ULL << 62)
#define DWL_ZERO		(1ULL << 63)

struct dwl_region {
	struct hlist_node node;
	u64 number;
	spinlock_t lock;		/* protects the fields below */
	u32 refs;			/* writers that will store to this region */
	u32 live;			/* blocks with a value other than 0 */
	bool dead;			/* being removed from its bucket */
	u8 discarded;			/* number of blocks with DWL_DISCARDED */
	mempool_t *pool;		/* where the region's memory is returned to */
	struct rcu_head rcu;
	u64 block[DWL_REGION_BLOCKS];
};

enum dwl_gen_state { DWL_GEN_FREE, DWL_GEN_CURRENT, DWL_GEN_CLOSED };

/* A generation. Its number is its index in w->gens. */
struct dwl_gen {
	u64 id;
	enum dwl_gen_state state;
	bool sealed;
	bool written;			/* to the origin; durable after the next flush */
	u64 along;			/* bytes of it that were written as neighbours: statistics */
	struct list_head list;		/* in w->free_gens or w->closed_gens, the oldest first */
	/* Changed by each writer, so in a cache line of their own. */
	atomic_t seq ____cacheline_aligned_in_smp;	/* entries so far; after replay: entries found */
	atomic_t chunks;		/* chunks handed out; may exceed the number of chunks */
} ____cacheline_aligned_in_smp;

struct dwl_slot {
	struct mutex lock;		/* held by the writer that uses the slot */
	struct wl_slot tail;
} ____cacheline_aligned_in_smp;

/* Sectors of a generation that must be written to the origin. */
struct dwl_extent {
	u64 sector;
	u64 value;			/* value of the first block in the index */
	u32 sectors;
};

/* How far a generation has been scanned. */
struct dwl_cursor {
	u32 chunk, index;
	u32 entries;			/* in the chunks before @chunk */
};

enum dwl_counter {
	DWL_READS, DWL_READ_SECTORS, DWL_READ_HIT_SECTORS, DWL_LOST_READS,
	DWL_WRITES, DWL_WRITE_SECTORS, DWL_ENTRIES, DWL_DIRECT_WRITES,
	DWL_DISCARDS, DWL_ZEROES,
	DWL_SLOT_WAITS, DWL_SPACE_WAITS, DWL_FULL_WAITS,
	DWL_GENERATIONS, DWL_WRITEBACK_SECTORS, DWL_WRITEBACK_BIOS, DWL_SUPERSEDED_SECTORS, DWL_ALONG_SECTORS,
	DWL_ORIGIN_ERRORS, DWL_MEDIUM_ERRORS,
	DWL_NR_COUNTERS
};

enum dwl_phase {
	DWL_PHASE_WRITE, DWL_PHASE_SPACE, DWL_PHASE_SLOT, DWL_PHASE_COPY, DWL_PHASE_INDEX,
	DWL_PHASE_READ, DWL_PHASE_ORIGIN_READ, DWL_PHASE_WRITEBACK, DWL_PHASE_FLUSH,
	DWL_NR_PHASES
};

struct dwl_stats {
	u64 count[DWL_NR_COUNTERS];
	struct latency latency[DWL_NR_PHASES];
	s64 reads_in_flight;		/* at the origin; only the sum over all CPUs counts */
};

/* Options. All can be set in the table; all but slots and block_size by message, too. */
struct dwl_params {
	u32 slots;
	u32 block_size;
	u32 high_mark;			/* percent of generations in use at which writeback begins */
	u32 low_mark;			/* percent at which writeback ends */
	u32 depth;			/* maximum MiB in flight to the origin */
	u32 error_timeout;		/* seconds that a full log waits for a failing origin */
	u32 allow_volatile;		/* 1: the log may be ordinary memory */
	u32 any_origin;			/* 1: the origin isn't compared with what the log knows of it */
	bool skip_damage;
	bool cleaner;
	u8 origin_id[WL_ORIGIN_ID_SIZE];
	bool has_origin_id;
	u8 given;			/* DWL_GIVEN_*: options in the table line */
};

/* A piece of the origin's memory: device.c */
struct dwl_piece {
	struct dwl_piece *next;
	struct pm_range range;
};

enum dwl_mode { DWL_CACHING, DWL_CLEANING, DWL_CLEANER };

/* Writers that wait for space, in order: space.c */
struct dwl_space {
	spinlock_t lock;		/* protects the fields below */
	bool throttled;			/* writers need credit; read without the lock */
	bool blocked;			/* no writer passes; read without the lock */
	s64 credit;			/* bytes that writers may append while throttled */
	struct list_head waiters;
};

/* The fingerprint of the origin's first blocks, as the worker knows it: fingerprint.c */
struct dwl_fingerprint {
	u32 blocks;			/* blocks covered by the fingerprint; 0: the origin can't be read */
	bool unchanged;			/* the blocks weren't written since the last flush began */
	void *buffer;
	__le32 sums[WL_FINGERPRINT_BLOCKS];
	DECLARE_BITMAP(changed, WL_FINGERPRINT_BLOCKS);	/* blocks with unknown checksums */
};

/* Blocks that the origin refuses: aside.c. Used by the worker only, except for fields marked otherwise. */
#define DWL_MAX_ASIDE		256
#define DWL_ASIDE_RETRY		(4 * HZ)

struct dwl_aside_block {
	u64 block;
	u64 version;			/* to be tried; 0: none */
	u64 written;			/* version that was last written with success; 0: none */
};

struct dwl_aside {
	struct mutex lock;		/* held together with all slots */
	bool moving;			/* blocks are being moved: the last free generation may be used */
	u32 nr;				/* read by other tasks */
	unsigned long next;		/* jiffies: when all are retried */
	unsigned long pause_end;	/* jiffies: no retries before this */
	u32 retry_from;			/* index of the block that is retried first */
	u64 search_from;		/* sector where a search that took too long ended; 0: it didn't */
	struct dwl_aside_block blocks[DWL_MAX_ASIDE];
};

struct dwl_hash {
	struct hlist_head *buckets;
	struct dwl_bucket_lock *locks;	/* DWL_BUCKET_LOCKS of them, each for many buckets: index.c */
	u32 bits;
	mempool_t reserve;		/* regions for when memory is short */
	struct mutex short_of_memory;	/* serializes the users of @reserve */
	bool starved;			/* @reserve is in use: writeback frees regions */
};

/* One target: the instance of one table line. */
struct dwl {
	struct dm_target *ti;
	struct dm_dev *origin;
	struct dm_dev *log;
	struct dwl_params params;
	struct pm_range range;		/* the log's memory */
	struct dwl_piece *origin_pieces;	/* the origin's, if it is persistent memory */
	struct list_head claim;		/* in the list of all origins: device.c */

	struct wl wl;
	u64 gen_bytes;			/* bytes of PMem in a generation */
	u32 block_shift;		/* log2 of the sectors in a block */

	struct dwl_hash index;
	long max_regions;		/* limit at which writeback frees regions */
	struct srcu_struct srcu;		/* protects what readers found in the index */

	struct dwl_gen *gens;
	struct dwl_gen *current_gen;	/* NULL: the next writer opens one */
	struct mutex clean_lock;	/* serializes changes to cleaner mode */
	struct mutex gen_lock;		/* protects all fields of generations that aren't atomic */
	u64 last_id;
	struct list_head free_gens;
	struct list_head closed_gens;
	u32 nr_free;			/* read without the lock, as are the next two */
	u32 nr_broken;			/* neither free nor used: the medium can't hold them */
	u32 nr_unsealed;		/* closed, but writers may still use them */
	struct dwl_slot *slots;
	wait_queue_head_t gen_freed;

	struct dwl_space space;

	enum dwl_mode mode;
	bool loaded;			/* the index is that of the log */
	struct task_struct *worker;	/* parked while suspended */
	bool running;			/* the worker isn't parked */
	spinlock_t direct_lock;		/* protects the next one */
	struct bio_list direct;		/* done at the origin, to be completed by the worker: direct.c */
	bool suspending;			/* about to be suspended: message flush ends */
	bool requeuing;				/* and writers that wait are requeued: space.c; space.lock */
	wait_queue_head_t kick;		/* where the worker waits */
	bool draining;			/* writeback continues down to the low mark */
	u64 flush_to;			/* generations up to this one shall be written back */
	u64 freed_to;			/* generations up to this one are freed */
	u32 write_errors;		/* number of failed writebacks */
	unsigned long failing_since;	/* jiffies | 1; 0: the origin is well */
	bool failed;			/* writeback has failed for longer than error_timeout */

	struct bio_set bios;
	mempool_t bounce;		/* pages */
	struct dwl_extent *extents;
	u32 nr_extents, max_extents;	/* the maximum is without neighbours: twice with them */
	u32 nr_along;			/* of nr_extents: neighbours, from younger generations */
	struct dwl_extent *flushed_extents;	/* covered by the flush in flight */
	u32 nr_flushed_extents;
	bool flushing;
	struct bio flush_bio;
	struct completion flush_done;
	u64 flush_start_ns;
	u32 units_in_flight;		/* bios_done.lock protects this and the next one: origin.c */
	u32 units_awaited;		/* the worker waits for at most this many */
	u64 no_read_wait_until;		/* in ns */
	wait_queue_head_t bios_done;
	blk_status_t batch_status;
	u64 failed_sector, failed_sectors;	/* of the batch's first failed bio; bios_done.lock */
	struct dwl_aside aside;
	u64 batch_credit;		/* 16.16 fixed point: bytes of credit for a byte written */
	bool no_write_zeroes;		/* the origin has refused zeroes: it gets pages of zeros */
	bool zeroes_refused;		/* in this batch */
	struct dwl_fingerprint fingerprint;

	bool latency;			/* measure latencies */
	struct dwl_stats __percpu *stats;

	/* Changed by many writers, so in a cache line of its own. */
	atomic_long_t nr_regions ____cacheline_aligned_in_smp;
};

/* Per-bio data. */
struct dwl_bio {
	bool at_origin;			/* a read that the origin answers */
	u64 start_ns;
	u64 direct_sector;		/* of a write past the log that may end a block's loss: direct.c */
	u32 direct_sectors;		/* 0: it can't */
};

static inline struct dwl_bio *dwl_bio_data(struct bio *bio)
{
	return dm_per_bio_data(bio, sizeof(struct dwl_bio));
}

/* The generation that holds a position of the log. */
static inline struct dwl_gen *dwl_gen_of(const struct dwl *w, u64 value)
{
	u64 at = ((value & U32_MAX) * WL_DATA_ALIGN) - (w->wl.data - w->wl.base);

	return &w->gens[div64_u64(at, w->gen_bytes)];
}

static inline void *dwl_data(const struct dwl *w, u64 value)
{
	return w->wl.base + (value & U32_MAX) * WL_DATA_ALIGN;
}

/* The index value of a block @sectors behind the block with @value in one entry. */
static inline u64 dwl_value_behind(u64 value, u64 sectors)
{
	if (value & (DWL_ZERO | DWL_POISON))
		return value;
	return value + (sectors << WL_SECTOR_SHIFT) / WL_DATA_ALIGN;
}

/* params.c */
int dwl_params_parse(struct dwl *w, unsigned int argc, char **argv);
int dwl_params_set(struct dwl *w, const char *key, const char *value);
void dwl_params_print(struct dwl *w, char *result, unsigned int maxlen, unsigned int *len);

/* device.c */
int dwl_device_open(struct dwl *w);
int dwl_device_load(struct dwl *w);
void dwl_device_bind(struct dwl *w);
void dwl_device_close(struct dwl *w);

/* state.c */
int dwl_preresume(struct dm_target *ti);
void dwl_presuspend(struct dm_target *ti);
void dwl_presuspend_undo(struct dm_target *ti);
void dwl_postsuspend(struct dm_target *ti);
int dwl_flush(struct dwl *w);
int dwl_clean(struct dwl *w);
void dwl_free_state(struct dwl *w);

/* replay.c */
int dwl_replay(struct dwl *w);

/* map.c */
int dwl_map(struct dm_target *ti, struct bio *bio);
int dwl_end_io(struct dm_target *ti, struct bio *bio, blk_status_t *status);

/* direct.c */
int dwl_write_direct(struct dwl *w, struct bio *bio);
bool dwl_direct_done(struct dwl *w, struct bio *bio, blk_status_t status);
void dwl_direct_complete(struct dwl *w);

/* append.c */
int dwl_append(struct dwl *w, enum wl_op op, u64 *sector, u64 end, struct bio *bio,
	       struct bvec_iter *iter);

/* slot.c */
struct dwl_slot *dwl_slot_get(struct dwl *w, bool nowait);
int dwl_slot_ready(struct dwl *w, struct dwl_slot *slot, enum wl_op op, u32 want,
		   struct dwl_gen **gen, bool nowait);
void dwl_slots_wait(struct dwl *w, const struct dwl_gen *gen);
u64 dwl_gen_close_current(struct dwl *w);

/* index.c */
int dwl_index_module_init(void);
void dwl_index_module_exit(void);
int dwl_index_init(struct dwl *w);
void dwl_index_destroy(struct dwl *w);
struct dwl_region *dwl_region_get(struct dwl *w, u64 number, gfp_t gfp);
void dwl_region_put(struct dwl *w, struct dwl_region *region);
u64 dwl_index_value(const struct dwl *w, const struct wl_entry *entry, u64 block);
void dwl_index_store(struct dwl *w, struct dwl_region **regions, u64 first_region, u64 put_to,
		     const struct wl_entry *entry);
void dwl_index_poison(struct dwl *w, struct dwl_region *region, u32 block, u64 order);
void dwl_index_discard(struct dwl *w, const struct wl_entry *entry);
void dwl_index_clear(struct dwl *w, const struct dwl_extent *extent);
void dwl_index_mark_lost(struct dwl *w, const struct dwl_extent *extent);
struct dwl_region *dwl_index_find(const struct dwl *w, u64 number);

/* read.c */
void dwl_reads_init(struct dwl *w);
s64 dwl_reads_in_flight(const struct dwl *w);
int dwl_read(struct dwl *w, struct bio *bio);

/* status.c */
void dwl_status(struct dm_target *ti, status_type_t type, unsigned int flags, char *result,
		unsigned int maxlen);
int dwl_latency_print(struct dwl *w, char *result, unsigned int maxlen);
u64 dwl_total(const struct dwl *w, enum dwl_counter counter);

static inline void dwl_count(struct dwl *w, enum dwl_counter counter, u64 n)
{
	this_cpu_add(w->stats->count[counter], n);
}

/* Start of a measurement in ns; 0: latencies are not measured. */
static inline u64 dwl_now(const struct dwl *w)
{
	return unlikely(READ_ONCE(w->latency)) ? ktime_get_ns() : 0;
}

static inline void dwl_latency(struct dwl *w, enum dwl_phase phase, u64 start_ns)
{
	if (unlikely(start_ns))
		latency_add(&w->stats->latency[phase], ktime_get_ns() - start_ns);
}

#endif
