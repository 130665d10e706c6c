/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * forebay-emu.ko: persistent memory made of ordinary memory, for trials and tests. Its contents are
 * lost with the power, and its messages say so.
 *
 *   control.c   /dev/forebay-emu-control: devices are created, removed, cut
 *   device.c    one device: its memory, its disk, its DAX interface
 *   sysfs.c     /sys/block/forebay-emuN/emu/
 *   delay.c     delays: of the block device's copies, and of the copies by core/'s primitives
 *   observe.c   probes for these primitives' stores, copies and fences (core/pm/trace.h)
 *   shadow.c    what is durable of a tracked device
 *   cut.c       what a power cut would leave, copied to other devices
 *
 * The memory is virtually contiguous, of pages that belong to no device (pfn_t without PFN_DEV). By
 * this, forebay and the write log detect that the memory is volatile.
 *
 * LOCK ORDER: emu_mutex (the list of devices, changed under it and read under RCU), then a disk's
 * open_mutex. emu_power is held shared, with preemption off, while a tracked device's durable bytes
 * change. It is held exclusively during a power cut, so that a cut is one moment for all devices. A
 * shadow's own lock is taken inside it.
 */
#ifndef FOREBAY_EMU_H
#define FOREBAY_EMU_H

#include <linux/blkdev.h>
#include <linux/list.h>
#include <linux/spinlock.h>
#include <linux/types.h>

#include "../include/uapi/linux/forebay_emu.h"

struct dax_device;

/*
 * struct emu_delay - delays of a device; all may change at any time
 * @read_ns, @write_ns: of each copy
 * @bandwidth: bytes a second; 0: no limit
 * @busy_until: when the last admitted copy will end, ns of ktime
 */
struct emu_delay {
	u64 read_ns;
	u64 write_ns;
	u64 bandwidth;
	atomic64_t busy_until;
};

/*
 * struct emu_shadow - what is durable of a tracked device
 * @durable: as large as the device
 * @changed: a bit for each page that may differ between memory and @durable, or that may have changed
 * since the device's last cut
 * @by_block: a bit for each page last written through the block device: a disk's blocks are old or new
 * as a whole
 * @lock: protects @pending, @pending_bytes, and the bytes of @durable
 * @pending: struct emu_pending, sent and not fenced yet
 * @pending_bytes: memory of @pending
 * @partner: the other device of the last cut
 */
struct emu_shadow {
	u8 *durable;
	unsigned long *changed;
	unsigned long *by_block;
	spinlock_t lock;
	struct list_head pending;
	u64 pending_bytes;
	int partner;
};

/*
 * struct emu_device
 * @link: in emu_devices
 * @index: /dev/forebay-emuINDEX
 * @flags: FOREBAY_EMU_*
 * @size: bytes
 * @memory: all of it, virtually contiguous
 * @closed: the device can't be opened any more; under the disk's open_mutex
 * @shadow: only if tracked
 */
struct emu_device {
	struct list_head link;
	u32 index;
	u32 flags;
	u64 size;
	u8 *memory;
	bool closed;
	struct gendisk *disk;
	struct dax_device *dax;
	struct emu_delay delay;
	struct emu_shadow shadow;
};

/* Changed under emu_mutex; read under emu_mutex or RCU. */
extern struct list_head emu_devices;
extern struct mutex emu_mutex;
extern rwlock_t emu_power;

struct emu_device *emu_device_create(const struct forebay_emu_create *want, u32 index);
int emu_device_close(struct emu_device *emu);
void emu_device_reopen(struct emu_device *emu);
void emu_device_free(struct emu_device *emu);
extern const struct attribute_group *emu_attribute_groups[];

void emu_delay_read(struct emu_device *emu, size_t len);
void emu_delay_write(struct emu_device *emu, size_t len);

int emu_observe_init(void);
void emu_observe_exit(void);

int emu_shadow_init(struct emu_device *emu);
void emu_shadow_free(struct emu_device *emu);
void emu_shadow_drop_pending(struct emu_device *emu);
void emu_shadow_stored(struct emu_device *emu, u64 offset);
void emu_shadow_sent(struct emu_device *emu, u64 offset, size_t len, const void *owner);
void emu_shadow_write(struct emu_device *emu, u64 offset, const void *from, size_t len, const void *owner);
void emu_shadow_fence(struct emu_device *emu, const void *owner);

struct emu_device *emu_find(u32 index);
int emu_cut(const struct forebay_emu_cut *cut);

static inline bool emu_tracked(const struct emu_device *emu)
{
	return emu->flags & FOREBAY_EMU_TRACK;
}

#endif
