// SPDX-License-Identifier: GPL-2.0-only
/*
 * The fingerprint: the log keeps checksums of the origin's first MiB, where superblocks are. While the
 * log holds writes, only writeback may change the origin. A different fingerprint shows another disk,
 * or an origin that was mounted without its log; the log then refuses it.
 *
 * The fingerprint is of durable content. Writeback stores WL_FINGERPRINT_CHANGING in the log before it
 * changes these blocks. It stores the new fingerprint after a flush that began when all these writes
 * had completed. A log left at CHANGING is taken unverified: half of a batch may be on the origin.
 * Discards of these blocks are not passed on (map.c), because the content after a discard is undefined.
 *
 * An empty log says nothing of an origin that was used alone. An empty log that isn't in use has no
 * fingerprint, so that an older Forebay takes it.
 */
#include <linux/blkdev.h>

#include "space.h"
#include "writeback.h"

#define DWL_FP_SHIFT		(PAGE_SHIFT - SECTOR_SHIFT)	/* sectors of a block */
/* Maximum number of blocks read at once. */
#define DWL_FP_STEP		16u

/* Allocates the pages that the origin is read into. */
int dwl_fp_init(struct dwl *w)
{
	w->fingerprint.buffer = alloc_pages_exact(DWL_FP_STEP * WL_PAGE_SIZE, GFP_KERNEL);
	return w->fingerprint.buffer ? 0 : -ENOMEM;
}

void dwl_fp_exit(struct dwl *w)
{
	if (w->fingerprint.buffer)
		free_pages_exact(w->fingerprint.buffer, DWL_FP_STEP * WL_PAGE_SIZE);
}

/* Reads @count blocks, DWL_FP_STEP at most, and computes their checksums. */
static int dwl_fp_read_step(struct dwl *w, u32 first, u32 count)
{
	struct dwl_fingerprint *fingerprint = &w->fingerprint;
	struct bio_vec bv;
	struct bio bio;
	int err;
	u32 i;

	bio_init(&bio, w->origin->bdev, &bv, 1, REQ_OP_READ);
	bio.bi_iter.bi_sector = (u64)first << DWL_FP_SHIFT;
	__bio_add_page(&bio, virt_to_page(fingerprint->buffer), count * WL_PAGE_SIZE, 0);
	err = submit_bio_wait(&bio);
	bio_uninit(&bio);
	for (i = 0; i < count && !err; i++)
		fingerprint->sums[first + i] =
			wl_fingerprint_block(&w->wl, fingerprint->buffer + i * WL_PAGE_SIZE);
	if (!err)
		bitmap_clear(fingerprint->changed, first, count);
	return err;
}

/* Reads the blocks marked as changed. */
static int dwl_fp_read_changed(struct dwl *w)
{
	struct dwl_fingerprint *fingerprint = &w->fingerprint;
	unsigned long first, end;
	int err = 0;

	while (!err) {
		first = find_first_bit(fingerprint->changed, fingerprint->blocks);
		if (first >= fingerprint->blocks)
			break;
		end = find_next_zero_bit(fingerprint->changed, fingerprint->blocks, first);
		err = dwl_fp_read_step(w, first, min(end - first, DWL_FP_STEP));
	}
	return err;
}

/* Stores the present fingerprint in the log. */
static void dwl_fp_store(struct dwl *w)
{
	u32 now = wl_fingerprint_of(&w->wl, w->fingerprint.sums, w->fingerprint.blocks);

	if (wl_fingerprint(&w->wl) != now)
		wl_fingerprint_set(&w->wl, now);
}

/* Reads all blocks. The flush before it keeps a power cut from bringing older content back. */
static void dwl_fp_read(struct dwl *w)
{
	struct dwl_fingerprint *fingerprint = &w->fingerprint;
	int err;

	fingerprint->blocks = wl_fingerprint_blocks(w->ti->len);
	bitmap_zero(fingerprint->changed, WL_FINGERPRINT_BLOCKS);
	bitmap_set(fingerprint->changed, 0, fingerprint->blocks);
	err = blkdev_issue_flush(w->origin->bdev);
	if (!err)
		err = dwl_fp_read_changed(w);
	if (!err)
		return;
	fingerprint->blocks = 0;
	DMWARN("%pg: cannot read how origin %pg begins: error %d; whether it is the right one isn't verified",
	       w->log->bdev, w->origin->bdev, err);
}

/* True if the origin is as the log's last user left it, or if that is unknown. */
static bool dwl_fp_matches(const struct dwl *w)
{
	u32 was = wl_fingerprint(&w->wl);
	u32 blocks = wl_fingerprint_blocks(le64_to_cpu(w->wl.super.origin_sectors));

	if (was == WL_FINGERPRINT_NONE || was == WL_FINGERPRINT_CHANGING || blocks > w->fingerprint.blocks)
		return true;
	return was == wl_fingerprint_of(&w->wl, w->fingerprint.sums, blocks);
}

/**
 * dwl_fp_check() - verify that this is the origin of the log's writes, unchanged
 * @w: the target; the index is filled, and the log still bound as before
 *
 * An origin that can't be read is not refused.
 *
 * Context: Task, before the first resume. Sleeps.
 * Return: 0; -EINVAL after a message: it is another disk, or was changed.
 */
int dwl_fp_check(struct dwl *w)
{
	dwl_fp_read(w);
	if (w->params.any_origin || !atomic_long_read(&w->nr_regions) || dwl_fp_matches(w))
		return 0;
	DMERR("%pg: holds writes to an origin whose first MiB is not that of %pg: it is another disk, or was changed without the log (mounted, checked)",
	      w->log->bdev, w->origin->bdev);
	DMERR("%pg: to write them to %pg all the same: option any_origin 1, forebay writelog create --any-origin",
	      w->log->bdev, w->origin->bdev);
	return -EINVAL;
}

/**
 * dwl_fp_begin() - store the fingerprint before the log is used
 * @w: the target; the log is bound to the origin
 * @loaded: dwl_fp_check() has just been called
 *
 * Context: Task, no worker runs. Sleeps.
 */
void dwl_fp_begin(struct dwl *w, bool loaded)
{
	if (!loaded) {
		if (wl_fingerprint(&w->wl))
			return;
		dwl_fp_read(w);
	}
	dwl_fp_store(w);
}

/**
 * dwl_fp_end() - the log is out of use
 * @w: the target
 *
 * Removes the fingerprint of an empty log: the origin may then be changed.
 * Context: Task, no worker runs.
 */
void dwl_fp_end(struct dwl *w)
{
	if (!dwl_gens_used(w) && wl_fingerprint(&w->wl))
		wl_fingerprint_set(&w->wl, WL_FINGERPRINT_NONE);
}

/**
 * dwl_fp_changing() - prepare for writing w->extents to the origin
 * @w: the target
 *
 * The mark in the log is durable on return.
 * Context: Worker.
 */
void dwl_fp_changing(struct dwl *w)
{
	struct dwl_fingerprint *fingerprint = &w->fingerprint;
	u64 area = (u64)fingerprint->blocks << DWL_FP_SHIFT;
	u32 i;

	/* The extents are sorted. */
	for (i = 0; i < w->nr_extents && w->extents[i].sector < area; i++) {
		const struct dwl_extent *extent = &w->extents[i];
		u64 end = min(extent->sector + extent->sectors, area);
		u64 first = extent->sector >> DWL_FP_SHIFT;

		bitmap_set(fingerprint->changed, first, ((end - 1) >> DWL_FP_SHIFT) - first + 1);
		fingerprint->unchanged = false;
	}
	if (i && wl_fingerprint(&w->wl) != WL_FINGERPRINT_CHANGING)
		wl_fingerprint_set(&w->wl, WL_FINGERPRINT_CHANGING);
}

/**
 * dwl_fp_flushing() - a flush of the origin begins; all writes to it have completed
 * @w: the target
 *
 * Context: Worker.
 */
void dwl_fp_flushing(struct dwl *w)
{
	w->fingerprint.unchanged = true;
}

/**
 * dwl_fp_flushed() - the flush has succeeded
 * @w: the target
 *
 * Stores the new fingerprint, unless the blocks were written during the flush: the next flush then
 * does.
 * Context: Worker. Sleeps.
 */
void dwl_fp_flushed(struct dwl *w)
{
	struct dwl_fingerprint *fingerprint = &w->fingerprint;

	if (!fingerprint->unchanged || bitmap_empty(fingerprint->changed, WL_FINGERPRINT_BLOCKS))
		return;
	if (!dwl_fp_read_changed(w))
		dwl_fp_store(w);
}
