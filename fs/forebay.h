/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * forebay.ko: a persistence-aware page cache stacked over a local file system.
 *
 * The floors, from the ground up. A file includes only headers of its own floor and of those below
 * (scripts/floors); docs/architecture.md says more.
 *
 *	fs/		what every floor uses: fail.c (why a mount fails), range_lock.c (pages that are
 *			worked on below, or move), trace.c
 *	lower/		the file system below: lower.c (credentials, opening, syncing), attr.c
 *	names/		the name log: begin.c, record.c (what a change leaves), object.c, extra.c (what a new
 *			object has inherited), attr.c, commit.c (what sync calls have of it), log.c (its
 *			life), premise.c (which file systems can have one)
 *	page/		DAX pages and file records: device.c, alloc.c, share.c (what a file may keep), bad.c
 *			(pages that can't be read), copies.c (bytes to and from PMem), mapping.c (how the
 *			kernel sees a DAX page), index.c (a page's life), entry.c, record.c, size.c (a size's
 *			life), times.c, zero.c, walk.c
 *	pin/		ranges that belong in PMem: vma.c (what mappings say), tree.c (which pages, whose),
 *			belong.c (what both say), lock.c (of mlock()), pin.c (from when, until when), limit.c
 *	sync/		what sync calls make durable, and a page's way in: sync.c, syncfs.c, mapped.c (stores
 *			through mappings), tracker.c, cost.c (where the pages go), latency.c, absorb.c,
 *			overwrite.c, promote.c, move.c, reserve.c, stored.c, replace.c (files that take the
 *			place of others)
 *	writeback/	a page's way out: worker.c, age.c (when), writeback.c, turn.c, evict.c, reclaim.c,
 *			records.c, deferred.c (deleted and truncated files), recover.c (pages found at mount),
 *			found.c, restore.c (pages of files that replay makes again)
 *	replay/		the name log at mount: replay.c (the steps), decide.c, discard.c, make.c, bind.c,
 *			attr.c, xattr.c, stage.c (the staging folder), find.c, change.c, list.c, tell.c
 *	vfs/		the kernel's entry points: super.c mount.c params.c sysfs.c, inode.c, namei.c dentry.c
 *			attr.c xattr.c dir.c export.c, file.c io.c read.c write.c direct.c seek.c, range.c
 *			truncate.c, mmap.c fault.c mkwrite.c, ioctl.c range_ioctl.c lower_ioctl.c info.c,
 *			drain.c place.c
 *
 * Lock order, outermost first (upper = ours, lower = of the file system below):
 *	upper sb->s_umount
 *	fb_sb->deleted_lock		deletions become durable
 *	lower sb->s_umount
 *	upper inode->i_rwsem
 *	mmap_lock			faults enter here, also those of a write, which holds i_rwsem
 *	fb_inode->sync_lock		one sync call at a time takes what is not durable
 *	fb_inode->wb_lock		one writeback, truncation or eviction at a time; no task takes it
 *					under sync_lock, nor sync_lock under it
 *	fb_inode->ranges		pages that don't move, or do; see below. A clone takes wb_lock and a
 *					range of two files, under both i_rwsem (vfs/range.c)
 *	fb_sb->changes			names and attributes change below; names/names.h
 *	lower inode->i_rwsem, lower invalidate_lock, lower folio lock
 *	fb_sb->copies.slots		a task copies to PMem; page/copies.c
 *	fb_inode->io_sem		see below
 *	fb_inode->index.xa_lock, fb_sb->lru_lock
 *
 * Two locks say where a page is:
 *   - A range of pages (range_lock.c) is held over work below, shared by reads, writes and faults that
 *     have seen their pages below, exclusively by a task that moves pages into PMem or hands a range to
 *     the lower file system. It holds up no work elsewhere in the file: no lock of a whole file is held
 *     over I/O.
 *   - io_sem is held for memory accesses only. Shared: from the look-up in the index until a DAX page's
 *     bytes are copied, or it is mapped. Exclusively: pages enter and leave the index; the file record and
 *     sizes change.
 * A page enters the index under both, exclusively. It leaves under io_sem and wb_lock; if it must not come
 * back meanwhile, with its range locked exclusively. A task that is about to change a DAX page looks
 * whether the page's range is locked so, and waits (fb_range_is_exclusive()).
 *
 * A task that holds either takes no page fault, because the fault may have to take the same lock. Copies to
 * and from user memory run with page faults disabled, and are tried again after faulting in (vfs/io.c).
 */
#ifndef FOREBAY_FS_H
#define FOREBAY_FS_H

#include <linux/backing-file.h>
#include <linux/blkdev.h>
#include <linux/fs.h>
#include <linux/list.h>
#include <linux/mount.h>
#include <linux/namei.h>
#include <linux/pagemap.h>
#include <linux/percpu_counter.h>
#include <linux/rwsem.h>
#include <linux/semaphore.h>
#include <linux/workqueue.h>
#include <linux/xarray.h>

#include "../include/uapi/linux/forebay.h"
#include "../core/latency.h"
#include "../core/store/store.h"
#include "../core/pm/ranges.h"
#include "range_lock.h"

#undef pr_fmt
#define pr_fmt(fmt) "forebay: " fmt

/*
 * One page of the cache device, in DRAM. Its life is told at the head of
 * page/index.c.
 */
struct fb_page {
	struct list_head lru;		/* free, clean or out-of-sync list */
	struct fb_inode *owner;		/* NULL while free */
	pgoff_t index;
	u32 status;			/* FB_STATUS_*, one state and flags */
	u32 unmapped_in;		/* fb_inode->flushes, when it lost its mappings; sync/mapped.c */
	u8 heat, syncs_left;		/* for so many sync calls it stays mapped; sync/mapped.c */
	bool referenced;		/* used since the reclaimer last looked */
	bool resident;			/* in a pinned range: never reclaimed (pin/tree.c) */
	bool has_space;			/* below; else nothing was stored since it was copied from there */
	bool stored;			/* a holder may store to it (sync/stored.c); under index.xa_lock */
	bool bad;			/* the device can't read it: never used again (page/bad.c) */
};

#define FB_STATUS_FREE		PS_PAGE_FREE
#define FB_STATUS_OUT_OF_SYNC	PS_PAGE_OUT_OF_SYNC
#define FB_STATUS_CLEAN		PS_PAGE_CLEAN
#define FB_STATUS_STATE		3	/* mask of the three above */
#define FB_STATUS_DIRTY		4	/* mapped stores may sit in CPU caches */
#define FB_STATUS_WRITEBACK	8	/* being copied below; cleared by a change of the page */
#define FB_STATUS_HOT		16	/* dirty, and mapped writable since before the last sync call */

/* Marks of fb_inode->index, for walks; the truth is in struct fb_page. */
#define FB_MARK_DIRTY		XA_MARK_0
#define FB_MARK_OUT_OF_SYNC	XA_MARK_1
#define FB_MARK_RECLAIM		XA_MARK_2	/* out-of-sync, and clean it could be reclaimed */

enum fb_counter {
	FB_SYNCS_ABSORBED, FB_SYNCS_LOWER, FB_PAGES_ABSORBED, FB_PAGES_WRITTEN_BACK,
	FB_PAGES_RECLAIMED, FB_CACHE_FULL, FB_WRITEBACK_ERRORS, FB_PAGES_RECOVERED,
	FB_COPIED_IN, FB_COPIED_OUT, FB_COPIED_BACK, FB_MAPPED_STORES,	/* page/copies.c */
	FB_NR_COUNTERS
};

/* What a sync call waits for: its own stores alone, moves of pages into PMem, or the lower file system. */
enum fb_sync_kind { FB_SYNC_MEMORY, FB_SYNC_MOVE, FB_SYNC_STORAGE, FB_NR_SYNC_KINDS };

enum fb_mode { FB_MODE_AUTO, FB_MODE_EXPLICIT };

/* Volatile pages written since the last sync, until their ranges are too many; sync/tracker.c */
#define FB_TRACK_FEW		8

struct fb_tracker {
	unsigned int nr_ranges;
	unsigned int max_ranges;	/* for so many there is space */
	unsigned long nr_pages;
	bool overflow;
	struct fb_pages_from { pgoff_t start, end; } few[FB_TRACK_FEW];	/* end is exclusive */
	struct fb_pages_from *more;	/* instead of few, when they are more; allocated */
	struct fb_pages_from stored;	/* through mappings: between these */
};

/* What a call takes lately, in ns: whatever its size, and for each page besides; sync/cost.c */
struct fb_cost {
	u64 call, page;
};

/* A size, and fb_inode->truncate_seq before it: not used if that is odd, or another one by now. */
struct fb_size_seen {
	loff_t size;
	unsigned int truncate_seq;
};

/* In nanoseconds since 1970: the lower file's ctime, and what the record says; page/times.c */
struct fb_times {
	s64 lower, record;
};

/* Bits of fb_inode->flags. */
enum {
	FB_NEEDS_SYNC,		/* even fdatasync must go below: new, renamed, truncated … */
	FB_NEEDS_FSYNC,		/* fsync must go below: mode, owner, times, xattrs, and names once more */
	FB_PINNED,		/* we hold a reference on the inode, for its pages */
	FB_SYNCED_IN_PMEM,	/* the last sync that had data to make durable needed PMem alone */
	FB_SIZE_EXACT,		/* recovery truncates the lower file to record_size */
	FB_TRUNCATED,		/* to truncated_to, before it was durable; no record says so yet */
	FB_STORED_MAPPED,	/* stored_below had no memory: each volatile page may be in it */
	FB_IS_BELOW,		/* a sync below, or recovery, has shown that a crash leaves the file */
	FB_LAST_NAME_GOES,	/* it is being unlinked, or replaced by a rename */
	FB_DAX_MAPPED,		/* it had a MAP_SYNC mapping, and may have one still */
	FB_STORED_DAX,		/* a DAX page may be mapped writable since before the last sync call */
	FB_RECORD_USED,		/* its record was of use since the worker last looked for one to take */
	FB_NAMELESS_SYNCED,	/* a sync below has begun when it had no name */
	FB_HAS_TURN,		/* turn.work is queued, or at work */
	FB_WRITE_FAILED,	/* the last writeback of its pages has; counted in fb_sb->nr_failing */
	FB_TURN_IN_VAIN,	/* the last turn was; there is none before turn.next */
};

/* In jiffies, before a worker tries again what storage refused. */
#define FB_RETRY_DELAY	(5 * HZ)

#define FB_NO_FILE		U32_MAX

/* Why a range belongs in PMem; pin/pin.c */
enum fb_pin_kind { FB_ATTACHED, FB_PINNED_RANGE, FB_LOCKED, FB_NR_PIN_KINDS };

/* In fb_sb->inodes, fb_sb->locked. */
struct fb_sb_link {
	struct list_head list;
	struct fb_inode *fi;		/* NULL: the place of a walk */
};

struct fb_walk {
	struct fb_sb_link at, end;	/* behind the last that was visited; and behind the last to visit */
};

struct fb_inode {
	struct inode vfs_inode;
	struct inode *lower;
	unsigned long flags;

	struct mutex sync_lock;		/* one sync call at a time takes what is not durable */
	struct {			/* lower fsyncs of sync calls; sync/sync.c */
		unsigned int begun;	/* number of the last; under sync_lock */
		unsigned int noted;	/* the youngest whose times are known to be below; under io_sem */
		atomic_t in_flight;	/* how many have taken something, and have not ended */
		atomic_t of_names;	/* how many of those have taken FB_NEEDS_SYNC */
	} syncs_below;
	struct fb_size_seen size_to_sync;	/* what fb_sync_all() is about to have made durable, */
	struct fb_times times_to_sync;	/* likewise, */
	u64 looked_at_by;		/* the last such call's number, between its two looks; else 0 */
	struct fb_range_lock ranges;	/* pages that are worked on below, or move; see above */
	struct rw_semaphore io_sem;	/* where pages are, the file record, sizes; see above */
	struct mutex wb_lock;		/* one writeback, truncation or eviction at a time */
	struct {			/* writeback/turn.c; while FB_HAS_TURN is set, its owner's */
		struct work_struct work;
		struct list_head list;	/* fb_sb->turns */
		const void *group;	/* stands for the cgroup that is charged */
		unsigned long budget;
		unsigned long next;	/* with FB_TURN_IN_VAIN, in jiffies */
	} turn;
	struct xarray index;		/* page index -> struct fb_page * */
	struct address_space dax_mapping;	/* page->mapping of the pages in index; page/mapping.c */
	unsigned long nr_pages;		/* in index; under its lock */
	unsigned long nr_shared;	/* of these, without resident ones; under lru_lock; page/share.c */
	unsigned long used_at;		/* fb_sb->nr_given_up at the last use; page/share.c */
	unsigned long nr_hot;		/* FB_STATUS_HOT, likewise */
	unsigned int waits_in_vain;	/* for a free page, less pages since; under lru_lock; page/alloc.c */
	u32 flushes;			/* sync calls that found dirty pages; under sync_lock */
	unsigned long out_of_sync_since;	/* jiffies; while pages are out-of-sync (writeback/age.c) */
	struct xarray stored_below;	/* volatile pages that were writable in a mapping; sync/stored.c */
	spinlock_t tracker_lock;	/* tracker */
	struct fb_tracker tracker;
	unsigned long overwritten;	/* pages that fb_overwrite() took since the last sync */
	unsigned long overwrite_max;	/* how many it may take until the next */
	unsigned int appended;		/* pages, before space was set aside; sync/reserve.c */
	loff_t reserved;		/* the lower file has space up to here; or FB_RESERVE_* */

	u32 file;			/* file record, or FB_NO_FILE */
	u32 generation;			/* of this life of the record */
	u64 record_size;		/* the size in it; this and the next three: page/size.c */
	loff_t durable_size;		/* a crash leaves at least this size; */
	loff_t below_size;		/* the same without its record; raised with i_lock */
	loff_t truncated_to;		/* with FB_TRUNCATED; under io_sem */
	unsigned int truncate_seq;	/* odd while the file is truncated; page/size.c */
	s64 record_time, below_time, durable_time;	/* page/times.c */
	unsigned long stored_since;	/* FB_STORED_DAX is set; in jiffies; sync/mapped.c */
	struct file *wb_file;		/* lower file, for writeback; while there is a record */
	struct fb_sb_link sb_link;	/* while there is a record */
	struct rb_root_cached pins[FB_NR_PIN_KINDS];	/* pin/tree.c; changed under io_sem */
	unsigned int nr_file_owned;	/* pins that the file itself owns (FOREBAY_KEEP) */
	struct list_head file_owned;	/* fb_sb->file_owned, while nr_file_owned isn't 0 */
	struct fb_sb_link lock_link;	/* while there are pins of mlock()'s */
	struct list_head accounts;	/* pin/limit.c: users with pinned pages; changed under io_sem */

	struct {			/* names/record.c; changed under the upper inode's lock */
		u64 end;		/* of the last record that a sync call has to commit; 0: none */
		u64 birth;		/* place of its creation's record; 0: not known */
		s64 btime;		/* of the lower inode, in ns since 1970; 0: not known */
		u64 counter;		/* of the lower directory, after our last change of it */
		unsigned int life;	/* of the log, when it was read */
		s64 mtime, ctime;	/* that records have, in ns; ctime 0: none */
		s64 named;		/* ctime of a new name, or of one less, with another mtime */
		s64 apart;		/* ctime of the last change that left another mtime */
	} names;
};

static inline struct fb_inode *FB_I(const struct inode *inode)
{
	return container_of(inode, struct fb_inode, vfs_inode);
}

/* Files of one size, in powers of two, and their pages; page/share.c */
struct fb_share {
	unsigned long files, pages;
};

#define FB_SHARE_SIZES		32

/* What the kernel may copy; page/copies.c */
struct fb_copy_limits {
	u64 all, user;			/* bytes a second; 0: no limit; FB_NO_LIMIT: as it is */
	unsigned int tasks;		/* that copy at a time; 0: no bound; FB_TASKS_AS_IS */
};

struct fb_sb {
	struct super_block *sb;
	struct path lower;		/* root below, on a private mount */
	dev_t lower_dev;		/* its st_dev */
	errseq_t lower_wb_err;		/* its errors that syncfs() has told; under inodes_lock */
	const struct cred *cred;	/* the mounter's */
	const struct cred *space_cred;	/* the same, without a right to what is reserved or beyond a quota */
	enum fb_mode mode;
	struct fb_cost lower_cost, absorbed_cost;	/* of syncs of volatile pages; sync/cost.c */
	atomic_t syncs_too_large;	/* for PMem, by these costs */
	atomic64_t syncs_of_all;	/* numbers the calls of fb_sync_all() */

	struct file *cache_file;
	char *cache_path;		/* as given to mount */
	char cache_name[DISK_NAME_LEN];
	struct dax_device *dax;
	pgoff_t dax_start;		/* where the cache begins on it */
	u64 first_pfn;
	struct pm_range range;		/* its memory */
	bool is_volatile;		/* the cache is ordinary memory */
	bool zero_freed;		/* free pages hold zeros */
	unsigned int writeback_age;	/* seconds; 0: pages may be out-of-sync for ever */
	u64 age_requests;		/* of storage, when age_work ended */
	struct delayed_work age_work;
	struct ps ps;
	struct fb_names *names;		/* names/names.h; NULL: the cache has no name log */
	struct rw_semaphore changes;	/* with a log, shared: names or attributes are changed below */
	struct fb_page *pages;

	spinlock_t lru_lock;		/* five lists, pages[].lru, counts; busy pages wait to be free */
	struct list_head free_pages, busy_pages, clean_pages, out_of_sync_pages, resident_pages;
	unsigned long nr_free, nr_clean, nr_out_of_sync;
	unsigned long nr_resident, nr_resident_clean;	/* of the other two */
	unsigned long nr_lost;		/* of all that are not free: bad ones */
	struct fb_share shares[FB_SHARE_SIZES];	/* without resident pages */
	unsigned long nr_given_up;	/* by reclaim, so far */
	bool nothing_frees;		/* a task has waited in vain for a free page; page/alloc.c */
	unsigned long want_free;	/* so many free pages a sync has missed; page/alloc.c */
	atomic_long_t nr_dirty, nr_unplaced;
	unsigned long nr_busy;		/* that kept the last drain from its end */

	spinlock_t files_lock;		/* the file records' next three */
	unsigned long *files_used;	/* bitmap of file records */
	u32 nr_files_used, next_file;

	struct {			/* pin/limit.c */
		spinlock_t lock;
		struct list_head users;	/* that have pinned something: struct fb_pin_user */
		unsigned long charged, max, max_of_user;	/* in pages */
		u32 files_charged;	/* a file that several users have pinned counts for each */
	} pins;

	struct {			/* page/copies.c */
		bool limited;
		struct fb_copy_limits limits;
		atomic64_t due;		/* of all users; in ns, by ktime_get_ns() */
		struct xarray users;	/* struct fb_copy_user, by the user's number */
		struct semaphore slots;	/* of tasks that copy */
		unsigned int nr_slots;	/* free or taken; changed by mount and remount */
	} copies;

	spinlock_t inodes_lock;		/* inodes, locked, deleted, file_owned, turns, left, lower_wb_err */
	struct list_head inodes;	/* fb_inode->sb_link, places of walks, and record_hand */
	struct fb_sb_link record_hand;	/* in inodes: where the worker looks for records next */
	struct list_head locked;	/* fb_inode->lock_link, likewise */

	struct list_head deleted;	/* struct fb_deleted, under inodes_lock */
	struct mutex deleted_lock;	/* one task at a time makes deletions durable; writeback/deferred.c */
	struct list_head file_owned;	/* fb_inode->file_owned, under inodes_lock */
	struct list_head turns;		/* fb_inode->turn.list, under inodes_lock */
	struct list_head left;		/* struct fb_left, under inodes_lock; sync/stored.c */
	bool left_unknown;		/* one is missing in left */
	struct fb_recovered *recovered;	/* pages not attached to an inode yet */

	struct workqueue_struct *wq;
	struct workqueue_struct *turn_wq;	/* writeback/turn.c */
	struct workqueue_struct *mounter_wq;	/* fb_run_as_mounter() */
	struct delayed_work writeback_work;	/* writeback/worker.c */
	struct delayed_work orphan_work;	/* writeback/deferred.c: deleted and truncated files */
	struct work_struct recover_work;	/* vfs/place.c */
	wait_queue_head_t space_wait;	/* for a free page, or a free file record */
	int last_error;			/* of the last writeback that failed */
	atomic_t nr_failing;		/* files whose last writeback failed */

	struct percpu_counter counters[FB_NR_COUNTERS];
	struct latency __percpu *sync_latencies;	/* by fb_sync_kind; sync/latency.c */
	struct kobject kobj;
	struct completion kobj_gone;
	struct fb_vm_ops *vm_ops;	/* pin/vma.h */
	struct list_head mounts;	/* all of them, vfs/mount.c */
};

static inline struct fb_sb *FB_SB(const struct super_block *sb)
{
	return sb->s_fs_info;
}

/* What a mount or a remount was asked for. */
struct fb_options {
	char *cache;
	enum fb_mode mode;
	bool allow_volatile_cache, zero_freed;
	bool names_discard;		/* the name log is given up, not replayed */
	u64 pin_limit, pin_limit_user;	/* bytes; FB_NO_LIMIT: not given */
	struct fb_copy_limits copy_limits;
	unsigned int writeback_age;	/* seconds; FB_AGE_AS_IS: not given */
};

#define FB_NO_LIMIT	U64_MAX
#define FB_AGE_AS_IS	U32_MAX
#define FB_TASKS_AS_IS	U32_MAX

static inline void fb_count(struct fb_sb *fsb, enum fb_counter which, long n)
{
	percpu_counter_add(&fsb->counters[which], n);
}

/* The dentry below; it lives as long as @dentry does. */
static inline struct dentry *fb_lower_dentry(const struct dentry *dentry)
{
	return dentry->d_fsdata;
}

/* The path below, without references. */
static inline struct path fb_lower_path(const struct dentry *dentry)
{
	return (struct path) { .mnt = FB_SB(dentry->d_sb)->lower.mnt, .dentry = fb_lower_dentry(dentry) };
}

/* Pages of the file; it may become shorter unless io_sem is held. */
static inline pgoff_t fb_pages_in_file(const struct fb_inode *fi)
{
	return DIV_ROUND_UP_ULL(i_size_read(&fi->vfs_inode), PAGE_SIZE);
}

/* The lower file of an open upper file, regular or directory. */
static inline struct file *fb_lower_file(const struct file *file)
{
	return file->private_data;
}

#endif
