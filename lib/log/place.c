// SPDX-License-Identifier: GPL-2.0-only
/*
 * Writes and checks a place and its slots.
 */
#include "place.h"

#include <stddef.h>
#include <string.h>

#include "crc.h"

/* A page of zeros has no valid checksum. */
#define CRC_START	0xffffffffu

_Static_assert(sizeof(struct slot) == 64, "a slot is one cache line");
_Static_assert(offsetof(struct place, sync) == 64, "the head is one cache line");
_Static_assert(sizeof(struct place) <= PLACE_SIZE, "a place fits its page");

static __u32 head_crc(const struct place *place)
{
	return crc_add(CRC_START, place, offsetof(struct place, self_crc));
}

static __u32 slot_crc(const struct slot *slot)
{
	return crc_add(CRC_START, slot, offsetof(struct slot, self_crc));
}

/**
 * place_init - a place without slots
 * @place: filled in
 * @salt: random number
 * @offset: where in the file it will be, in bytes
 * @before: offset of the place that is in use now, or 0
 *
 * Context: any thread.
 */
void place_init(struct place *place, __u64 salt, __u64 offset, __u64 before)
{
	memset(place, 0, sizeof(*place));
	place->magic = PLACE_MAGIC;
	place->salt = salt;
	place->offset = offset;
	place->before = before;
	place->self_crc = head_crc(place);
}

/**
 * place_valid - whether this is a place
 * @place: what was read
 * @offset: from where in the file, in bytes
 *
 * Context: any thread.
 * Return: true if head and checksum fit.
 */
bool place_valid(const struct place *place, __u64 offset)
{
	return place->magic == PLACE_MAGIC && place->offset == offset && place->self_crc == head_crc(place);
}

/**
 * slot_write - write a slot in the mapping
 * @slot: no other thread writes it
 * @salt: of the place
 * @from: first byte that the slot is about
 * @end: first byte behind
 * @data_crc: of the bytes between, from 0
 *
 * If the process is killed in between, the slot is not valid; the other one of the two still is.
 * Context: any thread.
 */
void slot_write(struct slot *slot, __u64 salt, __u64 from, __u64 end, __u32 data_crc)
{
	__atomic_signal_fence(__ATOMIC_SEQ_CST);	/* the bytes come before the slot */
	slot->salt = salt;
	slot->from = from;
	slot->end = end;
	slot->data_crc = data_crc;
	slot->self_crc = slot_crc(slot);
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
}

/**
 * slot_valid - whether this slot was written whole
 * @slot: what was read
 * @salt: of the place
 * @size: of the file, in bytes
 *
 * Context: any thread.
 * Return: true if it was; the bytes that the slot is about must be checked, too.
 */
bool slot_valid(const struct slot *slot, __u64 salt, __u64 size)
{
	return slot->salt == salt && slot->self_crc == slot_crc(slot) && slot->from <= slot->end &&
	       slot->end <= size;
}
