/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * dm-forebay-writelog.ko: a write cache under any file system. Writes are
 * appended to a log in persistent memory and complete; many writers at once.
 *
 * Where a write goes:
 *	map.c: dwl_map()		from device-mapper
 *	  space.c			is there room? else wait in line
 *	  append.c: dwl_append()	a slot, a place in the log, the copy, the commit
 *	    slot.c			who writes to which chunk; generations begin
 *	    core/writelog_append.c	the only code that writes the log
 *	  index.c			where the newest version of each block is
 * and where its data go later:
 *	writeback.c			one generation after the other, oldest first
 *	  pieces.c			what of it is still the newest; sorted
 *	  origin.c			large bios to the origin
 *
 * The other files:
 *	target.c params.c		constructor, table, limits, messages
 *	status.c			status line, counters, latencies
 *	device.c			claim and map the log device, open the log
 *	state.c				suspend, resume, cleaner mode
 *	replay.c			the index after a restart
 *	read.c				what is in the log from there, the rest from the origin
 *	trace.c				tracepoints
 *
 * No lock is shared by all writers between a bio's arrival and its completion:
 * a writer takes one of the slots (its CPU's, if that is free) and the locks of
 * the regions that it writes to. Only who finds a generation full, or the log
 * nearly so, meets the others.
 *
 * ORDER of two writes to one block is that of (generation's identifier,
 * sequence number), which a writer takes while it holds its slot. The index lets
 * the later order win, whoever comes first, and so does replay.
 *
 * A generation is freed in this order: slots have left it; sealed; its newest
 * blocks written; the origin flushed; these blocks out of the index; readers
 * that might have seen them there gone (srcu); freed in PMem. Until then its
 * bytes don't change, so who found a block in the index under srcu may read it.
 *
 * Lock order, outermost first:
 *	slot->lock			(mutex) one writer
 *	w->gen_lock			(mutex) generations: open, seal, free, the lists
 *	region->lock, then its bucket's lock
 *	w->space.lock
 * srcu is entered outside of region->lock and never held while waiting.
 */
#ifndef FOREBAY_DM_WRITELOG_H
#define FOREBAY_DM_WRITELOG_H

#include <linux/bio.h>
#include <linux/blkdev.h>
#include <linux/completion.h>
#include <linux/device-mapper.h>
#include <linux/mempool.h>
#include <linux/mutex.h>
#include <linux/percpu.h>
#include <linux/spinlock.h>
#include <linux/srcu.h>
#include <linux/wait.h>

#include "../../core/writelog.h"
#include "../latency.h"

#define DM_MSG_PREFIX "forebay-wlog"

/* A region is so many blocks of the origin: the unit of the index's locks. */
#define DWL_REGION_SHIFT	5
#define DWL_REGION_BLOCKS	(1u << DWL_REGION_SHIFT)
/* What is appended at once: bios are cut at multiples of this many sectors. */
#define DWL_PORTION		2048u
#define DWL_PORTION_REGIONS	(DWL_PORTION / DWL_REGION_BLOCKS)

/*
 * Where the newest version of a block is; 0: on the origin.
 *	bits 0-31	position in the log, in units of WL_DATA_ALIGN; for a
 *			block of zeros, of the chunk that says so
 *	bits 32-59	sequence number
 *	bit 61		discarded while somebody may be about to store an older version:
 *			the log has nothing, and bits 0-60 are the lower ones of the
 *			discard's order; gone when nobody is
 *	bit 62		its data was damaged: reading it fails; no position then
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
	spinlock_t lock;		/* of what follows */
	u32 pins;			/* writers that will store here */
	u32 live;			/* blocks that are not 0 */
	bool dead;			/* on its way out of its bucket */
	u8 discarded;			/* of these blocks, DWL_DISCARDED */
	mempool_t *pool;		/* where its memory goes */
	struct rcu_head rcu;
	u64 block[DWL_REGION_BLOCKS];
};

enum dwl_gen_state { DWL_GEN_FREE, DWL_GEN_CURRENT, DWL_GEN_CLOSED };

/* A generation. Its number is its place in w->gens. */
struct dwl_gen {
	u64 id;
	enum dwl_gen_state state;
	bool sealed;
	bool written;			/* to the origin; not durable there before the flush: writeback.c */
	struct list_head list;		/* w->free_gens or w->closed_gens, oldest first */
	/* Each writer changes these, so not beside what each looks at. */
	atomic_t seq ____cacheline_aligned_in_smp;	/* entries so far; those that replay found */
	atomic_t chunks;		/* handed out; may be more than there are */
} ____cacheline_aligned_in_smp;

struct dwl_slot {
	struct mutex lock;		/* held by the writer whose slot it is */
	struct wl_slot place;
} ____cacheline_aligned_in_smp;

/* What of a generation must be written to the origin. */
struct dwl_piece {
	u64 sector;
	u64 value;			/* of its first block in the index */
	u32 sectors;
};

/* How far a generation has been looked through. */
struct dwl_place {
	u32 chunk, index;
	u32 entries;			/* in the chunks before that */
};

enum dwl_counter {
	DWL_READS, DWL_READ_SECTORS, DWL_READ_HIT_SECTORS, DWL_LOST_READS,
	DWL_WRITES, DWL_WRITE_SECTORS, DWL_ENTRIES, DWL_DIRECT_WRITES,
	DWL_DISCARDS, DWL_ZEROES,
	DWL_SLOT_WAITS, DWL_SPACE_WAITS, DWL_FULL_WAITS,
	DWL_GENERATIONS, DWL_WRITEBACK_SECTORS, DWL_WRITEBACK_BIOS, DWL_SUPERSEDED_SECTORS,
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
	s32 reads_below;		/* reads that the origin has not answered */
};

/* What can be set in the table, and all but slots and block_size by message. */
struct dwl_params {
	u32 slots;
	u32 block_size;
	u32 high_mark;			/* percent of the generations in use: begin to write back */
	u32 low_mark;			/* and end */
	u32 depth;			/* most MiB at the origin */
	u32 error_timeout;		/* seconds that a full log waits for a failing origin */
	u32 allow_volatile;		/* 1: the log may be ordinary memory */
	bool skip_damage;
	bool cleaner;
	u8 origin_id[WL_ORIGIN_ID_SIZE];
	bool has_origin_id;
	u8 given;			/* DWL_GIVEN_*: what the table line said */
};

enum dwl_mode { DWL_CACHING, DWL_CLEANING, DWL_CLEANER };

/* Writers that wait for room, in order: space.c */
struct dwl_space {
	spinlock_t lock;		/* of what follows */
	bool throttled;			/* read without the lock */
	bool shut;			/* nobody passes; read without the lock */
	s64 credit;			/* bytes that may be appended; while throttled */
	struct list_head waiters;
};

#define DWL_BUCKET_LOCKS	256

struct dwl_hash {
	struct hlist_head *buckets;
	spinlock_t *locks;		/* each of many buckets: what hangs there */
	u32 bits;
	mempool_t reserve;		/* regions, for when memory is short */
	struct mutex short_of_memory;	/* of who takes from it */
	bool starved;			/* somebody does: writeback makes room in DRAM */
};

/* One table's target. */
struct dwl {
	struct dm_target *ti;
	struct dm_dev *origin;
	struct dm_dev *cache;
	struct dwl_params params;
	struct list_head registered;	/* device.c: who has which log device */

	struct wl wl;
	u64 gen_bytes;			/* PMem that a generation takes */
	u32 block_shift;		/* of a block, in sectors */

	struct dwl_hash index;
	long max_regions;		/* more: writeback makes room in DRAM */
	struct srcu_struct srcu;		/* what was found in the index */

	struct dwl_gen *gens;
	struct dwl_gen *current_gen;	/* NULL: the next writer opens one */
	struct mutex clean_lock;	/* of who makes it a cleaner */
	struct mutex gen_lock;		/* of all about generations but what is atomic */
	u64 last_id;
	struct list_head free_gens;
	struct list_head closed_gens;
	u32 nr_free;			/* read without the lock, as is the next */
	u32 nr_unsealed;		/* closed, but their writers may not have left */
	struct dwl_slot *slots;
	wait_queue_head_t gen_freed;

	struct dwl_space space;

	enum dwl_mode mode;
	bool loaded;			/* the index is that of the log */
	struct task_struct *worker;	/* parked while suspended */
	bool running;			/* it is not */
	bool leaving;			/* about to be suspended: flushes end */
	wait_queue_head_t kick;		/* it waits here */
	bool draining;			/* between high and low mark */
	u64 flush_to;			/* generations up to this one are wanted back */
	u64 freed_to;			/* and up to this one are */
	u32 write_errors;		/* how often writeback has failed */
	unsigned long failing_since;	/* jiffies | 1; 0: the origin is well */
	bool failed;			/* it has failed for longer than error_timeout */

	struct bio_set bios;
	mempool_t bounce;		/* pages */
	struct dwl_piece *pieces;
	u32 nr_pieces, max_pieces;
	struct dwl_piece *flushed_pieces;	/* those that a flush is on its way for */
	u32 nr_flushed_pieces;
	bool flushing;
	struct bio flush_bio;
	struct completion flush_done;
	u64 flush_began;
	u32 units_below;		/* with bios_done.lock, as is the next: origin.c */
	u32 units_awaited;		/* the worker waits for so few */
	wait_queue_head_t bios_done;
	blk_status_t batch_status;
	u64 batch_credit;		/* 16.16: bytes of credit for a byte written */
	bool no_write_zeroes;		/* the origin has refused some: it gets pages of zeros */
	bool zeroes_refused;		/* of this batch */

	bool latency;			/* measure */
	struct dwl_stats __percpu *stats;

	/* Many writers change it, so not beside what all look at. */
	atomic_long_t nr_regions ____cacheline_aligned_in_smp;
};

/* What goes with each bio. */
struct dwl_bio {
	bool below;			/* a read that the origin answers */
	u64 began;
};

static inline struct dwl_bio *dwl_bio(struct bio *bio)
{
	return dm_per_bio_data(bio, sizeof(struct dwl_bio));
}

/* Generation that a place in the log is in. */
static inline struct dwl_gen *dwl_gen_of(const struct dwl *w, u64 value)
{
	u64 at = ((value & U32_MAX) * WL_DATA_ALIGN) - (w->wl.data - w->wl.base);

	return &w->gens[div64_u64(at, w->gen_bytes)];
}

static inline void *dwl_data(const struct dwl *w, u64 value)
{
	return w->wl.base + (value & U32_MAX) * WL_DATA_ALIGN;
}

/* What the index has for a block that lies so many sectors behind another one of its entry. */
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

/* space.c */
int dwl_space_enter(struct dwl *w, u64 bytes, bool nowait);
int dwl_space_wait_gen(struct dwl *w);
void dwl_space_credit(struct dwl *w, u64 bytes);
void dwl_space_update(struct dwl *w);
void dwl_space_shut(struct dwl *w, bool shut);
u32 dwl_space_level(const struct dwl *w);

/* append.c */
int dwl_append(struct dwl *w, enum wl_op op, u64 *sector, u64 end, struct bio *bio,
	       struct bvec_iter *iter);

/* slot.c */
struct dwl_slot *dwl_slot_get(struct dwl *w, bool nowait);
int dwl_slot_ready(struct dwl *w, struct dwl_slot *slot, enum wl_op op, u32 want,
		   struct dwl_gen **gen, bool nowait);
void dwl_slots_leave(struct dwl *w, const struct dwl_gen *gen);
u64 dwl_gen_close_current(struct dwl *w);

/* index.c */
int dwl_index_module_init(void);
void dwl_index_module_exit(void);
int dwl_index_init(struct dwl *w);
void dwl_index_destroy(struct dwl *w);
struct dwl_region *dwl_index_pin(struct dwl *w, u64 number, gfp_t gfp);
void dwl_index_unpin(struct dwl *w, struct dwl_region *region);
u64 dwl_index_value(const struct dwl *w, const struct wl_entry *entry, u64 block);
void dwl_index_store(struct dwl *w, struct dwl_region **regions, u64 first_region, u64 unpin_to,
		     const struct wl_entry *entry);
void dwl_index_poison(struct dwl *w, struct dwl_region *region, u32 block, u64 order);
void dwl_index_drop(struct dwl *w, const struct wl_entry *entry);
void dwl_index_clear(struct dwl *w, const struct dwl_piece *piece);
void dwl_index_lose(struct dwl *w, const struct dwl_piece *piece);
struct dwl_region *dwl_index_find(const struct dwl *w, u64 number);

/* read.c */
int dwl_read(struct dwl *w, struct bio *bio);

/* writeback.c */
int dwl_worker_create(struct dwl *w);
void dwl_worker_run(struct dwl *w);
void dwl_worker_park(struct dwl *w);
void dwl_worker_destroy(struct dwl *w);
bool dwl_worker_leaves(void);

/* pieces.c */
s64 dwl_pieces_collect(struct dwl *w, const struct dwl_gen *gen, struct dwl_place *place);

/* origin.c */
int dwl_origin_init(struct dwl *w);
void dwl_origin_exit(struct dwl *w);
int dwl_origin_write_pieces(struct dwl *w);
void dwl_origin_flush_begin(struct dwl *w);
int dwl_origin_flush_end(struct dwl *w);

/* status.c */
void dwl_status(struct dm_target *ti, status_type_t type, unsigned int flags, char *result,
		unsigned int maxlen);
int dwl_latency_print(struct dwl *w, char *result, unsigned int maxlen);
u64 dwl_total(const struct dwl *w, enum dwl_counter counter);

/* Writers wait for room, in the log or in DRAM. */
static inline bool dwl_short(const struct dwl *w)
{
	return READ_ONCE(w->space.throttled) || READ_ONCE(w->index.starved);
}

static inline void dwl_count(struct dwl *w, enum dwl_counter counter, u64 n)
{
	this_cpu_add(w->stats->count[counter], n);
}

/* A moment to measure from; 0: not measured. */
static inline u64 dwl_now(const struct dwl *w)
{
	return unlikely(READ_ONCE(w->latency)) ? ktime_get_ns() : 0;
}

static inline void dwl_latency(struct dwl *w, enum dwl_phase phase, u64 began)
{
	if (unlikely(began))
		latency_add(&w->stats->latency[phase], ktime_get_ns() - began);
}

#endif
