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
	return shadow->durable && shadow->changed ? 0 : -ENOMEM;
}

/**
 * emu_shadow_free() - forget it
 * @emu: the device, tracked or not
 */
void emu_shadow_free(struct emu_device *emu)
{
	struct emu_pending *pending, *next;

	if (emu->shadow.durable)
		list_for_each_entry_safe(pending, next, &emu->shadow.pending, link)
			kfree(pending);
	vfree(emu->shadow.durable);
	kvfree(emu->shadow.changed);
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
	set_bit(offset >> PAGE_SHIFT, emu->shadow.changed);
}

/* Within one page. */
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
		memcpy(emu->shadow.durable + offset, emu->memory + offset, len);
	}
	spin_unlock(&emu->shadow.lock);
}

/**
 * emu_shadow_sent() - bytes are on their way
 * @emu: a tracked device
 * @offset: of the first
 * @len: how many
 * @owner: whose fence makes them durable
 *
 * Context: any but interrupts.
 */
void emu_shadow_sent(struct emu_device *emu, u64 offset, size_t len, const void *owner)
{
	u64 end = min(offset + len, emu->size);

	read_lock(&emu_power);
	while (offset < end) {
		u32 part = min(end - offset, PAGE_SIZE - offset_in_page(offset));

		emu_send_page(emu, offset, part, owner);
		offset += part;
	}
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
		memcpy(emu->shadow.durable + pending->offset, pending->data, pending->len);
		set_bit(pending->offset >> PAGE_SHIFT, emu->shadow.changed);
		list_move(&pending->link, &done);
	}
	spin_unlock(&emu->shadow.lock);
	read_unlock(&emu_power);
	list_for_each_entry_safe(pending, next, &done, link)
		kfree(pending);
}
