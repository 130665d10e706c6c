// SPDX-License-Identifier: GPL-2.0-only
/*
 * Pieces go to the origin, merged into bios as large as it takes.
 *
 * Pages of the log that a piece fills are written from where they are; parts of
 * pages are gathered in pages of DRAM first. Zeros are the origin's affair, or the zero
 * page's if it has no such thing. All bios and pages come from pools of our own: this goes
 * on when memory is short, as those who free it may wait for us.
 *
 * How much is out at a time depends on how full the log is, and while it isn't nearly full,
 * reads go first. When that much is out, the worker sleeps until half of it is done, not at
 * every bio: so what it submits then goes down together (a plug), and it wakes seldom.
 */
#include <linux/delay.h>
#include <linux/kthread.h>
#include <linux/uio.h>

#include "trace.h"

/* Bytes of a bio; as many pages as the mempool of bounce pages has. */
#define DWL_BIO_BYTES		(BIO_MAX_VECS << PAGE_SHIFT)
/* What is out is counted in so many bytes; a smaller bio counts as one. */
#define DWL_UNIT_BYTES		SZ_128K
#define DWL_UNITS		(DWL_BIO_BYTES / DWL_UNIT_BYTES)

struct dwl_wbio {
	struct dwl *w;
	u64 began;
	u64 bytes;
	struct bio bio;			/* last: its vectors follow */
};

int dwl_origin_init(struct dwl *w)
{
	int err = bioset_init(&w->bios, w->params.depth, offsetof(struct dwl_wbio, bio), BIOSET_NEED_BVECS);

	if (!err)
		err = mempool_init_page_pool(&w->bounce, BIO_MAX_VECS, 0);
	return err;
}

void dwl_origin_exit(struct dwl *w)
{
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
	unsigned long flags;

	dwl_latency(w, DWL_PHASE_WRITEBACK, wb->began);
	if (bio->bi_status && bio_op(bio) == REQ_OP_WRITE_ZEROES &&
	    (bio->bi_status == BLK_STS_NOTSUPP || !bdev_write_zeroes_sectors(bio->bi_bdev)))
		WRITE_ONCE(w->zeroes_refused, true);
	if (bio->bi_status)
		WRITE_ONCE(w->batch_status, bio->bi_status);
	else
		dwl_space_credit(w, wb->bytes * w->batch_credit >> 16);
	/* @wb goes with it. */
	dwl_bio_free(w, bio);
	/* With the lock, so that the worker can see to it that we are through with @w. */
	spin_lock_irqsave(&w->bios_done.lock, flags);
	WRITE_ONCE(w->units_below, w->units_below - units);
	if (w->units_below <= w->units_awaited)
		wake_up_locked(&w->bios_done);
	spin_unlock_irqrestore(&w->bios_done.lock, flags);
}

static s64 dwl_reads_below(const struct dwl *w)
{
	s64 n = 0;
	int cpu;

	for_each_possible_cpu(cpu)
		n += READ_ONCE(per_cpu_ptr(w->stats, cpu)->reads_below);
	return n;
}

/* Sleeps until no more than this is out. */
static void dwl_units_wait(struct dwl *w, u32 units)
{
	spin_lock_irq(&w->bios_done.lock);
	w->units_awaited = units;
	spin_unlock_irq(&w->bios_done.lock);
	wait_event(w->bios_done, READ_ONCE(w->units_below) <= units);
}

/* The fuller the log, the more at a time; nobody who waits: less, and readers first. */
static void dwl_pace(struct dwl *w)
{
	u32 low = w->params.low_mark, level = dwl_space_level(w), most = w->params.depth * DWL_UNITS;
	int patience;

	if (!dwl_short(w) && READ_ONCE(w->flush_to) <= w->freed_to) {
		most = 1 + (most - 1) * (max(level, low) - low) / (100 - low);
		for (patience = 20; patience && dwl_reads_below(w) > 0; patience--)
			usleep_range(100, 300);
	}
	if (READ_ONCE(w->units_below) >= most)
		dwl_units_wait(w, most / 2);
}

static void dwl_bio_submit(struct dwl *w, struct bio *bio)
{
	struct dwl_wbio *wb = container_of(bio, struct dwl_wbio, bio);

	dwl_pace(w);
	dwl_count(w, DWL_WRITEBACK_BIOS, 1);
	dwl_count(w, DWL_WRITEBACK_SECTORS, bio_sectors(bio));
	trace_dwl_writeback(w, bio->bi_iter.bi_sector, bio_sectors(bio));
	wb->began = dwl_now(w);
	wb->bytes = bio->bi_iter.bi_size;
	spin_lock_irq(&w->bios_done.lock);
	w->units_below += dwl_units(wb->bytes);
	spin_unlock_irq(&w->bios_done.lock);
	submit_bio(bio);
}

/* A guess at how many vectors it takes to write @piece and those that lie behind it on the origin. */
static u32 dwl_run_vecs(const struct dwl *w, const struct dwl_piece *piece)
{
	const struct dwl_piece *next, *end = w->pieces + w->nr_pieces;
	u64 bytes = (u64)piece->sectors << WL_SECTOR_SHIFT;

	for (next = piece + 1; next < end && bytes < DWL_BIO_BYTES; piece = next++) {
		if (next->sector != piece->sector + piece->sectors || next->value & DWL_ZERO)
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

/* The room behind the last bytes of the bio, if these are in a bounce page; else a new one. */
static void *dwl_bounce_room(struct dwl *w, struct bio *bio, u32 *room)
{
	struct bio_vec *bv = bio->bi_vcnt ? &bio->bi_io_vec[bio->bi_vcnt - 1] : NULL;

	if (bv) {
		void *end = page_address(bv->bv_page) + bv->bv_offset + bv->bv_len;

		*room = -(unsigned long)end & ~PAGE_MASK;
		if (*room && !dwl_in_log(w, end - 1))
			return end;
	}
	*room = PAGE_SIZE;
	return page_address(mempool_alloc(&w->bounce, GFP_NOIO));
}

/* Adds the first bytes of a piece; returns how many, 0: the bio is full, -EUCLEAN: unreadable. */
static int dwl_bio_add(struct dwl *w, struct bio *bio, const void *data, u32 bytes)
{
	unsigned long lost;
	u32 room;
	void *to;

	bytes = min(bytes, DWL_BIO_BYTES - bio->bi_iter.bi_size);
	if (!bytes || bio->bi_vcnt == bio->bi_max_vecs)
		return 0;
	/* An emulated log's pages could not be told from ours when the bio is freed. */
	if (PAGE_ALIGNED(data) && bytes >= PAGE_SIZE && !is_vmalloc_addr(data))
		return bio_add_page(bio, virt_to_page(data), bytes & PAGE_MASK, 0);
	to = dwl_bounce_room(w, bio, &room);
	bytes = min(bytes, room);
	lost = copy_mc_to_kernel(to, data, bytes);
	/* Added all the same: whoever frees the bio frees its pages. */
	if (!bio_add_page(bio, virt_to_page(to), bytes, offset_in_page(to)) || lost)
		return -EUCLEAN;
	return bytes;
}

/* Appends a piece to *@bio if it goes on where that ends; submits what is complete. */
static int dwl_write_piece(struct dwl *w, const struct dwl_piece *piece, struct bio **bio)
{
	const u8 *data = dwl_data(w, piece->value);
	u64 sector = piece->sector, end = sector + piece->sectors;

	while (sector < end && !READ_ONCE(w->batch_status)) {
		int added;

		if (*bio && bio_end_sector(*bio) != sector) {
			dwl_bio_submit(w, *bio);
			*bio = NULL;
		}
		if (!*bio)
			*bio = dwl_bio_new(w, dwl_run_vecs(w, piece), REQ_OP_WRITE, sector);
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

/* The first of these sectors, as zeros; returns how many. */
static u32 dwl_write_zeroes(struct dwl *w, u64 sector, u32 sectors)
{
	u32 most = w->no_write_zeroes ? 0 : bdev_write_zeroes_sectors(w->origin->bdev);
	u32 bytes = min(sectors, most ?: U32_MAX) << WL_SECTOR_SHIFT;
	struct bio *bio;

	if (most) {
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

/* As dwl_write_piece(), of zeros. */
static void dwl_zero_piece(struct dwl *w, const struct dwl_piece *piece)
{
	u32 done = 0;

	while (done < piece->sectors && !READ_ONCE(w->batch_status))
		done += dwl_write_zeroes(w, piece->sector + done, piece->sectors - done);
}

static bool dwl_readable(const u8 *data, u32 bytes, void *page)
{
	while (bytes) {
		u32 len = min(bytes, PAGE_SIZE);

		if (copy_mc_to_kernel(page, data, len))
			return false;
		data += len;
		bytes -= len;
	}
	return true;
}

/* Is a block of the piece damaged in the log? With on_damage skip, it is left out from now on. */
static bool dwl_piece_damaged(struct dwl *w, const struct dwl_piece *piece, void *page)
{
	u32 sectors = 1 << w->block_shift, offset;
	bool damaged = false;

	for (offset = 0; offset < piece->sectors && !(piece->value & DWL_ZERO); offset += sectors) {
		u64 value = dwl_value_behind(piece->value, offset);
		struct dwl_piece block = { piece->sector + offset, value, sectors };

		if (dwl_readable(dwl_data(w, block.value), sectors << WL_SECTOR_SHIFT, page))
			continue;
		damaged = true;
		DMERR_LIMIT("%pg: data of sector %llu of the origin are lost: damaged in the log",
			    w->cache->bdev, block.sector);
		if (w->params.skip_damage)
			dwl_index_lose(w, &block);
	}
	return damaged;
}

/* Something has failed: is it the log? It may also have been the origin's driver that could not read it. */
static bool dwl_log_damaged(struct dwl *w)
{
	struct page *page = mempool_alloc(&w->bounce, GFP_NOIO);
	bool damaged = false;
	u32 i;

	for (i = 0; i < w->nr_pieces && !dwl_worker_leaves(); i++) {
		damaged |= dwl_piece_damaged(w, &w->pieces[i], page_address(page));
		cond_resched();
	}
	mempool_free(page, &w->bounce);
	return damaged;
}

static void dwl_bios_wait(struct dwl *w)
{
	dwl_units_wait(w, 0);
	spin_lock_irq(&w->bios_done.lock);
	spin_unlock_irq(&w->bios_done.lock);
}

/* Returns when nothing of it is below any more. */
static int dwl_write_all(struct dwl *w)
{
	struct bio *bio = NULL;
	struct blk_plug plug;
	int err = 0;
	u32 i;

	w->batch_status = BLK_STS_OK;
	blk_start_plug(&plug);
	for (i = 0; i < w->nr_pieces && !err && !READ_ONCE(w->batch_status); i++) {
		const struct dwl_piece *piece = &w->pieces[i];

		if (dwl_worker_leaves()) {
			err = -EINTR;
		} else if (piece->value & DWL_ZERO) {
			/* Not held while another is allocated: there may be only one. */
			if (bio)
				dwl_bio_submit(w, bio);
			bio = NULL;
			dwl_zero_piece(w, piece);
		} else {
			err = dwl_write_piece(w, piece, &bio);
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
 * dwl_origin_write_pieces() - write w->pieces to the origin
 * @w: the target; the worker calls
 *
 * Return: 0, when all of them are there, and will be durable when it has been
 * flushed; else they may or may not be, and it may be -EINTR: the worker leaves;
 * -EUCLEAN: some can't be read from the log; -ESTALE: nor are they wanted any more.
 */
int dwl_origin_write_pieces(struct dwl *w)
{
	int err = dwl_write_all(w);

	/* That it takes no zeros is no fault of the origin's: once more, with pages of them. */
	if (err && READ_ONCE(w->zeroes_refused)) {
		w->no_write_zeroes = true;
		w->zeroes_refused = false;
		err = dwl_write_all(w);
	}
	if (!err || err == -EINTR || (err != -EUCLEAN && w->failing_since))
		return err;
	if (!dwl_log_damaged(w))
		return err == -EUCLEAN ? -EINTR : err;
	return w->params.skip_damage ? -ESTALE : -EUCLEAN;
}

static void dwl_flush_bio_done(struct bio *bio)
{
	struct dwl *w = bio->bi_private;

	complete(&w->flush_done);
}

/* Makes durable what has been written; other writes may go on meanwhile. */
void dwl_origin_flush_begin(struct dwl *w)
{
	struct bio *bio = &w->flush_bio;

	bio_init(bio, w->origin->bdev, NULL, 0, REQ_OP_WRITE | REQ_PREFLUSH);
	bio->bi_private = w;
	bio->bi_end_io = dwl_flush_bio_done;
	reinit_completion(&w->flush_done);
	w->flush_began = dwl_now(w);
	submit_bio(bio);
}

/* Waits for it. */
int dwl_origin_flush_end(struct dwl *w)
{
	int err;

	wait_for_completion_io(&w->flush_done);
	dwl_latency(w, DWL_PHASE_FLUSH, w->flush_began);
	err = blk_status_to_errno(w->flush_bio.bi_status);
	bio_uninit(&w->flush_bio);
	return err;
}
