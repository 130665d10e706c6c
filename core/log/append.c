// SPDX-License-Identifier: GPL-2.0-only
/*
 * Appending to a write log: what a slot does between a write's arrival and its completion.
 *
 * Invariants:
 *   - a chunk's word counts only entries whose header and data are durable;
 *   - bytes that a word has counted never change in that life of the generation;
 *   - only the slot's own chunk is touched here, so slots are independent of
 *     each other.
 *
 * The caller decides which chunk a slot has; see log.h.
 */
#include "layout.h"

/* Bytes that are copied at once where data have checksums: on the stack. */
#define COPY_PART	512u

static_assert(sizeof(struct wl_entry_onmedia) == WL_LINE);

/**
 * wl_slot_take - give a slot a chunk to fill
 * @slot: all its entries are committed
 * @gen: number of an open generation
 * @id: its identifier
 * @chunk: one that no slot had in this life of the generation
 *
 * Stores nothing: a chunk begins to count with its first commit.
 *
 * Context: Any; one thread at a time for each slot.
 */
void wl_slot_take(struct wl_slot *slot, u32 gen, u64 id, u32 chunk)
{
	*slot = (struct wl_slot){ .gen = gen, .id = id, .chunk = chunk };
}

/* Offset in the slot's chunk where data of that length would begin. */
static u64 data_offset(const struct wl *wl, const struct wl_slot *slot, u32 len)
{
	return wl_round_up(slot->head, len & (wl->align - 1) ? WL_DATA_ALIGN : wl->align);
}

/**
 * wl_slot_full - whether no other entry fits, even without data
 * @wl: log
 * @slot: with or without a chunk
 *
 * Context: Any; one thread at a time for each slot.
 * Return: true if the slot has to take another chunk.
 */
bool wl_slot_full(const struct wl *wl, const struct wl_slot *slot)
{
	u32 lines = wl->chunk_size / WL_LINE;

	/* Headers alone can fill a chunk: each takes a line, and the chunk's own word one. */
	return !slot->id || slot->fill == WL_MAX_FILL || slot->fill + 1 == lines ||
	       slot->head > wl_headers_start(wl, slot->fill + 1);
}

/**
 * wl_slot_space - how much data the next entry of a slot may have
 * @wl: log
 * @slot: with or without a chunk
 * @want: bytes, a multiple of a sector, not 0
 *
 * Context: Any; one thread at a time for each slot.
 * Return: @want if it fits; otherwise what fits, a multiple of wl->align and of a sector; 0: the slot
 * has to take another chunk.
 */
u32 wl_slot_space(const struct wl *wl, const struct wl_slot *slot, u32 want)
{
	u32 unit = max_t(u32, wl->align, 1u << WL_SECTOR_SHIFT);
	u64 end, start;

	if (wl_slot_full(wl, slot))
		return 0;
	end = wl_headers_start(wl, slot->fill + 1);
	if (data_offset(wl, slot, want) + want <= end)
		return want;
	start = data_offset(wl, slot, 0);
	return start < end ? wl_round_down(end - start, unit) : 0;
}

/**
 * wl_begin - begin an entry
 * @wl: log, not opened read-only
 * @slot: has space for the entry
 * @op: kind of the entry
 * @sector: first sector of the origin
 * @nr_sectors: at least 1; the range ends at WL_MAX_SECTOR or below
 * @seq: sequence number, never given before in this generation
 *
 * Stores nothing. wl_write() and wl_end() follow, on the same slot.
 *
 * Context: Any; one thread at a time for each slot.
 */
void wl_begin(const struct wl *wl, struct wl_slot *slot, enum wl_op op, u64 sector,
	      u64 nr_sectors, u32 seq)
{
	struct wl_entry *entry = &slot->entry;

	*entry = (struct wl_entry){
		.order = wl_order(slot->id, seq),
		.sector = sector,
		.nr_sectors = nr_sectors,
		.op = op,
		.gen = slot->gen,
		.chunk = slot->chunk,
		.index = slot->fill,
	};
	slot->written = 0;
	if (op != WL_OP_WRITE)
		return;
	slot->head = data_offset(wl, slot, wl_entry_len(entry));
	entry->data = wl_chunk_at(wl, slot->gen, slot->chunk) + slot->head - wl->base;
	entry->data_crc = wl->data_crc ? ~0u : 0;
}

/*
 * Copies data and continues their checksum. Each byte of the source is read once: a program may change its
 * buffer during a direct write, and the checksum has to be that of the bytes in the log.
 */
static u32 copy_with_crc(u8 *to, const u8 *src, u32 len, u32 crc)
{
	u8 part[COPY_PART];
	u32 n;

	for (; len; len -= n, src += n, to += n) {
		n = min_t(u32, len, sizeof(part));
		memcpy(part, src, n);
		crc = crc32c(crc, part, n);
		pm_copy(to, part, n);
	}
	return crc;
}

/**
 * wl_write - write the next part of an entry's data
 * @wl: log
 * @slot: between wl_begin() of a write and wl_end()
 * @src: the bytes; may change meanwhile: the log then has some of the old and some of the new ones
 * @len: their number; all parts together are as long as the entry
 *
 * Durable, and part of the log, after wl_commit().
 *
 * Context: Any; one thread at a time for each slot.
 */
void wl_write(const struct wl *wl, struct wl_slot *slot, const void *src, u32 len)
{
	u8 *to = (u8 *)wl_entry_data(wl, &slot->entry) + slot->written;

	slot->written += len;
	if (wl->data_crc)
		slot->entry.data_crc = copy_with_crc(to, src, len, slot->entry.data_crc);
	else
		pm_copy(to, src, len);
}

/**
 * wl_end - end an entry: all its data has been written
 * @wl: log
 * @slot: after wl_begin(), and wl_write() if it is a write
 * @entry: set to what replay will return for it
 *
 * Durable, and part of the log, after wl_commit().
 *
 * Context: Any; one thread at a time for each slot.
 */
void wl_end(const struct wl *wl, struct wl_slot *slot, struct wl_entry *entry)
{
	struct wl_entry_onmedia rec = { };

	if (wl->data_crc && slot->entry.op == WL_OP_WRITE)
		slot->entry.data_crc = ~slot->entry.data_crc;
	*entry = slot->entry;
	rec.order = cpu_to_le64(entry->order);
	rec.sector = cpu_to_le64(entry->sector);
	rec.nr_sectors = cpu_to_le64(entry->nr_sectors);
	rec.op = cpu_to_le32(entry->op);
	if (entry->op == WL_OP_WRITE)
		rec.data = cpu_to_le32(slot->head);
	rec.data_crc = cpu_to_le32(entry->data_crc);
	rec.index = cpu_to_le32(entry->index);
	rec.crc = cpu_to_le32(wl_entry_crc(wl, wl_chunk_number(wl, entry->gen, entry->chunk), &rec));
	pm_copy(wl_entry_header(wl, entry->gen, entry->chunk, entry->index), &rec, sizeof(rec));
	slot->head += wl_entry_len(entry);
	slot->fill++;
}

/**
 * wl_commit - make all entries that the slot has ended part of the log, durably
 * @wl: log
 * @slot: not between wl_begin() and wl_end()
 *
 * After a power cut during this function, all of them are part of the log, or none.
 *
 * If the medium has lost the line of the chunk's word, the whole line is written: a store of the word alone
 * would not heal it. The new word counts the chunk's earlier entries, too, so no entry is lost.
 *
 * Context: Any; one thread at a time for each slot.
 */
void wl_commit(const struct wl *wl, struct wl_slot *slot)
{
	struct wl_chunk_onmedia *header = wl_chunk_header(wl, slot->gen, slot->chunk), rec;
	u64 word = wl_chunk_word(wl, wl_chunk_number(wl, slot->gen, slot->chunk), slot->id, slot->fill);
	/* Before the fence: the processor reads the line, which it needs for the store, while data drain. */
	bool readable = pm_read(&rec, header, sizeof(rec));

	if (!BREAK_DATA_FENCE)
		pm_fence();
	if (readable) {
		wl_store(wl, &header->word, word);
	} else {
		rec = (struct wl_chunk_onmedia){ .word = cpu_to_le64(word) };
		pm_copy(header, &rec, sizeof(rec));
	}
	pm_fence();
}
