/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * dm-forebay-transit.ko: a cache in DRAM that writes pass through on their way to a block device
 * without a cache of its own, such as a BTT. The module implements I/O transit caching and the staging
 * policies that the paper compares with transit caching. The cache is volatile, as a disk's write cache
 * is.
 *
 * Files, from the top down. A file calls only files below its own row; policies are called through
 * struct dtc_policy.
 *	target.c status.c params.c	constructor, messages, status line, options
 *	shutdown.c			the machine stops or restarts
 *	state.c				suspend, resume, the message flush
 *	registry.c instance.c		a reload hands failed blocks to the next table; memory of one target
 *	map.c				entry from device-mapper: dispatches each bio by its operation
 *	  write.c			stores blocks in slots, or bypasses the cache
 *	  read.c			copies cached blocks, remaps the others to the device
 *	  discard.c			discards and zeroes
 *	  bio.c				ends a bio; copies between a bio and a slot
 *	worker.c			worker threads: take sets from the ready list, sleep when idle
 *	  evict.c			writes slots to the device
 *	retry.c				retries failed writes, reports the device's health
 *	policy.h, policy/		when a block is evicted; one file a policy
 *	drain.c				a flush: waits until older blocks are on the device
 *	want.c				requests evictions
 *	set.c				sets of slots, found by block number; waiting for a block's users
 *	error.c				failed writes and flushes: what is counted, when a retry is due
 *	slot.c				the slots' memory, the free set, writers that wait for a slot
 *	range.c				discards and zeroes in flight
 *	ready.c				the list of sets with work, and the waking of workers
 *	trace.c				tracepoints
 *
 * SLOTS hold one block each. No table maps blocks to slots: a hash of the block's number selects a set,
 * and the set's queue is searched. A slot's state is one of
 *	free		in the free set
 *	pending		in its set's queue; a writer copies a block into the slot
 *	valid		holds the newest version of its block
 *	evicting	as valid; this version, or a newer one that bypasses the cache, is in flight
 *
 * INVARIANTS
 * - A block is in at most one slot. While a write of the block is in flight, by eviction or bypass,
 *   other writers of the block wait. So versions reach the device in the order in which they were
 *   written, and at most one bio that writes a block is in flight.
 * - The bytes of a slot change only while the slot is pending. A slot becomes pending only when it has
 *   no readers. So readers and the device see whole versions.
 * - A writer that waits for a slot's readers blocks new readers, so that a steady stream of readers
 *   doesn't starve the writer.
 * - A slot becomes free only after the device has acknowledged its block or a newer version of the
 *   block. So a reader that finds no slot may read the device at any later time.
 * - A block whose write failed stays readable in its slot and is retried. Flushes that cover the block
 *   fail.
 * - A new table owns the failed blocks of the old table before the new table's first bio arrives.
 * - A bio lies within one chunk, hence within one set. Discards and zeroes are the exception.
 * - A task in map never waits for a bio that the same call has remapped, because device-mapper submits
 *   a remapped bio only after map returns. All evictions are submitted by workers.
 *
 * LOCK ORDER, outermost first. All are spinlocks taken with interrupts off, since bios complete in
 * interrupts:
 *	set->lock			the set's queue, slot headers and ranges
 *	t->discards.lock		ranges of discards and zeroes
 *	the policy's own lock		the policy's lists
 *	t->free.lock			writers that wait for a slot
 *	t->ready.timed_wait.lock	a worker in its timed wait
 * t->ready.lock is a mutex among workers; no other lock is taken inside it.
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

/*
 * device-mapper splits bios at multiples of this many blocks (a chunk); all blocks of a chunk are in
 * one set.
 */
#define DTC_CHUNK_SHIFT	4
/* Average number of slots a set has when the cache is full; gives the number of sets. */
#define DTC_SET_SLOTS	4
/* Failed writes of a block after which flushes fail. */
#define DTC_MAX_RETRIES	5
#define DTC_MAX_WORKERS BITS_PER_LONG

#define DTC_NO_BLOCK	U64_MAX
#define DTC_NO_SLOT	U32_MAX

enum dtc_slot_state { DTC_FREE, DTC_PENDING, DTC_VALID, DTC_EVICTING };

struct dtc_slot {
	struct list_head queue;		/* in set->queue, in the order of writing */
	struct list_head policy;	/* in a list of the policy */
	u64 block;			/* DTC_NO_BLOCK: the slot is free */
	u32 next;			/* the next slot of the free set */
	u32 stamp;			/* t->stamp at the first write since the slot was clean: drain.c */
	u32 readers;			/* tasks that copy from the slot */
	u8 state;
	bool wanted : 1;		/* eviction was requested */
	bool clean : 1;			/* valid, and the device has the same version */
	u8 retries;			/* failed writes since the last success */
	u8 writers_waiting;			/* writers that wait for the readers: blocks new readers */
};

/* Blocks that a bio in flight will write. */
struct dtc_range {
	struct hlist_node node;
	u64 first, last;
};

struct dtc_set {
	spinlock_t lock;		/* protects all of the set, and its slots' headers */
	u32 dirty;			/* slots that are not clean */
	u32 listed;			/* on the ready list; changed without the lock */
	struct llist_node ready;	/* node in the ready list */
	struct list_head queue;
	struct hlist_head ranges;	/* of writes that bypass the cache */
	wait_queue_head_t wait;		/* woken at any change of the set */
};

/* The free set: a stack of slots linked by ->next. */
struct dtc_free_set {
	atomic64_t head;		/* low half: number of the first slot; high half: counts changes */
	atomic_t nr;
	u32 waiting;			/* number of waiters; read without the lock */
	spinlock_t lock;		/* protects the list of waiters */
	struct list_head waiters;
} ____cacheline_aligned_in_smp;

/* The ready list: sets with slots to evict. */
struct dtc_ready {
	struct llist_head added;	/* the newest first */
	u32 polls;			/* busy polls that idle workers still do before a timed wait */
	wait_queue_head_t timed_wait;		/* a worker in its timed wait */
	/* Workers only: in a cache line that writers don't change. */
	struct mutex lock ____cacheline_aligned_in_smp;	/* protects the fields below */
	struct llist_node *fifo;	/* the oldest first; older than all of @added */
	u32 nr;				/* length of @fifo */
} ____cacheline_aligned_in_smp;

struct dtc_worker {
	struct work_struct work;
	struct dtc *t;
};

/* Discards and zeroes in flight. */
struct dtc_discards {
	spinlock_t lock;		/* protects the fields below */
	u32 nr;				/* length of @ranges; read under any set's lock */
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

/* The phases of a write, then other operations: docs/transit.md. */
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
	u8 given;			/* a bit for each option in the table line */
};

/* One target: the instance of one table line. */
struct dtc {
	struct dm_target *ti;		/* NULL: the table is gone, see registry.c */
	struct dm_dev *lower;
	struct list_head registered;
	struct mapped_device *md;
	u64 begin, len;			/* sectors of the mapped device */
	struct dtc_params params;
	u32 block_shift;		/* log2 of the sectors in a block */
	const struct dtc_policy *policy;
	void *policy_data;

	void *data;			/* the blocks' bytes, slot after slot */
	struct dtc_slot *slots;
	u32 nr_slots;			/* 0: all bios bypass the cache */
	struct dtc_set *sets;
	u32 set_bits;
	u64 seed;			/* random: prevents chosen blocks from falling into one set */
	unsigned long *occupied;	/* a bit for each set with slots that are not clean */
	u32 next_set;			/* where dtc_want_some() continues */
	atomic_t stamp;			/* number of the next drain */
	spinlock_t flush_lock;		/* protects the next two fields */
	u32 failed_stamp;		/* minimum stamp of flushes that began after the last failed one */
	bool flush_failed;		/* no such flush has succeeded: map.c; read without the lock */

	struct dtc_free_set free;
	struct dtc_discards discards;

	struct dtc_ready ready;
	struct dtc_worker *workers;	/* DTC_MAX_WORKERS of them */
	unsigned long awake;		/* a bit for each worker that runs */
	struct workqueue_struct *evictors;
	struct bio_set bios;
	struct workqueue_struct *events;	/* runs the policy's work, and the next one */
	struct work_struct shutdown;	/* runs dtc_shutdown_work() */
	struct delayed_work retry;	/* runs dtc_retry() */
	bool suspended;			/* suspended, or not yet resumed: no retries */
	atomic_t nr_failed;		/* slots with ->retries > 0 */
	bool failing;			/* at least one slot had DTC_MAX_RETRIES failed writes */

	unsigned long last_bio;		/* jiffies at the last bio */
	bool latency;			/* measure latencies */
	struct dtc_stats __percpu *stats;
};

enum dtc_bio_kind { DTC_BIO_OTHER, DTC_BIO_BYPASS, DTC_BIO_DISCARD, DTC_BIO_READ, DTC_BIO_FLUSH };

/* Per-bio data. */
struct dtc_bio {
	struct dtc_range range;
	struct dtc_set *set;
	u64 start_ns;
	u32 stamp;			/* t->stamp when the flush arrived */
	u8 kind;
};

static inline struct dtc_bio *dtc_bio_data(struct bio *bio)
{
	return dm_per_bio_data(bio, sizeof(struct dtc_bio));
}

static inline bool dtc_slot_in_blocks(const struct dtc_slot *slot, u64 first, u64 last)
{
	return slot->block >= first && slot->block <= last;
}

static inline bool dtc_slot_in_range(const struct dtc_range *range, const struct dtc_slot *slot)
{
	return dtc_slot_in_blocks(slot, range->first, range->last);
}

static inline bool dtc_overlaps(const struct dtc_range *range, u64 first, u64 last)
{
	return range->first <= last && range->last >= first;
}

/* The last retry failed and none is requested: waiters give up on the slot. */
static inline bool dtc_given_up(const struct dtc_slot *slot)
{
	return slot->retries == DTC_MAX_RETRIES && slot->state == DTC_VALID && !slot->wanted;
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

static inline int dtc_remap(struct dtc *t, struct bio *bio)
{
	bio_set_dev(bio, t->lower->bdev);
	return DM_MAPIO_REMAPPED;
}

/* ready.c */
void dtc_ready_init(struct dtc *t);
void dtc_ready_add(struct dtc *t, struct dtc_set *set);
struct dtc_set *dtc_ready_next(struct dtc *t);
void dtc_wake_worker(struct dtc *t);
void dtc_expedite(struct dtc *t);

static inline bool dtc_ready_any(const struct dtc *t)
{
	return READ_ONCE(t->ready.fifo) || !llist_empty(&t->ready.added);
}

/* slot.c */
int dtc_slots_init(struct dtc *t);
void dtc_slots_destroy(struct dtc *t);
struct dtc_slot *dtc_slot_get(struct dtc *t);
struct dtc_slot *dtc_slot_wait(struct dtc *t);
void dtc_slot_put(struct dtc *t, struct dtc_slot *slot);
void dtc_slot_wake_waiters(struct dtc *t);

/* range.c */
void dtc_discards_init(struct dtc *t);
void dtc_discards_add(struct dtc *t, struct dtc_range *range);
void dtc_discards_remove(struct dtc *t, struct dtc_range *range);
bool dtc_discards_overlap(struct dtc *t, u64 first, u64 last);
void dtc_discards_wait(struct dtc *t, u64 first, u64 last);

/* error.c */
void dtc_clear_retries(struct dtc *t, struct dtc_slot *slot);
void dtc_write_error(struct dtc *t, struct dtc_slot *slot, blk_status_t status);
void dtc_retry_later(struct dtc *t);
void dtc_flush_ended(struct dtc *t, u32 stamp, bool failed);

/* set.c */
int dtc_sets_init(struct dtc *t);
void dtc_sets_destroy(struct dtc *t);
struct dtc_slot *dtc_set_find(struct dtc_set *set, u64 block);
void dtc_set_wait_idle(struct dtc *t, struct dtc_set *set, u64 first, u64 last, const struct dtc_range *own);
void dtc_set_lock_idle(struct dtc *t, struct dtc_set *set, u64 first, u64 last) __acquires(&set->lock);
void dtc_set_lock_range(struct dtc *t, struct dtc_set *set, struct dtc_range *range) __acquires(&set->lock);
void dtc_set_wake(struct dtc_set *set);
void dtc_set_dirty(struct dtc *t, struct dtc_set *set, int by);
void dtc_set_remove(struct dtc *t, struct dtc_set *set, struct dtc_slot *slot);
void dtc_set_put_reader(struct dtc *t, struct dtc_set *set, struct dtc_slot *slot);

/* want.c */
void dtc_want(struct dtc *t, struct dtc_set *set, struct dtc_slot *slot);
void dtc_want_block(struct dtc *t, u64 block);
void dtc_want_some(struct dtc *t);
void dtc_want_all(struct dtc *t);
bool dtc_invalidate_clean(struct dtc *t, u64 block);

/* drain.c */
int dtc_drain(struct dtc *t, bool interruptible);

/* evict.c */
int dtc_evict_init(struct dtc *t);
void dtc_evict_destroy(struct dtc *t);
void dtc_evict(struct dtc *t, struct dtc_set *set);

/* retry.c */
void dtc_retry_init(struct dtc *t);

/* worker.c */
int dtc_workers_init(struct dtc *t);
void dtc_workers_destroy(struct dtc *t);

/* bio.c */
int dtc_ended(struct bio *bio, blk_status_t status);
void dtc_copy_block(struct dtc *t, struct bio *bio, struct dtc_slot *slot, bool to_bio);

/* write.c */
int dtc_write(struct dtc *t, struct bio *bio);
void dtc_bypass_done(struct dtc *t, struct bio *bio, blk_status_t status);

/* read.c */
int dtc_read(struct dtc *t, struct bio *bio);

/* discard.c */
int dtc_discard(struct dtc *t, struct bio *bio);

/* map.c */
int dtc_map(struct dm_target *ti, struct bio *bio);
int dtc_end_io(struct dm_target *ti, struct bio *bio, blk_status_t *status);

/* params.c */
int dtc_params_parse(struct dtc *t, unsigned int argc, char **argv);
int dtc_params_set(struct dtc *t, const char *key, const char *value);
void dtc_params_print(struct dtc *t, char *result, unsigned int maxlen, unsigned int *len);

/* instance.c */
int dtc_alloc(struct dtc *t);
void dtc_destroy(struct dtc *t);

/* registry.c */
int dtc_register(struct dtc *t);
int dtc_inherit(struct dtc *t);
void dtc_free_predecessors(struct dtc *t);
void dtc_for_each(void (*fn)(struct dtc *t));
void dtc_retire(struct dtc *t);

/* shutdown.c */
void dtc_shutdown_init(struct dtc *t);
int dtc_shutdown_register(void);
void dtc_shutdown_unregister(void);

/* state.c */
int dtc_preresume(struct dm_target *ti);
void dtc_postsuspend(struct dm_target *ti);
void dtc_resume(struct dm_target *ti);
int dtc_make_durable(struct dtc *t, bool interruptible);
int dtc_flush(struct dtc *t);

/* status.c */
void dtc_status(struct dm_target *ti, status_type_t type, unsigned int flags, char *result,
		unsigned int maxlen);
int dtc_latency_print(struct dtc *t, char *result, unsigned int maxlen);

static inline void dtc_count(struct dtc *t, enum dtc_counter counter, u64 n)
{
	this_cpu_add(t->stats->count[counter], n);
}

/* Start of a measurement in ns; 0: latencies are not measured. */
static inline u64 dtc_now(const struct dtc *t)
{
	return unlikely(READ_ONCE(t->latency)) ? ktime_get_ns() : 0;
}

/* Accounts the time since @start_ns to @phase. Returns the start of the next phase in ns. */
static inline u64 dtc_lap(struct dtc *t, enum dtc_phase phase, u64 start_ns)
{
	u64 now;

	if (likely(!start_ns))
		return 0;
	now = ktime_get_ns();
	latency_add(&t->stats->phase[phase], now - start_ns);
	return now;
}

#endif
