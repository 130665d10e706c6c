// SPDX-License-Identifier: GPL-2.0-only
/*
 * What of a tracked device would survive a power cut. Bytes become durable as they do in persistent memory:
 * they are sent (copied past the caches, or their lines flushed), with what they were at that moment; and when
 * the task that has sent them makes a fence, they are there. Of the block device's writes the owner is the
 * device itself, and its fence is a flush.
 *
 * What user mappings store is heard of only when forebay flushes it.
 */
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/vmalloc.h>

#include "emu.h"

/* Bytes that were sent by @owner, and are not fenced. */
struct emu_pending {
	struct list_head link;
	const void *owner;
	u64 offset;
	u32 len;
	u8 data[];
};

/**
 * emu_shadow_init() - begin to keep what is durable
 * @emu: the device, its memory all zero
 *
 * Return: 0 or -ENOMEM; emu_shadow_free() in any case.
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
 * emu_shadow_forget() - what was sent and is not fenced never comes through
 * @emu: a tracked device
 *
 * Context: emu_power is held exclusively, or nobody else knows the device.
 */
void emu_shadow_forget(struct emu_device *emu)
{
	struct emu_pending *pending, *next;

	list_for_each_entry_safe(pending, next, &emu->shadow.pending, link)
		kfree(pending);
	INIT_LIST_HEAD(&emu->shadow.pending);
}

/**
 * emu_shadow_free() - forget it
 * @emu: the device, tracked or not
 */
void emu_shadow_free(struct emu_device *emu)
{
	if (emu->shadow.durable)
		emu_shadow_forget(emu);
	vfree(emu->shadow.durable);
	kvfree(emu->shadow.changed);
	kvfree(emu->shadow.by_block);
}

/**
 * emu_shadow_stored() - 8 bytes were stored to
 * @emu: a tracked device
 * @offset: theirs
 *
 * Context: any but interrupts.
 */
void emu_shadow_stored(struct emu_device *emu, u64 offset)
{
	clear_bit(offset >> PAGE_SHIFT, emu->shadow.by_block);
	set_bit(offset >> PAGE_SHIFT, emu->shadow.changed);
}

/*
 * Memory takes what is sent to one place in the order it was sent. So whoever has sent the same bytes before @last (NULL:
 * at any time), and makes his fence only later, must not bring the older ones back.
 */
static void emu_supersede(struct emu_shadow *shadow, u64 offset, u32 len, const u8 *data, const struct emu_pending *last)
{
	struct emu_pending *older;

	list_for_each_entry(older, &shadow->pending, link) {
		u64 from = max(older->offset, offset);
		u64 to = min(older->offset + older->len, offset + len);

		if (older == last)
			break;
		if (from < to)
			memcpy(older->data + (from - older->offset), data + (from - offset), to - from);
	}
}

/* Within one page; emu_power is held. */
static void emu_send_page(struct emu_device *emu, u64 offset, u32 len, const void *owner)
{
	struct emu_pending *pending = kmalloc(struct_size(pending, data, len), GFP_ATOMIC | __GFP_NOWARN);

	set_bit(offset >> PAGE_SHIFT, emu->shadow.changed);
	spin_lock(&emu->shadow.lock);
	if (pending) {
		pending->owner = owner;
		pending->offset = offset;
		pending->len = len;
		memcpy(pending->data, emu->memory + offset, len);
		list_add_tail(&pending->link, &emu->shadow.pending);
	} else {
		/* As if it had come through at once: no cut that finds too little missing is wrong. */
		emu_supersede(&emu->shadow, offset, len, emu->memory + offset, NULL);
		memcpy(emu->shadow.durable + offset, emu->memory + offset, len);
	}
	spin_unlock(&emu->shadow.lock);
}

static void emu_send(struct emu_device *emu, u64 offset, size_t len, const void *owner)
{
	u64 end = min(offset + len, emu->size);

	while (offset < end) {
		u32 part = min(end - offset, PAGE_SIZE - offset_in_page(offset));

		assign_bit(offset >> PAGE_SHIFT, emu->shadow.by_block, owner == emu);
		emu_send_page(emu, offset, part, owner);
		offset += part;
	}
}

/**
 * emu_shadow_sent() - bytes are on their way
 * @emu: a tracked device
 * @offset: of the first
 * @len: how many
 * @owner: the task whose fence makes them durable
 *
 * Context: any but interrupts.
 */
void emu_shadow_sent(struct emu_device *emu, u64 offset, size_t len, const void *owner)
{
	read_lock(&emu_power);
	emu_send(emu, offset, len, owner);
	read_unlock(&emu_power);
}

/**
 * emu_shadow_write() - write as a disk does, into a cache that a flush empties
 * @emu: a tracked device
 * @offset: of the first byte
 * @from: what to write
 * @len: how many, within a page of @from
 *
 * Context: any but interrupts.
 */
void emu_shadow_write(struct emu_device *emu, u64 offset, const void *from, size_t len)
{
	read_lock(&emu_power);
	memcpy(emu->memory + offset, from, len);
	emu_send(emu, offset, len, emu);
	read_unlock(&emu_power);
}

/**
 * emu_shadow_fence() - what somebody has sent is durable
 * @emu: a tracked device
 * @owner: who
 *
 * Context: any but interrupts.
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
	}
	spin_unlock(&emu->shadow.lock);
	read_unlock(&emu_power);
	list_for_each_entry_safe(pending, next, &done, link)
		kfree(pending);
}
