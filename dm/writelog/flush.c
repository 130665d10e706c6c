// SPDX-License-Identifier: GPL-2.0-only
/*
 * Flushes of the origin: what has been written before one begins is durable when it ends. One is in flight
 * at most.
 */
#include "writeback.h"

static void dwl_flush_bio_done(struct bio *bio)
{
	struct dwl *w = bio->bi_private;

	complete(&w->flush_done);
}

/* Begins a flush of the origin. Writes may go on meanwhile. Context: Worker. */
void dwl_origin_flush_begin(struct dwl *w)
{
	struct bio *bio = &w->flush_bio;

	bio_init(bio, w->origin->bdev, NULL, 0, REQ_OP_WRITE | REQ_PREFLUSH);
	bio->bi_private = w;
	bio->bi_end_io = dwl_flush_bio_done;
	reinit_completion(&w->flush_done);
	w->flush_start_ns = dwl_now(w);
	dwl_fp_flushing(w);
	submit_bio(bio);
}

/* Waits for the end of the flush. */
int dwl_origin_flush_end(struct dwl *w)
{
	int err;

	wait_for_completion_io(&w->flush_done);
	dwl_latency(w, DWL_PHASE_FLUSH, w->flush_start_ns);
	err = blk_status_to_errno(w->flush_bio.bi_status);
	bio_uninit(&w->flush_bio);
	if (!err)
		dwl_fp_flushed(w);
	return err;
}
