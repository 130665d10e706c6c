/* SPDX-License-Identifier: GPL-2.0-only WITH Linux-syscall-note */
/*
 * What /dev/forebay-emu-control takes: emulated persistent memory, made and removed at run time.
 *
 * All calls want CAP_SYS_ADMIN. The structs begin with their size, as the program knows it; another size is
 * refused (-EINVAL), and so are flags that are not named here.
 */
#ifndef _UAPI_LINUX_FOREBAY_EMU_H
#define _UAPI_LINUX_FOREBAY_EMU_H

#include <linux/ioctl.h>
#include <linux/types.h>

/* Flags of a device: */
#define FOREBAY_EMU_CPU_CACHES	1	/* a store is durable where CPU caches are; no flush is needed */
#define FOREBAY_EMU_TRACK	2	/* keep what would be durable, to cut power; twice the memory */

#define FOREBAY_EMU_MAX_DELAY		1000000ULL	/* ns, of one copy */
#define FOREBAY_EMU_MIN_BANDWIDTH	(1ULL << 20)	/* bytes a second */

/*
 * struct forebay_emu_create - a device to be made
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
 * struct forebay_emu_cut - what a power cut at this moment would leave, as devices of their own
 * @size:	sizeof(struct forebay_emu_cut)
 * @nr:		of pairs
 * @seed:	chooses what survives of that which was not made durable
 * @pairs:	of each device @from, what survives is put into @to, which nobody has open. Both are of one
 *		size and tracked.
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
 * CREATE: -ENOMEM if there isn't so much memory. REMOVE: -EBUSY while it is in use, -ENODEV if there is no
 * such device. CUT: all of its devices lose their power at once; -EBUSY if one to be filled is in use.
 */
#define FOREBAY_EMU_CREATE	_IOWR('e', 1, struct forebay_emu_create)
#define FOREBAY_EMU_REMOVE	_IO('e', 2)
#define FOREBAY_EMU_CUT		_IOW('e', 3, struct forebay_emu_cut)

#endif
