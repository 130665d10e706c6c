// SPDX-License-Identifier: GPL-2.0-only
/*
 * What of a tracked device would survive a power cut. Bytes become durable as in persistent memory.
 * First they are sent, with their value of that moment: copied past the caches, or their lines flushed.
 * They are durable when the task that has sent them makes a fence. The sender of the block device's
 * writes is the device itself, and its fence is a flush. A bio with FUA is its own sender: its fence comes
 * when it completes.
 *
 * Stores through user mappings are observed only when forebay flushes them.
 */
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/vmalloc.h>

#include "emu.h"

/* Bytes that @owner has sent and not fenced. */
struct emu_pending {
	struct list_head link;
	const void *owner;
	u64 offset;
	u32 len;
	u8 data[];
};

/**
 * emu_shadow_init() - begin to track what is durable
 * @emu: the device, its memory all zero
 *
 * Context: Task. Sleeps.
 * Return: 0 or -ENOMEM; emu_shadow_free() is needed in either case.
 */
int emu_shadow_init(struct emu_device *emu)
{
	struct emu_shadow *shadow = &emu->shadow;

	spin_lock_init(&shadow->lock);
	INIT_LIST_HEAD(&shadow->pending);
	shadow->partner = -1;
	shadow->durable = vzalloc(emu->size);
	shadow->changed = kvcalloc(BITS_TO_LONGS(emu->size >> PAGE_SHIFT), sizeof(long), GFP_KERNEL);
	shadow->by_block = kvcalloc(BITS_TO_LONGS(emu->size >> PAGE_SHIFT), sizeof(long), GFP_KERNEL);
	return shadow->durable && shadow->changed && shadow->by_block ? 0 : -ENOMEM;
}

/**
 * emu_shadow_drop_pending() - drop bytes that were sent and not fenced
 * @emu: a tracked device
 *
 * Context: emu_power is held exclusively, or the device isn't in use yet or any more.
 */
void emu_shadow_drop_pending(struct emu_device *emu)
{
	struct emu_pending *pending, *next;

	list_for_each_entry_safe(pending, next, &emu->shadow.pending, link)
		kfree(pending);
	INIT_LIST_HEAD(&emu->shadow.pending);
	emu->shadow.pending_bytes = 0;
}

/**
 * emu_shadow_free() - end the tracking
 * @emu: the device, tracked or not
 *
 * Context: Task. Sleeps.
 */
void emu_shadow_free(struct emu_device *emu)
{
	if (emu->shadow.durable)
		emu_shadow_drop_pending(emu);
	vfree(emu->shadow.durable);
	kvfree(emu->shadow.changed);
	kvfree(emu->shadow.by_block);
}

/**
 * emu_shadow_stored() - note a store of 8 bytes
 * @emu: a tracked device
 * @offset: of the bytes
 *
 * Context: Any but interrupts.
 */
void emu_shadow_stored(struct emu_device *emu, u64 offset)
{
	clear_bit(offset >> PAGE_SHIFT, emu->shadow.by_block);
	set_bit(offset >> PAGE_SHIFT, emu->shadow.changed);
}

/*
 * Memory keeps the order of what is sent to one place. A task that has sent the same bytes before @last
 * (NULL: at any time) may fence later. So its older copy gets the new bytes, and can't bring the old
 * ones back.
 */
static void emu_supersede(struct emu_shadow *shadow, u64 offset, u32 len, const u8 *data,
			  const struct emu_pending *last)
{
	struct emu_pending *older;

	lockdep_assert_held(&shadow->lock);
	list_for_each_entry(older, &shadow->pending, link) {
		u64 from = max(older->offset, offset);
		u64 to = min(older->offset + older->len, offset + len);

		if (older == last)
			break;
		if (from < to)
			memcpy(older->data + (from - older->offset), data + (from - offset), to - from);
	}
}

/* Returns NULL without memory, or if what is pending takes as much memory as the device. */
static struct emu_pending *emu_pending_alloc(struct emu_shadow *shadow, u64 limit, u32 len)
{
	struct emu_pending *pending;
	size_t bytes = struct_size(pending, data, len);

	lockdep_assert_held(&shadow->lock);
	if (shadow->pending_bytes >= limit)
		return NULL;
	pending = kmalloc(bytes, GFP_ATOMIC | __GFP_NOWARN);
	if (pending)
		shadow->pending_bytes += bytes;
	return pending;
}

/* Sends bytes of one page. */
static void emu_send_page(struct emu_device *emu, u64 offset, u32 len, const void *owner)
{
	struct emu_pending *pending;

	lockdep_assert_held_read(&emu_power);
	set_bit(offset >> PAGE_SHIFT, emu->shadow.changed);
	spin_lock(&emu->shadow.lock);
	pending = emu_pending_alloc(&emu->shadow, emu->size, len);
	if (pending) {
		pending->owner = owner;
		pending->offset = offset;
		pending->len = len;
		memcpy(pending->data, emu->memory + offset, len);
		list_add_tail(&pending->link, &emu->shadow.pending);
	} else {
		/*
		 * Without memory the bytes are durable at once: a cut then loses less than it might,
		 * which is still a correct result.
		 */
		emu_supersede(&emu->shadow, offset, len, emu->memory + offset, NULL);
		memcpy(emu->shadow.durable + offset, emu->memory + offset, len);
	}
	spin_unlock(&emu->shadow.lock);
}

static void emu_send(struct emu_device *emu, u64 offset, size_t len, const void *owner, bool by_block)
{
	u64 end = min(offset + len, emu->size);

	lockdep_assert_held_read(&emu_power);
	while (offset < end) {
		u32 part = min(end - offset, PAGE_SIZE - offset_in_page(offset));

		assign_bit(offset >> PAGE_SHIFT, emu->shadow.by_block, by_block);
		emu_send_page(emu, offset, part, owner);
		offset += part;
	}
}

/**
 * emu_shadow_sent() - note that bytes were sent
 * @emu: a tracked device
 * @offset: of the first byte
 * @len: number of bytes
 * @owner: the task whose fence makes them durable
 *
 * Context: Any but interrupts.
 */
void emu_shadow_sent(struct emu_device *emu, u64 offset, size_t len, const void *owner)
{
	read_lock(&emu_power);
	emu_send(emu, offset, len, owner, false);
	read_unlock(&emu_power);
}

/**
 * emu_shadow_write() - write like a disk, into a cache that a flush empties
 * @emu: a tracked device
 * @offset: of the first byte
 * @from: source
 * @len: number of bytes, within a page of @from
 * @owner: whose fence makes them durable: the device, or a bio with FUA
 *
 * Context: Any but interrupts.
 */
void emu_shadow_write(struct emu_device *emu, u64 offset, const void *from, size_t len, const void *owner)
{
	read_lock(&emu_power);
	memcpy(emu->memory + offset, from, len);
	emu_send(emu, offset, len, owner, true);
	read_unlock(&emu_power);
}

/**
 * emu_shadow_fence() - make durable what an owner has sent
 * @emu: a tracked device
 * @owner: as in emu_shadow_sent()
 *
 * Context: Any but interrupts.
 */
void emu_shadow_fence(struct emu_device *emu, const void *owner)
{
	struct emu_pending *pending, *next;
	LIST_HEAD(done);

	read_lock(&emu_power);
	spin_lock(&emu->shadow.lock);
	list_for_each_entry_safe(pending, next, &emu->shadow.pending, link) {
		if (pending->owner != owner)
			continue;
		emu_supersede(&emu->shadow, pending->offset, pending->len, pending->data, pending);
		memcpy(emu->shadow.durable + pending->offset, pending->data, pending->len);
		set_bit(pending->offset >> PAGE_SHIFT, emu->shadow.changed);
		list_move(&pending->link, &done);
		emu->shadow.pending_bytes -= struct_size(pending, data, pending->len);
	}
	spin_unlock(&emu->shadow.lock);
	read_unlock(&emu_power);
	list_for_each_entry_safe(pending, next, &done, link)
		kfree(pending);
}
