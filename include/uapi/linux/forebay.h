/* SPDX-License-Identifier: GPL-2.0-only WITH Linux-syscall-note */
/*
 * Operations on a file of a forebay mount.
 *
 * A call works on an open descriptor of its mount, and returns -ENOTTY elsewhere. Calls that change
 * what other users see require CAP_SYS_ADMIN in the initial user namespace.
 *
 * Calls about one file that say "Writers only" require a descriptor open for writing, or a caller that
 * owns the file or could open it for writing. Others get -EPERM: a file's pages tell what its users do,
 * and these calls change where their writes go.
 *
 * The structs below that begin with @size may grow. A program passes the size it knows (sizeof). Fields
 * that the kernel doesn't know must be zero (-E2BIG otherwise). Fields that the program doesn't know
 * are taken as zero. Unknown flags are refused.
 */
#ifndef _UAPI_LINUX_FOREBAY_H
#define _UAPI_LINUX_FOREBAY_H

#include <linux/ioctl.h>
#include <linux/types.h>

#define FOREBAY_SUPER_MAGIC	0x46425259	/* "FBRY" */

/*
 * struct forebay_range - a range of a file
 * @size:	sizeof(struct forebay_range)
 * @flags:	FOREBAY_KEEP or 0
 * @offset:	first byte; the range begins at the start of its page
 * @length:	bytes; 0: to the end of the file (pin), or without an end (attach)
 */
struct forebay_range {
	__u32	size;
	__u32	flags;
	__u64	offset;
	__u64	length;
};

/*
 * Pins and attached ranges belong to the open file description that made them, and end with its last
 * close. With this flag they belong to the file. They then end when they are undone with this flag,
 * when the file is deleted, or when the file system is unmounted. Requires CAP_SYS_ADMIN.
 */
#define FOREBAY_KEEP		1

/*
 * struct forebay_dropped - a range to be dropped, and the outcome
 * @size:	sizeof(struct forebay_dropped)
 * @flags:	0
 * @offset:	first byte
 * @length:	bytes; 0: to the end
 * @dropped:	pages that are not in PMem any more
 * @pinned:	pages that stay because they are pinned or locked
 * @busy:	pages that stay because hardware uses them, or because they change all the time
 */
struct forebay_dropped {
	__u32	size;
	__u32	flags;
	__u64	offset;
	__u64	length;
	__u64	dropped;
	__u64	pinned;
	__u64	busy;
};

/*
 * struct forebay_info - pages of a range
 * @size:	sizeof(struct forebay_info)
 * @flags:	FOREBAY_INFO_* or 0
 * @offset:	first byte; rounded down to the start of its page
 * @length:	bytes, 0: to the end of the file; set to the length of the answer's range
 * @attributes:	FOREBAY_RANGE_*: of any of its pages; with FOREBAY_INFO_RUN, of all
 * @lost:	of the pages in PMem, those that the device can't read any more
 * @clean:	pages in PMem that the lower file has, too, durably
 * @out_of_sync: pages durable in PMem, of which the lower file has an older version
 * @dirty:	of the out-of-sync pages, those with stores that may still sit in CPU caches
 * @pinned:	of the pages in PMem, those that are never reclaimed
 * @busy:	of the pages in PMem, those that hardware uses
 * @volatile_pages: pages that the lower file system has in memory and that aren't in PMem
 */
struct forebay_info {
	__u32	size;
	__u32	flags;
	__u64	offset;
	__u64	length;
	__u32	attributes;
	__u32	lost;
	__u64	clean;
	__u64	out_of_sync;
	__u64	dirty;
	__u64	pinned;
	__u64	busy;
	__u64	volatile_pages;
};

/* Covers only the first pages of the range that have the same attributes. */
#define FOREBAY_INFO_RUN	1

#define FOREBAY_RANGE_ATTACHED	1	/* with FOREBAY_IOC_ATTACH */
#define FOREBAY_RANGE_PINNED	2	/* with FOREBAY_IOC_PIN */
#define FOREBAY_RANGE_MAPPED	4	/* in a MAP_SYNC mapping */
#define FOREBAY_RANGE_LOCKED	8	/* by mlock(2), in such a mapping */

/*
 * Write everything back to the lower file system. Requires CAP_SYS_ADMIN. EBUSY: pages are left that
 * direct I/O or a pipe uses and may change; the lower file system has copies of them.
 */
#define FOREBAY_IOC_DRAIN		_IO(0xfb, 1)
/* Discard the pages that no lower file takes any more. Requires CAP_SYS_ADMIN. */
#define FOREBAY_IOC_DISCARD_UNPLACED	_IO(0xfb, 2)
/* 3 is not given again: FOREBAY_IOC_INFO has replaced that command. */
/* Bring all of the range into PMem, and keep it there. -ENOMEM: a limit is exceeded. Writers only. */
#define FOREBAY_IOC_PIN			_IOW(0xfb, 4, struct forebay_range)
/* Undo a pin; the pages stay until they are reclaimed. Writers only. */
#define FOREBAY_IOC_UNPIN		_IOW(0xfb, 5, struct forebay_range)
/*
 * Send writes to the range to PMem, as with MAP_SYNC. Requires a descriptor open for writing, or
 * FOREBAY_KEEP.
 */
#define FOREBAY_IOC_ATTACH		_IOW(0xfb, 6, struct forebay_range)
/* Undo an attach; the pages stay until they are reclaimed. */
#define FOREBAY_IOC_DETACH		_IOW(0xfb, 7, struct forebay_range)
/* Write the range back and take it out of PMem. Writers only. */
#define FOREBAY_IOC_DROP		_IOWR(0xfb, 8, struct forebay_dropped)
/* Get information; pages may move during the count. Writers only. */
#define FOREBAY_IOC_INFO		_IOWR(0xfb, 9, struct forebay_info)

#endif
