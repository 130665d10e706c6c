/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * dm-forebay-transit.ko: a cache in DRAM through which writes pass on their way
 * to a block device that has none of its own, such as a BTT: I/O transit caching,
 * and the staging policies it is compared with. Volatile, as a disk's cache is.
 *
 * Where a bio goes:
 *	map.c				from device-mapper; by what it is
 *	  write.c			into a slot; or past the cache
 *	  read.c			what is in slots from there, the rest from below
 *	  drain.c			a flush: what was complete before it, to the device
 *	  wide.c			discards and zeros
 *	worker.c			sets to workers
 *	  evict.c			slots to the device: errors, tries
 *
 * What they stand on:
 *	set.c				sets of slots, by the block's number; who must wait
 *	slot.c				the reservation, the free set, writers in line for a slot
 *	policy.h policy_*.c		when what is evicted; one file a policy
 *	target.c params.c state.c	constructor, table, messages, suspend and resume
 *	status.c trace.c		status line, counters, latencies, tracepoints
 *
 * SLOTS hold a block each. There is no table from blocks to slots: a block's number
 * gives its set, and in the set's queue its slot is looked for. A slot is
 *	free		in the free set
 *	pending		in its set's queue; somebody copies a block into it
 *	valid		holds the newest version of its block
 *	evicting	the same, and that version, or a newer one, is on its way down
 *
 * INVARIANTS
 * - A block is in at most one slot. While it is on its way to the device, by eviction
 *   or past the cache, nobody writes it, neither to a slot nor to the device: he
 *   waits. So versions reach the device in the order in which they were written, and
 *   at any time at most one bio that writes a block is below.
 * - The bytes of a slot change only while it is pending. It becomes pending only when
 *   nobody reads it. So a reader sees a whole version, as does the device.
 * - Who waits for a slot's readers keeps new ones out: steady readers don't hold up a writer.
 * - A slot is free only after the device has acknowledged its block (or something that
 *   took its place). So who finds no slot may read the device at any time after that.
 * - A block that the device refused stays in its slot, readable, and is tried again;
 *   flushes that it belongs to fail.
 * - A bio lies within a chunk, hence within one set; only discards and zeros don't.
 * - Nobody waits for a bio that he has mapped himself: device-mapper submits it only
 *   when he has returned. All evictions are submitted by workers.
 *
 * Lock order, outermost first; all are spinlocks, interrupts off, as bios complete
 * anywhere:
 *	set->lock		its queue, its slots' headers, its ranges
 *	t->wide.lock		ranges of discards and zeros
 *	the policy's own	its lists
 *	t->free.lock		writers in line
 *	t->ready.nap.lock	a worker's nap
 * t->ready.lock is the workers' own, with nothing inside it.
 */
#ifndef FOREBAY_DM_TRANSIT_H
#define FOREBAY_DM_TRANSIT_H

#include <linux/bio.h>
#include <linux/blkdev.h>
#include <linux/device-mapper.h>
#include <linux/hash.h>
#include <linux/llist.h>
#include <linux/percpu.h>
#include <linux/spinlock.h>
#include <linux/wait.h>
#include <linux/workqueue.h>

#include "../latency.h"

#define DM_MSG_PREFIX "forebay-transit"

/* Bios are cut at multiples of so many blocks; all blocks of a chunk are in one set. */
#define DTC_CHUNK_SHIFT	4
/* Sets are so many that a full cache has about this many slots in each. */
#define DTC_SET_SLOTS	4
/* A block that the device has refused so often makes flushes fail. */
#define DTC_TRIES	5

#define DTC_MOST_WORKERS BITS_PER_LONG

#define DTC_NO_BLOCK	U64_MAX
#define DTC_NO_SLOT	U32_MAX

enum dtc_slot_state { DTC_FREE, DTC_PENDING, DTC_VALID, DTC_EVICTING };

struct dtc_slot {
	struct list_head queue;		/* of its set, in the order of writing */
	struct list_head policy;	/* the policy's */
	u64 block;			/* DTC_NO_BLOCK: free */
	u32 next;			/* in the free set */
	u32 stamp;			/* t->stamp when it was first written: which flushes wait for it */
	u32 readers;			/* at work in it */
	u8 state;
	bool wanted : 1;		/* to be evicted */
	bool clean : 1;			/* valid, and the device has the same */
	u8 tries;			/* how often the device has refused it */
	u8 awaited;			/* so many wait until nobody reads it: no new readers */
};

/* Blocks that a bio below will write. */
struct dtc_range {
	struct hlist_node node;
	u64 first, last;
};

struct dtc_set {
	spinlock_t lock;		/* of all here, and of its slots' headers */
	u32 dirty;			/* slots that are not clean */
	u32 listed;			/* on the workers' list; changed without the lock */
	struct llist_node ready;	/* there */
	struct list_head queue;
	struct hlist_head ranges;	/* of writes that go past the cache */
	wait_queue_head_t wait;		/* for any change */
};

/* The free set: slots linked by ->next. */
struct dtc_free {
	atomic64_t head;		/* low half: the first's number; high half: counts up */
	atomic_t nr;
	u32 waiting;			/* writers in line; read without the lock */
	spinlock_t lock;		/* of the line */
	struct list_head line;
} ____cacheline_aligned_in_smp;

/* Sets that wait for a worker. */
struct dtc_ready {
	struct llist_head added;	/* the last one first */
	u32 looks;			/* a worker without work looks around so often before he naps */
	wait_queue_head_t nap;		/* a worker who may be needed soon */
	struct mutex lock;		/* of what follows: workers only */
	struct llist_node *fifo;	/* the oldest first, all older than those above */
	u32 nr;				/* of them */
} ____cacheline_aligned_in_smp;

struct dtc_worker {
	struct work_struct work;
	struct dtc *t;
};

/* Discards and zeros on their way. */
struct dtc_wide {
	spinlock_t lock;		/* of what follows */
	u32 nr;				/* read with any set's lock */
	struct hlist_head ranges;
	wait_queue_head_t wait;
};

enum dtc_counter {
	DTC_READ_BLOCKS, DTC_READ_HITS,
	DTC_WRITE_BLOCKS, DTC_WRITE_HITS, DTC_STALLED, DTC_BYPASSED, DTC_FUA,
	DTC_FLUSHES, DTC_DISCARDS, DTC_ZEROES,
	DTC_EVICTED, DTC_DROPPED, DTC_ERRORS, DTC_FAILED_FLUSHES,
	DTC_NR_COUNTERS
};

/* What a write consists of, then the rest: docs/transit.md. */
enum dtc_phase {
	DTC_PHASE_METADATA, DTC_PHASE_CACHE_WRITE, DTC_PHASE_EVICT_AND_WRITE, DTC_PHASE_BYPASS,
	DTC_PHASE_ENQUEUE, DTC_PHASE_FLUSH,
	DTC_PHASE_WRITE, DTC_PHASE_READ, DTC_PHASE_EVICTION,
	DTC_NR_PHASES
};

struct dtc_stats {
	u64 count[DTC_NR_COUNTERS];
	struct latency phase[DTC_NR_PHASES];
};

struct dtc_params {
	u64 cache_size;
	u32 block_size;
	u32 workers;
	bool eager_eviction;
	bool bypass;
	u8 given;			/* a bit a key that the table line had */
};

/* One table's target. */
struct dtc {
	struct dm_target *ti;
	struct dm_dev *below;
	struct dtc_params params;
	u32 block_shift;		/* of a block, in sectors */
	const struct dtc_policy *policy;
	void *policy_data;

	void *data;			/* the reservation */
	struct dtc_slot *slots;
	u32 nr_slots;			/* 0: everything goes past the cache */
	struct dtc_set *sets;
	u32 set_bits;
	u64 seed;			/* so that nobody can choose blocks that are all in one set */
	unsigned long *occupied;	/* sets with slots that are not clean */
	u32 hand;			/* the set that dtc_want_some() had last */
	atomic_t stamp;			/* flushes so far */
	spinlock_t flush_lock;		/* of the next two */
	u32 failed_stamp;		/* what flushes that began after the last failure have at least */
	bool flush_failed;		/* none of them has succeeded: map.c; read without the lock */

	struct dtc_free free;
	struct dtc_wide wide;

	struct dtc_ready ready;
	struct dtc_worker *workers;	/* DTC_MOST_WORKERS */
	unsigned long awake;		/* a bit a worker */
	struct workqueue_struct *evictors;
	struct bio_set bios;
	struct workqueue_struct *events;	/* the policy's work */
	struct delayed_work retry;	/* by workers */
	bool quiet;			/* suspended: no tries */
	atomic_t troubled;		/* slots that were refused at least once */
	bool failing;			/* one of them DTC_TRIES times */

	unsigned long last_bio;		/* jiffies */
	bool latency;			/* measure */
	struct dtc_stats __percpu *stats;
};

enum dtc_bio_kind { DTC_BIO_OTHER, DTC_BIO_PAST, DTC_BIO_WIDE, DTC_BIO_READ, DTC_BIO_FLUSH };

/* What goes with each bio. */
struct dtc_bio {
	struct dtc_range range;
	struct dtc_set *set;
	u64 began;
	u32 stamp;			/* t->stamp when it came */
	u8 kind;
};

static inline struct dtc_bio *dtc_bio(struct bio *bio)
{
	return dm_per_bio_data(bio, sizeof(struct dtc_bio));
}

static inline bool dtc_between(const struct dtc_slot *slot, u64 first, u64 last)
{
	return slot->block >= first && slot->block <= last;
}

static inline bool dtc_in(const struct dtc_range *range, const struct dtc_slot *slot)
{
	return dtc_between(slot, range->first, range->last);
}

static inline bool dtc_overlaps(const struct dtc_range *range, u64 first, u64 last)
{
	return range->first <= last && range->last >= first;
}

/* The device has refused it, and nobody is about to try again: who waits need not any longer. */
static inline bool dtc_given_up(const struct dtc_slot *slot)
{
	return slot->tries == DTC_TRIES && slot->state == DTC_VALID && !slot->wanted;
}

static inline u32 dtc_nr_sets(const struct dtc *t)
{
	return 1u << t->set_bits;
}

static inline struct dtc_set *dtc_set_of(const struct dtc *t, u64 block)
{
	return &t->sets[hash_64((block >> DTC_CHUNK_SHIFT) ^ t->seed, t->set_bits)];
}

static inline void *dtc_slot_data(const struct dtc *t, const struct dtc_slot *slot)
{
	return t->data + (u64)(slot - t->slots) * t->params.block_size;
}

static inline u64 dtc_first_block(const struct dtc *t, const struct bio *bio)
{
	return bio->bi_iter.bi_sector >> t->block_shift;
}

static inline u32 dtc_nr_blocks(const struct dtc *t, const struct bio *bio)
{
	return bio_sectors(bio) >> t->block_shift;
}

static inline u32 dtc_used(const struct dtc *t)
{
	return t->nr_slots - atomic_read(&t->free.nr);
}

static inline int dtc_below(struct dtc *t, struct bio *bio)
{
	bio_set_dev(bio, t->below->bdev);
	return DM_MAPIO_REMAPPED;
}

/* map.c */
int dtc_map(struct dm_target *ti, struct bio *bio);
int dtc_end_io(struct dm_target *ti, struct bio *bio, blk_status_t *status);
int dtc_ended(struct bio *bio, blk_status_t status);
void dtc_copy_block(struct dtc *t, struct bio *bio, struct dtc_slot *slot, bool to_bio);

/* write.c */
int dtc_write(struct dtc *t, struct bio *bio);
void dtc_past_done(struct dtc *t, struct bio *bio, blk_status_t status);

/* read.c */
int dtc_read(struct dtc *t, struct bio *bio);

/* drain.c */
int dtc_drain(struct dtc *t, bool interruptible);
void dtc_flush_ended(struct dtc *t, u32 stamp, bool failed);
void dtc_want_some(struct dtc *t);
void dtc_want_all(struct dtc *t);

/* wide.c */
void dtc_wide_init(struct dtc *t);
int dtc_wide(struct dtc *t, struct bio *bio);
void dtc_wide_done(struct dtc *t, struct bio *bio);
bool dtc_wide_covers(struct dtc *t, u64 first, u64 last);
void dtc_wide_wait(struct dtc *t, u64 first, u64 last);

/* set.c */
int dtc_sets_init(struct dtc *t);
void dtc_sets_destroy(struct dtc *t);
struct dtc_slot *dtc_set_find(struct dtc_set *set, u64 block);
void dtc_set_wait_idle(struct dtc *t, struct dtc_set *set, u64 first, u64 last, const struct dtc_range *own);
void dtc_set_lock_idle(struct dtc *t, struct dtc_set *set, u64 first, u64 last) __acquires(&set->lock);
void dtc_set_lock_range(struct dtc *t, struct dtc_set *set, struct dtc_range *range) __acquires(&set->lock);
void dtc_set_wake(struct dtc_set *set);
void dtc_set_dirty(struct dtc *t, struct dtc_set *set, int by);
void dtc_set_leave(struct dtc *t, struct dtc_set *set, struct dtc_slot *slot);
void dtc_set_unpin(struct dtc *t, struct dtc_set *set, struct dtc_slot *slot);

/* slot.c */
int dtc_slots_init(struct dtc *t);
void dtc_slots_destroy(struct dtc *t);
struct dtc_slot *dtc_slot_get(struct dtc *t);
struct dtc_slot *dtc_slot_wait(struct dtc *t);
void dtc_slot_put(struct dtc *t, struct dtc_slot *slot);
void dtc_slot_line(struct dtc *t);

/* worker.c */
int dtc_workers_init(struct dtc *t);
void dtc_workers_destroy(struct dtc *t);
void dtc_ready(struct dtc *t, struct dtc_set *set);
void dtc_hurry(struct dtc *t);

/* evict.c */
int dtc_evict_init(struct dtc *t);
void dtc_evict_destroy(struct dtc *t);
void dtc_evict(struct dtc *t, struct dtc_set *set);
void dtc_want(struct dtc *t, struct dtc_set *set, struct dtc_slot *slot);
void dtc_want_block(struct dtc *t, u64 block);
bool dtc_drop_clean(struct dtc *t, u64 block);
void dtc_forgive(struct dtc *t, struct dtc_slot *slot);
void dtc_retry_later(struct dtc *t);

/* params.c */
int dtc_params_parse(struct dtc *t, unsigned int argc, char **argv);
int dtc_params_set(struct dtc *t, const char *key, const char *value);
void dtc_params_print(struct dtc *t, char *result, unsigned int maxlen, unsigned int *len);

/* state.c */
void dtc_postsuspend(struct dm_target *ti);
void dtc_resume(struct dm_target *ti);
int dtc_flush(struct dtc *t);

/* status.c */
void dtc_status(struct dm_target *ti, status_type_t type, unsigned int flags, char *result,
		unsigned int maxlen);
int dtc_latency_print(struct dtc *t, char *result, unsigned int maxlen);

static inline void dtc_count(struct dtc *t, enum dtc_counter counter, u64 n)
{
	this_cpu_add(t->stats->count[counter], n);
}

/* A moment to measure from; 0: not measured. */
static inline u64 dtc_now(const struct dtc *t)
{
	return unlikely(READ_ONCE(t->latency)) ? ktime_get_ns() : 0;
}

/* Since @began, it was this phase; returns the moment at which the next begins. */
static inline u64 dtc_lap(struct dtc *t, enum dtc_phase phase, u64 began)
{
	u64 now;

	if (likely(!began))
		return 0;
	now = ktime_get_ns();
	latency_add(&t->stats->phase[phase], now - began);
	return now;
}

#endif
