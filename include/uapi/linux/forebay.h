/* SPDX-License-Identifier: GPL-2.0-only WITH Linux-syscall-note */
/*
 * What a program may ask of a file on a forebay mount.
 *
 * Every call works on an open descriptor of the mount it is about and returns
 * -ENOTTY elsewhere. Calls that change what other users see want CAP_SYS_ADMIN
 * in the initial user namespace.
 *
 * The structs below that begin with @size may grow: a program says how much of one it
 * knows (sizeof), what a kernel doesn't know must be zero (-E2BIG otherwise), and what a
 * program doesn't know is taken as zero. Flags that are not named here are refused.
 */
#ifndef _UAPI_LINUX_FOREBAY_H
#define _UAPI_LINUX_FOREBAY_H

#include <linux/ioctl.h>
#include <linux/types.h>

#define FOREBAY_SUPER_MAGIC	0x46425259	/* "FBRY" */

/*
 * struct forebay_counts - pages of one file by state
 * @clean:	the lower file has the same, durably
 * @out_of_sync: durable in PMem, the lower file is older
 * @dirty:	of the out-of-sync pages, those with stores that may still sit in CPU caches
 * @reserved:	zero
 */
struct forebay_counts {
	__u64	clean;
	__u64	out_of_sync;
	__u64	dirty;
	__u64	reserved[5];
};

/*
 * struct forebay_range - a range of a file
 * @size:	sizeof(struct forebay_range)
 * @flags:	FOREBAY_KEEP or 0
 * @offset:	first byte; the page that it is in is meant
 * @length:	bytes; 0: to the end, of the file (pin), or of whatever it may become
 */
struct forebay_range {
	__u32	size;
	__u32	flags;
	__u64	offset;
	__u64	length;
};

/*
 * Pins and attached ranges belong to the open file description that made them, and
 * end with its last close. With this flag they belong to the file, until they are undone
 * with this flag too, the file is deleted, or the file system is unmounted.
 * CAP_SYS_ADMIN.
 */
#define FOREBAY_KEEP		1

/*
 * struct forebay_dropped - a range to be dropped, and what became of it
 * @size:	sizeof(struct forebay_dropped)
 * @flags:	0
 * @offset:	first byte
 * @length:	bytes; 0: to the end
 * @dropped:	pages that are not in PMem any more
 * @pinned:	pages that stay because they are pinned or locked
 * @busy:	pages that stay because hardware uses them, or they are changed all the time
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
 * @offset:	first byte; brought down to the first of its page
 * @length:	bytes, 0: to the end of the file; becomes what the answer is about
 * @attributes:	FOREBAY_RANGE_*: of any of its pages; with FOREBAY_INFO_RUN, of all
 * @reserved:	0
 * @clean:	pages in PMem: as in struct forebay_counts
 * @out_of_sync:
 * @dirty:
 * @pinned:	of the pages in PMem, those that are never reclaimed
 * @busy:	of the pages in PMem, those that hardware uses
 * @volatile_pages: pages that the lower file system has in memory and PMem hasn't
 */
struct forebay_info {
	__u32	size;
	__u32	flags;
	__u64	offset;
	__u64	length;
	__u32	attributes;
	__u32	reserved;
	__u64	clean;
	__u64	out_of_sync;
	__u64	dirty;
	__u64	pinned;
	__u64	busy;
	__u64	volatile_pages;
};

/* Only about the first pages of the range, as far as their attributes are the same. */
#define FOREBAY_INFO_RUN	1

#define FOREBAY_RANGE_ATTACHED	1	/* with FOREBAY_IOC_ATTACH */
#define FOREBAY_RANGE_PINNED	2	/* with FOREBAY_IOC_PIN */
#define FOREBAY_RANGE_MAPPED	4	/* somebody has a MAP_SYNC mapping of it */
#define FOREBAY_RANGE_LOCKED	8	/* by mlock(2), in such a mapping */

/* Write everything back to the lower file system. CAP_SYS_ADMIN. */
#define FOREBAY_IOC_DRAIN		_IO(0xfb, 1)
/* Give up the pages that no lower file takes any more. CAP_SYS_ADMIN. */
#define FOREBAY_IOC_DISCARD_UNPLACED	_IO(0xfb, 2)
/* Pages of this file by state. Any opener. */
#define FOREBAY_IOC_COUNTS		_IOR(0xfb, 3, struct forebay_counts)
/* Bring the range into PMem, all of it, and keep it there; -ENOMEM: over a limit. Any opener. */
#define FOREBAY_IOC_PIN			_IOW(0xfb, 4, struct forebay_range)
/* Undo that; the pages stay until they are reclaimed. */
#define FOREBAY_IOC_UNPIN		_IOW(0xfb, 5, struct forebay_range)
/* What is written to the range goes to PMem, as in a MAP_SYNC mapping. Who may write; or FOREBAY_KEEP. */
#define FOREBAY_IOC_ATTACH		_IOW(0xfb, 6, struct forebay_range)
/* Undo that; the pages stay until they are reclaimed. */
#define FOREBAY_IOC_DETACH		_IOW(0xfb, 7, struct forebay_range)
/* Write the range back and take it out of PMem. Any opener. */
#define FOREBAY_IOC_DROP		_IOWR(0xfb, 8, struct forebay_dropped)
/* Look. Any opener. */
#define FOREBAY_IOC_INFO		_IOWR(0xfb, 9, struct forebay_info)

#endif
