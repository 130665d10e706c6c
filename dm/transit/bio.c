// SPDX-License-Identifier: GPL-2.0-only
/*
 * Bios: ending one, and copying between a bio and a slot.
 *
 * Uses no other file. Used by map.c, write.c, read.c, discard.c.
 */
#include <linux/highmem.h>

#include "transit.h"

int dtc_ended(struct bio *bio, blk_status_t status)
{
	bio->bi_status = status;
	bio_endio(bio);
	return DM_MAPIO_SUBMITTED;
}

/* Copies one block between a slot and the bio's current position, and advances the bio. */
void dtc_copy_block(struct dtc *t, struct bio *bio, struct dtc_slot *slot, bool to_bio)
{
	void *data = dtc_slot_data(t, slot);
	u32 left = t->params.block_size;

	while (left) {
		struct bio_vec bv = bio_iter_iovec(bio, bio->bi_iter);
		u32 len = min(left, bv.bv_len);

		bv.bv_len = len;
		if (to_bio)
			memcpy_to_bvec(&bv, data);
		else
			memcpy_from_bvec(data, &bv);
		bio_advance(bio, len);
		data += len;
		left -= len;
	}
}
