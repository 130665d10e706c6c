// SPDX-License-Identifier: GPL-2.0-only
/*
 * Cleaner mode: the log is empty, and writes go to the origin, with FUA.
 *
 * Lost blocks may be left in the index. Reads of them fail until the origin has taken a write: it has an
 * older version. So the index forgets such a block when the write has succeeded, before the write
 * completes. The end of a bio may be an interrupt, where the index can't be changed. So the worker does
 * that, and then completes the bio.
 */
#include "writelog.h"

/**
 * dwl_write_direct() - direct a write to the origin, durable at its completion
 * @w: the target, in cleaner mode
 * @bio: a write, discard or write-zeroes
 *
 * Context: Task in map.
 * Return: 0: @bio is to be passed on; -EOPNOTSUPP: zeroes, which can't have FUA. The block layer then
 * writes pages of zeros.
 */
int dwl_write_direct(struct dwl *w, struct bio *bio)
{
	struct dwl_bio *db = dwl_bio_data(bio);

	switch (bio_op(bio)) {
	case REQ_OP_WRITE:
		bio->bi_opf |= REQ_FUA;
		dwl_count(w, DWL_DIRECT_WRITES, 1);
		break;
	case REQ_OP_WRITE_ZEROES:
		return -EOPNOTSUPP;
	default:
		break;
	}
	/* Without regions no block is lost, and none gets lost in cleaner mode. */
	if (unlikely(atomic_long_read(&w->nr_regions))) {
		db->direct_sector = bio->bi_iter.bi_sector;
		db->direct_sectors = bio_sectors(bio);
	}
	bio_set_dev(bio, w->origin->bdev);
	return 0;
}

/**
 * dwl_direct_done() - the origin has answered a direct write, and there were lost blocks
 * @w: the target
 * @bio: the write; its range is in its struct dwl_bio
 * @status: of @bio
 *
 * Context: Any, interrupts too.
 * Return: true: the worker completes @bio.
 */
bool dwl_direct_done(struct dwl *w, struct bio *bio, blk_status_t status)
{
	unsigned long flags;

	if (status)
		return false;
	spin_lock_irqsave(&w->direct_lock, flags);
	bio_list_add(&w->direct, bio);
	spin_unlock_irqrestore(&w->direct_lock, flags);
	wake_up(&w->kick);
	return true;
}

/* Completes the direct writes that have succeeded. Context: Worker. */
void dwl_direct_complete(struct dwl *w)
{
	struct bio_list done;
	struct bio *bio;

	spin_lock_irq(&w->direct_lock);
	done = w->direct;
	bio_list_init(&w->direct);
	spin_unlock_irq(&w->direct_lock);
	while ((bio = bio_list_pop(&done))) {
		struct dwl_bio *db = dwl_bio_data(bio);
		struct wl_entry entry = {
			.sector = db->direct_sector, .nr_sectors = db->direct_sectors, .order = U64_MAX,
		};

		dwl_index_discard(w, &entry);
		db->direct_sectors = 0;
		/* Device-mapper's own; bio_endio() has been called for the origin's end of @bio. */
		bio->bi_end_io(bio);
		cond_resched();
	}
}
