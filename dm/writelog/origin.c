// SPDX-License-Identifier: GPL-2.0-only
/*
 * Writing extents to the origin, merged into bios as large as the origin accepts.
 *
 * Whole pages of an extent are written directly from the log. Parts of pages are first gathered in
 * bounce pages. Zeroes are passed to the origin, or written from the zero page if the origin can't do
 * that. All bios and pages come from mempools: writeback continues when memory is short, because tasks
 * that free memory may wait for writeback.
 *
 * The amount in flight depends on how full the log is. While the log isn't nearly full, reads go first,
 * for at most half of the worker's time. When the maximum is in flight, the worker sleeps until half of
 * it is done. So the worker wakes seldom, and the bios submitted after a wakeup go down together (a
 * plug).
 */
#include <linux/delay.h>
#include <linux/kthread.h>
#include <linux/uio.h>

#include "space.h"
#include "trace.h"
#include "writeback.h"

/* Maximum bytes of a bio; the mempool of bounce pages has as many pages. */
#define DWL_BIO_BYTES		(BIO_MAX_VECS << PAGE_SHIFT)
/* Bytes in flight are counted in units; a smaller bio counts as one. */
#define DWL_UNIT_BYTES		SZ_128K
#define DWL_UNITS		(DWL_BIO_BYTES / DWL_UNIT_BYTES)
/* Maximum time in ns that writeback waits for reads at once. */
#define DWL_MAX_READ_WAIT_NS		(4 * NSEC_PER_MSEC)

struct dwl_wbio {
	struct dwl *w;
	u64 start_ns;
	u64 sector, bytes;
	struct bio bio;			/* last: its bio_vecs follow */
};

int dwl_origin_init(struct dwl *w)
{
	int err = bioset_init(&w->bios, w->params.depth, offsetof(struct dwl_wbio, bio), BIOSET_NEED_BVECS);

	if (!err)
		err = mempool_init_page_pool(&w->bounce, BIO_MAX_VECS, 0);
	if (!err)
		err = dwl_fp_init(w);
	return err;
}

void dwl_origin_exit(struct dwl *w)
{
	dwl_fp_exit(w);
	bioset_exit(&w->bios);
	mempool_exit(&w->bounce);
}

static u32 dwl_units(u64 bytes)
{
	return DIV_ROUND_UP_ULL(bytes, DWL_UNIT_BYTES);
}

static bool dwl_in_log(const struct dwl *w, const void *address)
{
	return (u8 *)address >= w->wl.base && (u8 *)address < w->wl.base + w->wl.size;
}

static void dwl_bio_free(struct dwl *w, struct bio *bio)
{
	struct bvec_iter_all all;
	struct bio_vec *bv;
	struct page *last = NULL;

	bio_for_each_segment_all(bv, bio, all) {
		if (bv->bv_page != last && bv->bv_page != ZERO_PAGE(0) &&
		    !dwl_in_log(w, page_address(bv->bv_page)))
			mempool_free(bv->bv_page, &w->bounce);
		last = bv->bv_page;
	}
	bio_put(bio);
}

static void dwl_bio_done(struct bio *bio)
{
	struct dwl_wbio *wb = container_of(bio, struct dwl_wbio, bio);
	struct dwl *w = wb->w;
	u32 units = dwl_units(wb->bytes);
	u64 sector = wb->sector, refused = bio->bi_status ? wb->bytes >> WL_SECTOR_SHIFT : 0;
	unsigned long flags;

	dwl_latency(w, DWL_PHASE_WRITEBACK, wb->start_ns);
	if (bio->bi_status && bio_op(bio) == REQ_OP_WRITE_ZEROES &&
	    (bio->bi_status == BLK_STS_NOTSUPP || !bdev_write_zeroes_sectors(bio->bi_bdev)))
		WRITE_ONCE(w->zeroes_refused, true);
	if (bio->bi_status)
		WRITE_ONCE(w->batch_status, bio->bi_status);
	else
		dwl_space_credit(w, wb->bytes * w->batch_credit >> 16);
	/* Frees @wb, too. */
	dwl_bio_free(w, bio);
	/* Under the lock: dwl_bios_wait() takes it, too, and after that no completion uses @w. */
	spin_lock_irqsave(&w->bios_done.lock, flags);
	if (refused && !w->failed_sectors) {
		w->failed_sector = sector;
		w->failed_sectors = refused;
	}
	WRITE_ONCE(w->units_in_flight, w->units_in_flight - units);
	if (w->units_in_flight <= w->units_awaited)
		wake_up_locked(&w->bios_done);
	spin_unlock_irqrestore(&w->bios_done.lock, flags);
}

/* Sleeps until at most @units are in flight. */
static void dwl_units_wait(struct dwl *w, u32 units)
{
	spin_lock_irq(&w->bios_done.lock);
	w->units_awaited = units;
	spin_unlock_irq(&w->bios_done.lock);
	wait_event(w->bios_done, READ_ONCE(w->units_in_flight) <= units);
}

/*
 * Waits a limited time for reads at the origin. The worker then writes for as long as it has waited
 * before it waits again: under constant reads it gets half of the time.
 */
static void dwl_wait_for_reads(struct dwl *w)
{
	u64 start_ns = ktime_get_ns(), now = start_ns;

	if (start_ns < w->no_read_wait_until)
		return;
	while (dwl_reads_in_flight(w) > 0 && now - start_ns < DWL_MAX_READ_WAIT_NS) {
		usleep_range(100, 300);
		now = ktime_get_ns();
	}
	w->no_read_wait_until = now + (now - start_ns);
}

/*
 * Limits what is in flight: the fuller the log, the more. While no task waits for space or a flush, the
 * limit is lower and reads go first.
 */
static void dwl_pace(struct dwl *w)
{
	u32 low = w->params.low_mark, level = dwl_space_level(w), max = w->params.depth * DWL_UNITS;

	if (!dwl_low_on_space(w) && READ_ONCE(w->flush_to) <= w->freed_to) {
		max = 1 + (max - 1) * (max(level, low) - low) / (100 - low);
		dwl_wait_for_reads(w);
	}
	if (READ_ONCE(w->units_in_flight) >= max)
		dwl_units_wait(w, max / 2);
}

static void dwl_bio_submit(struct dwl *w, struct bio *bio)
{
	struct dwl_wbio *wb = container_of(bio, struct dwl_wbio, bio);

	dwl_pace(w);
	dwl_count(w, DWL_WRITEBACK_BIOS, 1);
	dwl_count(w, DWL_WRITEBACK_SECTORS, bio_sectors(bio));
	trace_dwl_writeback(w, bio->bi_iter.bi_sector, bio_sectors(bio));
	wb->start_ns = dwl_now(w);
	wb->sector = bio->bi_iter.bi_sector;
	wb->bytes = bio->bi_iter.bi_size;
	spin_lock_irq(&w->bios_done.lock);
	w->units_in_flight += dwl_units(wb->bytes);
	spin_unlock_irq(&w->bios_done.lock);
	submit_bio(bio);
}

/* Estimates the number of bio_vecs for @extent and those that follow it on the origin. */
static u32 dwl_run_vecs(const struct dwl *w, const struct dwl_extent *extent)
{
	const struct dwl_extent *next, *end = w->extents + w->nr_extents;
	u64 bytes = (u64)extent->sectors << WL_SECTOR_SHIFT;

	for (next = extent + 1; next < end && bytes < DWL_BIO_BYTES; extent = next++) {
		if (next->sector != extent->sector + extent->sectors || next->value & DWL_ZERO)
			break;
		bytes += (u64)next->sectors << WL_SECTOR_SHIFT;
	}
	return min_t(u64, (bytes >> PAGE_SHIFT) + 2, BIO_MAX_VECS);
}

static struct bio *dwl_bio_new(struct dwl *w, u32 vecs, blk_opf_t op, u64 sector)
{
	struct bio *bio = bio_alloc_bioset(w->origin->bdev, vecs, op, GFP_NOIO, &w->bios);

	container_of(bio, struct dwl_wbio, bio)->w = w;
	bio->bi_iter.bi_sector = sector;
	bio->bi_end_io = dwl_bio_done;
	return bio;
}

/*
 * While tasks wait for space, writes are marked as direct ones: the block layer then doesn't throttle them
 * as it throttles background writeback.
 */
static blk_opf_t dwl_write_op(const struct dwl *w)
{
	return REQ_OP_WRITE | (dwl_low_on_space(w) ? REQ_SYNC | REQ_IDLE : 0);
}

/* Returns the space behind the bio's last bytes if they are in a bounce page, or a new page. */
static void *dwl_bounce_space(struct dwl *w, struct bio *bio, u32 *space)
{
	struct bio_vec *bv = bio->bi_vcnt ? &bio->bi_io_vec[bio->bi_vcnt - 1] : NULL;

	if (bv) {
		void *end = page_address(bv->bv_page) + bv->bv_offset + bv->bv_len;

		*space = -(unsigned long)end & ~PAGE_MASK;
		if (*space && !dwl_in_log(w, end - 1))
			return end;
	}
	*space = PAGE_SIZE;
	return page_address(mempool_alloc(&w->bounce, GFP_NOIO));
}

/*
 * Adds the first bytes of an extent. Returns their number; 0: the bio takes no more, or not beside what it
 * has (some kernels don't mix a device's pages with others in a bio); -EUCLEAN: unreadable.
 */
static int dwl_bio_add(struct dwl *w, struct bio *bio, const void *data, u32 bytes)
{
	unsigned long lost;
	u32 space;
	void *to;

	bytes = min(bytes, DWL_BIO_BYTES - bio->bi_iter.bi_size);
	if (!bytes || bio->bi_vcnt == bio->bi_max_vecs)
		return 0;
	/* Pages of an emulated log can't be told from bounce pages when the bio is freed. */
	if (PAGE_ALIGNED(data) && bytes >= PAGE_SIZE && !is_vmalloc_addr(data))
		return bio_add_page(bio, virt_to_page(data), bytes & PAGE_MASK, 0);
	to = dwl_bounce_space(w, bio, &space);
	bytes = min(bytes, space);
	lost = copy_mc_to_kernel(to, data, bytes);
	/* Added even if unreadable: dwl_bio_free() frees the pages of the bio. */
	if (!bio_add_page(bio, virt_to_page(to), bytes, offset_in_page(to))) {
		WARN_ON_ONCE(offset_in_page(to));	/* a page that the bio has already is not refused */
		mempool_free(virt_to_page(to), &w->bounce);
		return 0;
	}
	return lost ? -EUCLEAN : bytes;
}

/* Adds an extent to *@bio if it continues the bio. Submits full bios. */
static int dwl_write_extent(struct dwl *w, const struct dwl_extent *extent, struct bio **bio)
{
	const u8 *data = dwl_data(w, extent->value);
	u64 sector = extent->sector, end = sector + extent->sectors;

	while (sector < end && !READ_ONCE(w->batch_status)) {
		int added;

		if (*bio && bio_end_sector(*bio) != sector) {
			dwl_bio_submit(w, *bio);
			*bio = NULL;
		}
		if (!*bio)
			*bio = dwl_bio_new(w, dwl_run_vecs(w, extent), dwl_write_op(w), sector);
		added = dwl_bio_add(w, *bio, data, (end - sector) << WL_SECTOR_SHIFT);
		if (added < 0)
			return added;
		if (!added) {
			dwl_bio_submit(w, *bio);
			*bio = NULL;
		}
		data += added;
		sector += added >> WL_SECTOR_SHIFT;
	}
	return 0;
}

/* Writes zeroes to the first of @sectors sectors. Returns how many. */
static u32 dwl_write_zeroes(struct dwl *w, u64 sector, u32 sectors)
{
	u32 max = w->no_write_zeroes ? 0 : bdev_write_zeroes_sectors(w->origin->bdev);
	u32 bytes = min(sectors, max ?: U32_MAX) << WL_SECTOR_SHIFT;
	struct bio *bio;

	if (max) {
		bio = dwl_bio_new(w, 0, REQ_OP_WRITE_ZEROES | REQ_NOUNMAP, sector);
		bio->bi_iter.bi_size = bytes;
	} else {
		bytes = min(bytes, DWL_BIO_BYTES);
		bio = dwl_bio_new(w, DIV_ROUND_UP(bytes, PAGE_SIZE), REQ_OP_WRITE, sector);
		while (bio->bi_iter.bi_size < bytes)
			__bio_add_page(bio, ZERO_PAGE(0), min(bytes - bio->bi_iter.bi_size, PAGE_SIZE), 0);
	}
	dwl_bio_submit(w, bio);
	return bytes >> WL_SECTOR_SHIFT;
}

/* Like dwl_write_extent(), for zeroes. */
static void dwl_zero_extent(struct dwl *w, const struct dwl_extent *extent)
{
	u32 done = 0;

	while (done < extent->sectors && !READ_ONCE(w->batch_status))
		done += dwl_write_zeroes(w, extent->sector + done, extent->sectors - done);
}

#ifdef FB_BREAK_SLOW_STORE	/* on purpose: a block that begins so is lost while latencies are measured */
static bool dwl_break_lost(const struct dwl *w, const u8 *data)
{
	return READ_ONCE(w->latency) && !memcmp(data, "FB_LOST!", 8);
}
#else
static bool dwl_break_lost(const struct dwl *w, const u8 *data) { return false; }
#endif

/**
 * dwl_block_lost() - read a block from the log, and find out whether the medium has lost it
 * @w: the target
 * @block: an extent of one block, which has data
 * @page: gets the data
 *
 * With on_damage skip, a lost block is left out from now on.
 *
 * Context: Worker.
 * Return: true: lost, after a message in the kernel's log.
 */
bool dwl_block_lost(struct dwl *w, const struct dwl_extent *block, void *page)
{
	const u8 *data = dwl_data(w, block->value);

	if (!copy_mc_to_kernel(page, data, w->params.block_size) && !dwl_break_lost(w, data))
		return false;
	DMERR_LIMIT("%pg: data of sector %llu of the origin are lost: damaged in the log", w->log->bdev,
		    block->sector);
	if (w->params.skip_damage)
		dwl_index_mark_lost(w, block);
	return true;
}

static bool dwl_extent_damaged(struct dwl *w, const struct dwl_extent *extent, void *page)
{
	u32 sectors = 1 << w->block_shift, offset;
	bool damaged = false;

	for (offset = 0; offset < extent->sectors && !(extent->value & DWL_ZERO); offset += sectors) {
		u64 value = dwl_value_behind(extent->value, offset);
		struct dwl_extent block = { extent->sector + offset, value, sectors };

		damaged |= dwl_block_lost(w, &block, page);
	}
	return damaged;
}

/* Checks after an error whether the log is damaged. The origin's driver may have failed to read it, too. */
static bool dwl_log_damaged(struct dwl *w)
{
	struct page *page = mempool_alloc(&w->bounce, GFP_NOIO);
	bool damaged = false;
	u32 i;

	for (i = 0; i < w->nr_extents && !dwl_worker_must_stop(); i++) {
		damaged |= dwl_extent_damaged(w, &w->extents[i], page_address(page));
		cond_resched();
	}
	mempool_free(page, &w->bounce);
	return damaged;
}

/* True if w->extents are one block. */
static bool dwl_is_single_block(const struct dwl *w)
{
	return w->nr_extents == 1 && w->extents[0].sectors == 1 << w->block_shift;
}

static void dwl_bios_wait(struct dwl *w)
{
	dwl_units_wait(w, 0);
	spin_lock_irq(&w->bios_done.lock);
	spin_unlock_irq(&w->bios_done.lock);
}

/* Waits for all bios, and for the end of their completions. */
static int dwl_write_all(struct dwl *w)
{
	struct bio *bio = NULL;
	struct blk_plug plug;
	int err = 0;
	u32 i;

	w->batch_status = BLK_STS_OK;
	w->failed_sectors = 0;
	blk_start_plug(&plug);
	for (i = 0; i < w->nr_extents && !err && !READ_ONCE(w->batch_status); i++) {
		const struct dwl_extent *extent = &w->extents[i];

		if (dwl_worker_must_stop()) {
			err = -EINTR;
		} else if (extent->value & DWL_ZERO) {
			/* The bio isn't kept during the next allocation: the mempool may hold only one. */
			if (bio)
				dwl_bio_submit(w, bio);
			bio = NULL;
			dwl_zero_extent(w, extent);
		} else {
			err = dwl_write_extent(w, extent, &bio);
		}
	}
	if (bio && err)
		dwl_bio_free(w, bio);
	else if (bio)
		dwl_bio_submit(w, bio);
	blk_finish_plug(&plug);
	dwl_bios_wait(w);
	return err ? err : blk_status_to_errno(READ_ONCE(w->batch_status));
}

/**
 * dwl_origin_write_extents() - write w->extents to the origin
 * @w: the target
 * @find_damage: after an error, look for damage in the log
 *
 * After an error the extents may or may not be on the origin.
 *
 * Context: Worker. Sleeps. On return nothing of the batch is in flight.
 * Return: 0: all are written, and durable after a flush. -EINTR: the worker must stop. -EUCLEAN: some
 * can't be read from the log. -ESTALE: as before, and they were left out of the index. Other errors are
 * the origin's.
 */
int dwl_origin_write_extents(struct dwl *w, bool find_damage)
{
	int err;

	dwl_fp_changing(w);
	err = dwl_write_all(w);
	/* Refusing zeroes isn't an error of the origin: the batch is repeated with pages of zeros. */
	if (err && READ_ONCE(w->zeroes_refused)) {
		w->no_write_zeroes = true;
		w->zeroes_refused = false;
		err = dwl_write_all(w);
	}
	if (!err || err == -EINTR || !find_damage)
		return err;
	/* While the origin fails, only single blocks are examined: aside.c must know whose error it is. */
	if (err != -EUCLEAN && w->failing_since && !dwl_is_single_block(w))
		return err;
	if (!dwl_log_damaged(w))
		return err == -EUCLEAN ? -EINTR : err;
	return w->params.skip_damage ? -ESTALE : -EUCLEAN;
}
