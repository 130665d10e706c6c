/* SPDX-License-Identifier: GPL-2.0-only WITH Linux-syscall-note */
/*
 * /dev/forebay-emu-control: emulated persistent memory, created and removed at run time.
 *
 * All calls require CAP_SYS_ADMIN. The structs begin with their size, as the program knows it. Another
 * size is refused (-EINVAL), as are unknown flags.
 */
#ifndef _UAPI_LINUX_FOREBAY_EMU_H
#define _UAPI_LINUX_FOREBAY_EMU_H

#include <linux/ioctl.h>
#include <linux/types.h>

/* Flags of a device: */
#define FOREBAY_EMU_CPU_CACHES	1	/* a store is durable where CPU caches are; no flush is needed */
#define FOREBAY_EMU_TRACK	2	/* track what is durable, for power cuts; twice the memory */

#define FOREBAY_EMU_MAX_DELAY		1000000ULL	/* ns, of a copy */
#define FOREBAY_EMU_MIN_BANDWIDTH	(1ULL << 20)	/* bytes a second */

/*
 * struct forebay_emu_create - a device to create
 * @size:	sizeof(struct forebay_emu_create)
 * @flags:	FOREBAY_EMU_*
 * @bytes:	of the device; a multiple of 4096
 * @read_delay_ns, @write_delay_ns: added to each of the kernel's copies, at most FOREBAY_EMU_MAX_DELAY
 * @bandwidth:	of the copies of all users together, bytes a second, at least
 *		FOREBAY_EMU_MIN_BANDWIDTH; 0: as fast as memory is
 * @node:	NUMA node that the memory comes from; -1: any
 * @index:	set by the kernel: /dev/forebay-emuINDEX
 */
struct forebay_emu_create {
	__u32	size;
	__u32	flags;
	__u64	bytes;
	__u64	read_delay_ns;
	__u64	write_delay_ns;
	__u64	bandwidth;
	__s32	node;
	__u32	index;
};

#define FOREBAY_EMU_CUTS	4

/*
 * struct forebay_emu_cut - a power cut at this moment; the surviving bytes are copied to other devices
 * @size:	sizeof(struct forebay_emu_cut)
 * @nr:		number of pairs
 * @seed:	chooses what survives of the bytes that weren't durable
 * @pairs:	the surviving bytes of each device @from are copied to @to, which must not be open.
 *		Both have the same size and are tracked.
 */
struct forebay_emu_cut {
	__u32	size;
	__u32	nr;
	__u64	seed;
	struct {
		__u32	from;
		__u32	to;
	} pairs[FOREBAY_EMU_CUTS];
};

/*
 * CREATE: -ENOMEM: not enough memory. REMOVE: -EBUSY: in use, -ENODEV: no such device. CUT: all devices
 * lose their power at the same moment; -EBUSY: a device to be filled is in use.
 */
#define FOREBAY_EMU_CREATE	_IOWR('e', 1, struct forebay_emu_create)
#define FOREBAY_EMU_REMOVE	_IO('e', 2)
#define FOREBAY_EMU_CUT		_IOW('e', 3, struct forebay_emu_cut)

#endif
