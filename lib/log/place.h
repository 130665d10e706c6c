/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The last page of the file, the *place*, tells the end of a log while its file is longer than the log.
 * docs/append-log.md describes the format, and why a crash at any moment leaves a log that can be read.
 *
 * A slot says "the bytes from @from to @end have the checksum @data_crc". Two slots are written by syncs, in
 * turn, and two by appends, in turn. @from of a sync's slot is durable when the slot is written.
 */
#ifndef FOREBAY_LIB_LOG_PLACE_H
#define FOREBAY_LIB_LOG_PLACE_H

#include <stdbool.h>
#include <linux/types.h>

#define PLACE_SIZE	4096
#define PLACE_MAGIC	0x676f6c2d79626672ull	/* "rfby-log" */

struct slot {
	_Alignas(64) __u64 salt;	/* of the place: tells slots from bytes of the log */
	__u64 from;
	__u64 end;		/* offsets in the file, in bytes */
	__u32 data_crc;
	__u32 self_crc;	/* of the fields above */
	__u64 unused[4];
};

struct place {
	__u64 magic;
	__u64 salt;		/* random for each time that the log is mapped */
	__u64 offset;	/* of the place, in the file */
	__u64 before;	/* offset of the place that was used before, or 0 */
	__u32 self_crc;	/* of the fields above */
	__u32 unused[7];
	struct slot sync[2];
	struct slot append[2];
};

void place_init(struct place *place, __u64 salt, __u64 offset, __u64 before);
bool place_valid(const struct place *place, __u64 offset);
void slot_write(struct slot *slot, __u64 salt, __u64 from, __u64 end, __u32 data_crc);
bool slot_valid(const struct slot *slot, __u64 salt, __u64 size);

#endif
