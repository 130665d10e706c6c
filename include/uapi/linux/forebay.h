/* SPDX-License-Identifier: GPL-2.0-only WITH Linux-syscall-note */
/*
 * What a program may ask of a file on a forebay mount.
 *
 * Every call works on an open descriptor of the mount it is about and returns
 * -ENOTTY elsewhere. Calls that change what other users see want CAP_SYS_ADMIN
 * in the initial user namespace.
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

/* Write everything back to the lower file system. CAP_SYS_ADMIN. */
#define FOREBAY_IOC_DRAIN		_IO(0xfb, 1)
/* Give up the pages that no lower file takes any more. CAP_SYS_ADMIN. */
#define FOREBAY_IOC_DISCARD_UNPLACED	_IO(0xfb, 2)
/* Pages of this file by state. Any opener. */
#define FOREBAY_IOC_COUNTS		_IOR(0xfb, 3, struct forebay_counts)

#endif
