/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What a writer does, one record an operation; plan.py writes them, writer.c
 * carries them out, model.py knows what each of them promises.
 */
#ifndef POWERCUT_OPS_H
#define POWERCUT_OPS_H

#include <stdint.h>

enum op_code {
	OP_WRITE,		/* pwrite */
	OP_WRITE_SYNC,		/* pwrite on an O_SYNC descriptor */
	OP_WRITE_DSYNC,		/* pwrite on an O_DSYNC descriptor */
	OP_WRITE_RWF_DSYNC,	/* pwritev2 with RWF_DSYNC */
	OP_WRITE_DIRECT,	/* pwrite on an O_DIRECT descriptor, whole pages */
	OP_APPEND,		/* write on an O_APPEND descriptor; offset says where it goes */
	OP_TRUNCATE,		/* to length */
	OP_PUNCH,
	OP_STORE,		/* memcpy to a shared mapping */
	OP_STORE_FLUSH,		/* memcpy to a MAP_SYNC mapping, cache lines flushed, fence */
	OP_MSYNC,		/* MS_SYNC, whole pages */
	OP_FSYNC,
	OP_FDATASYNC,
	OP_SYNC_DIRECTORY,
	OP_SYNCFS,
	OP_CREATE,
	OP_RENAME,		/* name to name2, which may be there */
	OP_LINK,
	OP_UNLINK,
	OP_CLOSE,		/* every descriptor and mapping */
};

enum op_flag {
	OP_FRESH = 1,		/* on a descriptor (a mapping) of its own, closed after it */
};

struct op {
	uint8_t code;
	uint8_t flags;
	uint8_t name;
	uint8_t name2;
	uint32_t id;		/* of the file created: its owner, which identifies it after the cut */
	uint32_t offset;
	uint32_t length;
	uint32_t noise;		/* the data: noise[noise .. noise + length) */
};

/*
 * The progress of one writer. It lies in memory shared with the host (the
 * board), so it survives the power cut. There is one for each writer. The host
 * sets `begun` of the one at BOARD_GO when the plans are there.
 */
struct progress {
	uint64_t begun;
	uint64_t done;
	uint64_t error;		/* errno of operation `begun`, which failed */
	uint64_t reserved[5];
};

#define BOARD_GO	15
#define NAMES		32		/* n0, n1, ... in each writer's directory d0, d1, ... */
#define FILE_MAX	(1u << 20)	/* no file grows beyond */

#endif
