/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * forebay.ko: a persistence-aware page cache stacked over a local file system.
 *
 * Where an fsync goes:
 *	sync.c: fb_fsync()		what does this file owe?
 *	  absorb.c: fb_absorb()		few volatile pages: move them to PMem
 *	    page_index.c		where is the page; every state change
 *	      core/pagestore.c		the only code that writes PMem metadata
 *	writeback.c			not on that path: pages go back later
 *
 * The files:
 *	super.c params.c sysfs.c	mount, options, what an administrator sees
 *	cache.c				the PMem device: claim, map, free pages
 *	inode.c				upper inode <-> lower inode, file records
 *	namei.c attr.c xattr.c dir.c export.c	passed on, and nothing else
 *	below.c				write access and credentials for that
 *	file.c				open, read, write: splits DAX / lower ranges
 *	direct.c			direct I/O of lower pages
 *	overwrite.c reserve.c		pages that go to PMem at once; room for them
 *	range.c				fallocate, copy, clone, truncate, seek
 *	mmap.c				faults
 *	mapped.c			asks the mappings: which ranges are DAX, which locked, by whom
 *	claim.c pin_limit.c		ranges that are attached or pinned: whose, and how many pages
 *	pin.c upgrade.c drop.c info.c	what a user asks for: stay in PMem, go there, leave it; what is where
 *	tracker.c			which volatile pages a sync would owe
 *	writeback.c reclaim.c		pages go back below; clean ones make room
 *	settle.c			deleted and cut files, until that is durable below
 *	recover.c			pages found at mount meet their inodes again
 *
 * Lock order, outermost first (upper = ours, lower = of the file system below):
 *	sb->s_umount
 *	fb_inode->sync_lock		one sync call at a time
 *	upper inode->i_rwsem
 *	fb_inode->wb_lock		one writeback, truncation or eviction at a time
 *	mmap_lock			(faults enter here)
 *	fb_inode->io_sem		see below
 *	lower inode->i_rwsem, lower invalidate_lock, lower folio lock
 *	fb_inode->index.xa_lock, fb_sb->lru_lock
 *
 * io_sem says who may decide that a page is where it is. Shared: reads, writes
 * and faults, from the look-up in the index until the bytes are copied or the
 * lower folio is locked. Exclusive: whoever moves pages, briefly. Nobody takes a
 * page fault while holding it: copies to and from user memory run with page
 * faults disabled and are retried after faulting in (file.c), because a fault
 * may have to take it itself.
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
#include <linux/workqueue.h>
#include <linux/xarray.h>

#include "../include/uapi/linux/forebay.h"
#include "../core/pagestore.h"

#undef pr_fmt
#define pr_fmt(fmt) "forebay: " fmt

/*
 * One page of the cache device, in DRAM. Its life is told at the head of
 * page_index.c.
 */
struct fb_page {
	struct list_head lru;		/* free, clean or out-of-sync list */
	struct fb_inode *owner;		/* NULL while free */
	pgoff_t index;
	u32 status;			/* FB_STATUS_*, one state and flags */
	bool referenced;		/* used since the reclaimer last looked */
	bool resident;			/* in a pinned range: never reclaimed (claim.c) */
};

#define FB_STATUS_FREE		PS_PAGE_FREE
#define FB_STATUS_OUT_OF_SYNC	PS_PAGE_OUT_OF_SYNC
#define FB_STATUS_CLEAN		PS_PAGE_CLEAN
#define FB_STATUS_STATE		3	/* mask of the three above */
#define FB_STATUS_DIRTY		4	/* mapped stores may sit in CPU caches */
#define FB_STATUS_WRITEBACK	8	/* being copied below; cleared by whoever changes it */

/* Marks of fb_inode->index, for walks; the truth is in struct fb_page. */
#define FB_MARK_DIRTY		XA_MARK_0
#define FB_MARK_OUT_OF_SYNC	XA_MARK_1
#define FB_MARK_RECLAIM		XA_MARK_2	/* out-of-sync, and clean it could be reclaimed */

enum fb_counter {
	FB_SYNCS_ABSORBED, FB_SYNCS_LOWER, FB_PAGES_ABSORBED, FB_PAGES_WRITTEN_BACK,
	FB_PAGES_RECLAIMED, FB_CACHE_FULL, FB_WRITEBACK_ERRORS, FB_PAGES_RECOVERED,
	FB_NR_COUNTERS
};

enum fb_mode { FB_MODE_AUTO, FB_MODE_EXPLICIT };

/* Volatile pages written since the last sync, until they are too many. */
#define FB_TRACK_RANGES		16
#define FB_TRACK_PAGES		128

struct fb_tracker {
	unsigned int nr_ranges;
	unsigned int nr_pages;
	bool overflow;
	struct fb_pages_from { pgoff_t start, end; } range[FB_TRACK_RANGES];	/* end is exclusive */
	struct fb_pages_from stored;	/* through mappings: between these */
};

/* A size that data is durable up to, once what was tracked then is; unless the file became shorter since. */
struct fb_end {
	loff_t size;
	unsigned int cuts;
};

/* Bits of fb_inode->flags. */
enum {
	FB_OWES_SYNC,		/* even fdatasync must go below: new, renamed, truncated … */
	FB_PAYS_SYNC,		/* it owed that, and the sync is on its way: not durable yet */
	FB_OWES_ATTR,		/* fsync must go below: mode, owner, times, xattrs, and names once more */
	FB_PINNED,		/* we hold a reference on the inode, for its pages */
	FB_SYNCED_IN_PMEM,	/* the last sync that owed data was paid in PMem alone */
	FB_SIZE_EXACT,		/* the record cuts the lower file at record_size after a crash */
	FB_STORED_MAPPED,	/* a volatile page of it was made writable in a mapping, once */
	FB_IS_BELOW,		/* a sync below, or recovery, has shown that a crash leaves the file */
	FB_LAST_NAME_GOES,	/* it is being unlinked, or replaced by a rename */
	FB_DAX_MAPPED,		/* somebody had a MAP_SYNC mapping of it, and may have it still */
};

#define FB_NO_FILE		U32_MAX

/* Why a range belongs in PMem; claim.c */
enum fb_claim_kind { FB_ATTACHED, FB_PINNED_RANGE, FB_LOCKED, FB_NR_CLAIM_KINDS };

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

	struct mutex sync_lock;		/* one sync call at a time */
	struct fb_end end_to_sync;	/* what fb_sync_all() is about to have made durable, */
	bool is_being_synced;		/* between its two looks at the file */
	struct rw_semaphore io_sem;	/* where pages are; see above */
	struct mutex wb_lock;		/* one writeback, truncation or eviction at a time */
	struct xarray index;		/* page index -> struct fb_page * */
	unsigned long nr_pages;		/* in index; under its lock */
	spinlock_t tracker_lock;	/* tracker */
	struct fb_tracker tracker;
	unsigned int overwritten;	/* pages that fb_overwrite() took since the last sync */
	unsigned int appended;		/* pages, before space was set aside; reserve.c */
	loff_t reserved;		/* the lower file has space up to here; or FB_RESERVE_* */

	u32 file;			/* file record, or FB_NO_FILE */
	u64 record_size;		/* the size in it */
	loff_t durable_size;		/* a crash leaves at least this size; */
	loff_t below_size;		/* the same without its record; raised with i_lock */
	unsigned int cuts;		/* how often the file became shorter */
	struct file *wb_file;		/* lower file, for writeback; while there is a record */
	struct fb_sb_link sb_link;	/* while there is a record */
	struct rb_root_cached claims[FB_NR_CLAIM_KINDS];	/* claim.c; changed under io_sem */
	unsigned int nr_kept;		/* claims of nobody's */
	struct list_head kept;		/* fb_sb->kept, while there are claims of nobody's */
	struct fb_sb_link lock_link;	/* while there are claims of mlock()'s */
};

static inline struct fb_inode *FB_I(const struct inode *inode)
{
	return container_of(inode, struct fb_inode, vfs_inode);
}

struct fb_sb {
	struct super_block *sb;
	struct path lower;		/* root below, on a private mount */
	dev_t lower_dev;		/* its st_dev */
	errseq_t lower_wb_err;		/* its errors that syncfs() has told */
	const struct cred *cred;	/* the mounter's */
	enum fb_mode mode;
	unsigned int absorb_pages;	/* a sync of more volatile pages goes below */

	struct file *cache_file;
	char *cache_path;		/* as given to mount */
	char cache_name[DISK_NAME_LEN];
	struct dax_device *dax;
	u64 first_pfn;
	bool is_volatile;		/* the cache is ordinary memory */
	struct ps ps;
	struct fb_page *pages;

	spinlock_t lru_lock;		/* the five lists, pages[].lru, the counts */
	struct list_head free_pages, held_pages, clean_pages, out_of_sync_pages, resident_pages;
	unsigned long nr_free, nr_clean, nr_out_of_sync;
	unsigned long nr_resident, nr_resident_clean;	/* of the other two */
	atomic_long_t nr_dirty, nr_unplaced;

	spinlock_t files_lock;		/* the file records' next three */
	unsigned long *files_used;	/* bitmap of file records */
	u32 nr_files_used, next_file;

	struct {			/* pin_limit.c; all in pages */
		spinlock_t lock;
		struct list_head payers;
		unsigned long charged, most, most_of_user;
	} pins;

	spinlock_t inodes_lock;		/* inodes, locked, deleted, kept */
	struct list_head inodes;	/* fb_inode->sb_link, and places of walks */
	struct list_head locked;	/* fb_inode->lock_link, likewise */

	struct list_head deleted;	/* struct fb_deleted, under inodes_lock */
	struct list_head kept;		/* fb_inode->kept, under inodes_lock */
	struct fb_recovered *recovered;	/* pages not attached to an inode yet */

	struct workqueue_struct *wq;
	struct workqueue_struct *errands;	/* fb_errand() */
	struct delayed_work writeback_work;	/* writeback.c */
	struct delayed_work settle_work;	/* settle.c: deleted and cut files */
	struct work_struct recover_work;	/* recover.c */
	wait_queue_head_t space_wait;	/* for a free page */
	int last_error;

	struct percpu_counter counters[FB_NR_COUNTERS];
	struct kobject kobj;
	struct completion kobj_gone;
	struct fb_vm_ops *vm_ops;	/* mmap.c */
	struct list_head mounts;	/* all of them, super.c */
};

static inline struct fb_sb *FB_SB(const struct super_block *sb)
{
	return sb->s_fs_info;
}

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

/*
 * The inode changed below. An fdatasync there may leave out part of that (ext4: a new link), so
 * that a later fsync has to go below once more.
 */
static inline void fb_owe_all(struct fb_inode *fi)
{
	set_bit(FB_OWES_SYNC, &fi->flags);
	set_bit(FB_OWES_ATTR, &fi->flags);
}

/* The lower file of an open upper file, regular or directory. */
static inline struct file *fb_lower_file(const struct file *file)
{
	return file->private_data;
}

/* namei.c: what is passed on about names */
extern const struct inode_operations fb_dir_inode_operations;
extern const struct inode_operations fb_symlink_inode_operations;
extern const struct dentry_operations fb_dentry_operations;
void fb_set_lower(struct dentry *dentry, struct dentry *lower);

/* below.c */
int fb_begin_below(struct mnt_idmap *idmap, struct fb_sb *fsb, const struct cred **old);
void fb_end_below(struct fb_sb *fsb, const struct cred *old);
int fb_errand(struct fb_sb *fsb, int (*run)(void *arg), void *arg);

/* attr.c, xattr.c, dir.c, export.c */
extern const struct inode_operations fb_file_inode_operations;
extern const struct inode_operations fb_special_inode_operations;
int fb_getattr(struct mnt_idmap *idmap, const struct path *path, struct kstat *stat, u32 mask,
	       unsigned int flags);
int fb_setattr(struct mnt_idmap *idmap, struct dentry *dentry, struct iattr *attr);
int fb_lower_setattr(struct mnt_idmap *idmap, struct dentry *dentry, struct iattr *attr);
struct posix_acl *fb_get_inode_acl(struct inode *inode, int type, bool rcu);
struct posix_acl *fb_get_acl(struct mnt_idmap *idmap, struct dentry *dentry, int type);
int fb_set_acl(struct mnt_idmap *idmap, struct dentry *dentry, struct posix_acl *acl, int type);
int fb_fileattr_get(struct dentry *dentry, struct fileattr *fa);
int fb_fileattr_set(struct mnt_idmap *idmap, struct dentry *dentry, struct fileattr *fa);
ssize_t fb_listxattr(struct dentry *dentry, char *list, size_t size);
void fb_copy_attr(struct inode *inode);
void fb_attr_changed(struct inode *inode);
extern const struct xattr_handler * const fb_xattr_handlers[];
extern const struct file_operations fb_dir_operations;
extern const struct export_operations fb_export_operations;

/* inode.c */
struct inode *fb_iget(struct super_block *sb, struct inode *lower);
struct inode *fb_alloc_inode(struct super_block *sb);
void fb_free_inode(struct inode *inode);
void fb_evict_inode(struct inode *inode);
int fb_inode_cache_create(void);
void fb_inode_cache_destroy(void);
void fb_name_changed(struct inode *inode);
void fb_last_name_goes(struct inode *inode, bool goes);
void fb_name_removed(struct inode *inode);
void fb_size_is_below(struct fb_inode *fi, loff_t size);
void fb_size_grew(struct inode *inode, loff_t size);
int fb_record_get(struct fb_inode *fi);
int fb_record_for_pages(struct fb_inode *fi);
void fb_record_attach(struct fb_inode *fi, u32 file, u64 size, struct file *wb_file);
void fb_record_mark(struct fb_inode *fi);
void fb_is_below(struct fb_inode *fi);
void fb_record_forget(struct fb_inode *fi);
struct file *fb_open_below(struct fb_inode *fi);
void fb_walk_begin(struct fb_sb *fsb, struct list_head *files, struct fb_walk *walk);
struct fb_inode *fb_walk_next(struct fb_sb *fsb, struct fb_walk *walk);
void fb_walk_end(struct fb_sb *fsb, struct fb_walk *walk);
int fb_encode_handle(struct inode *lower, struct ps_handle *handle);

/* file.c, range.c, mmap.c, sync.c, ioctl.c */
extern const struct file_operations fb_file_operations;
struct file *fb_open_lower(struct file *file, struct inode *inode);
int fb_setattr_size(struct mnt_idmap *idmap, struct dentry *dentry, struct iattr *attr);
int fb_fiemap(struct inode *inode, struct fiemap_extent_info *info, u64 start, u64 len);
int fb_fsync(struct file *file, loff_t start, loff_t end, int datasync);
long fb_ioctl(struct file *file, unsigned int cmd, unsigned long arg);

#endif
