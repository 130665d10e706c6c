// SPDX-License-Identifier: GPL-2.0-only
/*
 * Reading a write log: all its entries, oldest first, and what is damaged.
 *
 * A cursor takes one generation after the other by identifier. Within a generation, each chunk is a stream
 * of entries in the order in which its slot made them; a heap merges the streams. Each damage is reported
 * once, where the cursor finds it. The cursor can continue after it, because headers have fixed positions,
 * and a damaged one hides no other.
 *
 * Nothing on the device is trusted: each header is copied and verified before use. check.c
 * verifies more than replay needs.
 */
#include "layout.h"

/**
 * wl_chunk_read - the number of entries in a chunk
 * @wl: log
 * @gen: number of a generation that is not free
 * @id: its identifier
 * @chunk: number of the chunk within it
 *
 * Context: Any; no slot holds the chunk.
 * Return: the number, 0 if the chunk is unused in this life of the generation; -EUCLEAN: the chunk's
 * word is damaged.
 */
int wl_chunk_read(const struct wl *wl, u32 gen, u64 id, u32 chunk)
{
	u64 word;

	if (!wl_chunk_load(wl, gen, chunk, &word))
		return -EUCLEAN;
	return wl_word_id(word) == id ? word & WL_FILL_MASK : 0;
}

static bool range_possible(const struct wl_entry *entry)
{
	return entry->nr_sectors && entry->nr_sectors <= WL_MAX_SECTOR &&
	       entry->sector <= WL_MAX_SECTOR - entry->nr_sectors;
}

/* Returns where the data begins in the chunk; -EUCLEAN: the position is impossible. */
static int data_start(const struct wl *wl, const struct wl_entry *entry,
		      const struct wl_entry_onmedia *rec)
{
	u32 data = le32_to_cpu(rec->data), end = wl_headers_start(wl, entry->index + 1);

	if (entry->op == WL_OP_DISCARD || entry->op == WL_OP_ZEROES)
		return data || rec->data_crc ? -EUCLEAN : 0;
	if (entry->op != WL_OP_WRITE || data % WL_DATA_ALIGN || data > end ||
	    entry->nr_sectors > (end - data) >> WL_SECTOR_SHIFT)
		return -EUCLEAN;
	return data;
}

/**
 * wl_entry_read - read and verify the header of an entry
 * @wl: log
 * @gen: number of a generation that is not free
 * @id: its identifier
 * @chunk: number of the chunk within it
 * @index: of the entry, below the result of wl_chunk_read()
 * @entry: set if 0 is returned; its data is not verified
 *
 * Context: Any; no slot holds the chunk.
 * Return: 0; -EUCLEAN: the header is damaged.
 */
int wl_entry_read(const struct wl *wl, u32 gen, u64 id, u32 chunk, u32 index,
		  struct wl_entry *entry)
{
	struct wl_entry_onmedia rec;
	int data;

	if (!pm_read(&rec, wl_entry_header(wl, gen, chunk, index), sizeof(rec)))
		return -EUCLEAN;
	*entry = (struct wl_entry){
		.order = le64_to_cpu(rec.order),
		.sector = le64_to_cpu(rec.sector),
		.nr_sectors = le64_to_cpu(rec.nr_sectors),
		.op = le32_to_cpu(rec.op),
		.data_crc = le32_to_cpu(rec.data_crc),
		.gen = gen,
		.chunk = chunk,
		.index = index,
	};
	if (le32_to_cpu(rec.crc) != wl_entry_crc(wl, wl_chunk_number(wl, gen, chunk), &rec) ||
	    le32_to_cpu(rec.index) != index || wl_order_id(entry->order) != id || !range_possible(entry))
		return -EUCLEAN;
	data = data_start(wl, entry, &rec);
	if (data < 0)
		return -EUCLEAN;
	if (entry->op == WL_OP_WRITE)
		entry->data = wl_chunk_at(wl, gen, chunk) + data - wl->base;
	return 0;
}

/**
 * wl_entry_verify - compare an entry's data with its checksum
 * @wl: log
 * @entry: from wl_entry_read() or a cursor
 *
 * Context: Any; takes time in proportion to the data.
 * Return: false if the data is damaged; true also if there is no checksum.
 */
bool wl_entry_verify(const struct wl *wl, const struct wl_entry *entry)
{
	const u8 *data = wl_entry_data(wl, entry);
	u64 left = wl_entry_len(entry);
	u8 part[256];
	u32 crc = ~0u;

	if (!wl->data_crc || entry->op != WL_OP_WRITE)
		return true;
	for (; left; left -= min_t(u64, left, sizeof(part)), data += sizeof(part)) {
		u32 len = min_t(u64, left, sizeof(part));

		if (!pm_read(part, data, len))
			return false;
		crc = crc32c(crc, part, len);
	}
	return entry->data_crc == (u32)~crc;
}

/**
 * wl_cursor_start - begin to replay a log
 * @cursor: set
 * @wl: log; nothing changes it until the cursor has reached the end
 * @streams: array of @wl->nr_chunks
 * @flags: WL_VERIFY_DATA
 *
 * Context: Any.
 */
void wl_cursor_start(struct wl_cursor *cursor, const struct wl *wl, struct wl_stream *streams,
		     u32 flags)
{
	*cursor = (struct wl_cursor){ .wl = wl, .streams = streams, .flags = flags };
}

static int damaged(struct wl_cursor *cursor, enum wl_damage_kind kind, u32 gen, const char *why)
{
	cursor->damage = (struct wl_damage){ .kind = kind, .why = why, .gen = gen };
	if (kind != WL_BAD_GENERATION)
		cursor->damage.id = cursor->id;
	return -EUCLEAN;
}

static int damaged_entry(struct wl_cursor *cursor, enum wl_damage_kind kind, u32 chunk, u32 index,
			 const char *why)
{
	damaged(cursor, kind, cursor->gen, why);
	cursor->damage.chunk = chunk;
	cursor->damage.index = index;
	return -EUCLEAN;
}

/* Before all else: reports generations with damaged words. */
static int verify_gens(struct wl_cursor *cursor)
{
	while (cursor->gens_verified < cursor->wl->nr_gens) {
		u32 gen = cursor->gens_verified++;
		struct wl_gen_info info;

		if (wl_gen_read(cursor->wl, gen, &info))
			return damaged(cursor, WL_BAD_GENERATION, gen, "is damaged");
		if (wl_gen_newest(cursor->wl, gen) > info.id)
			return damaged(cursor, WL_BAD_GENERATION, gen,
				       "has lost its word: its chunks were filled in a later life");
		cond_resched();
	}
	return 0;
}

/* Moves a stream down the heap to its position, from @at, which is free. */
static void sift_down(struct wl_cursor *cursor, u32 at, const struct wl_stream *stream)
{
	struct wl_stream *heap = cursor->streams;
	u32 child;

	for (; (child = 2 * at + 1) < cursor->nr_streams; at = child) {
		if (child + 1 < cursor->nr_streams && heap[child + 1].order < heap[child].order)
			child++;
		if (stream->order <= heap[child].order)
			break;
		heap[at] = heap[child];
	}
	heap[at] = *stream;
}

static void push(struct wl_cursor *cursor, const struct wl_stream *stream)
{
	struct wl_stream *heap = cursor->streams;
	u32 at = cursor->nr_streams++;

	for (; at && stream->order < heap[(at - 1) / 2].order; at = (at - 1) / 2)
		heap[at] = heap[(at - 1) / 2];
	heap[at] = *stream;
}

static void pop(struct wl_cursor *cursor, struct wl_stream *stream)
{
	*stream = cursor->streams[0];
	cursor->nr_streams--;
	sift_down(cursor, 0, &cursor->streams[cursor->nr_streams]);
}

/* Adds the stream being loaded to the heap, if it has another entry. */
static int load(struct wl_cursor *cursor)
{
	struct wl_stream *stream = &cursor->loading;
	struct wl_entry entry;

	if (stream->next == stream->fill)
		return 0;
	if (wl_entry_read(cursor->wl, cursor->gen, cursor->id, stream->chunk, stream->next, &entry))
		return damaged_entry(cursor, WL_BAD_ENTRY, stream->chunk, stream->next++,
				     "is damaged");
	stream->order = entry.order;
	push(cursor, stream);
	stream->fill = 0;
	stream->next = 0;
	return 0;
}

/* Reads the word of the generation's next chunk; load() loads its entries. */
static int next_chunk(struct wl_cursor *cursor)
{
	u32 chunk = cursor->chunks_seen++;
	int fill = wl_chunk_read(cursor->wl, cursor->gen, cursor->id, chunk);

	if (fill < 0) {
		cursor->sum_matters = false;
		return damaged_entry(cursor, WL_BAD_CHUNK, chunk, 0, "is damaged");
	}
	cursor->sum += fill;
	cursor->loading = (struct wl_stream){ .chunk = chunk, .fill = fill };
	return 0;
}

/* Verifies once that a sealed generation has as many entries as at sealing. */
static int verify_sum(struct wl_cursor *cursor)
{
	bool wrong = cursor->sum_matters && cursor->sum != cursor->sealed_with;

	cursor->sum_matters = false;
	return wrong ? damaged(cursor, WL_BAD_SUM, cursor->gen,
			       "does not hold as many entries as it was sealed with") : 0;
}

/* True if the generation can be replayed. Damage has been reported before. */
static bool gen_usable(const struct wl *wl, u32 gen, struct wl_gen_info *info)
{
	return !wl_gen_read(wl, gen, info) && info->state != WL_GEN_FREE;
}

/* Moves to the next generation; -ENOENT: there is none. Of two with one identifier the first counts. */
static int next_gen(struct wl_cursor *cursor)
{
	struct wl_gen_info info, best = { };
	u32 gen, best_gen = 0;

	for (gen = 0; gen < cursor->wl->nr_gens; gen++) {
		if (!gen_usable(cursor->wl, gen, &info) || info.id < cursor->id ||
		    (info.id == cursor->id && gen <= cursor->gen))
			continue;
		if (!best.id || info.id < best.id) {
			best = info;
			best_gen = gen;
		}
	}
	if (!best.id)
		return -ENOENT;
	cursor->gen = best_gen;
	cursor->chunks_seen = 0;
	cursor->sum = 0;
	if (best.id == cursor->id || wl_gen_newest(cursor->wl, best_gen) > best.id)
		cursor->chunks_seen = cursor->wl->nr_chunks;
	cursor->sum_matters = best.state == WL_GEN_SEALED && !cursor->chunks_seen;
	cursor->sealed_with = best.entries;
	if (best.id == cursor->id)
		return damaged(cursor, WL_BAD_GENERATION, best_gen,
			       "has the identifier of another one");
	cursor->id = best.id;
	return 0;
}

/* Verifies an entry that is valid by itself against the earlier ones. */
static int verify_order(struct wl_cursor *cursor, const struct wl_stream *stream,
			const struct wl_entry *entry)
{
	u32 data = entry->data - (wl_chunk_at(cursor->wl, entry->gen, entry->chunk) -
				  cursor->wl->base);

	if (entry->order <= cursor->order)
		return damaged_entry(cursor, WL_BAD_ENTRY, entry->chunk, entry->index,
				     "has no sequence number of its own");
	if (wl_entry_len(entry) && data < stream->data_end)
		return damaged_entry(cursor, WL_BAD_ENTRY, entry->chunk, entry->index,
				     "claims the data of another one");
	return 0;
}

/* Takes the oldest entry from the heap. */
static int take(struct wl_cursor *cursor, struct wl_entry *entry)
{
	const struct wl *wl = cursor->wl;
	struct wl_stream *stream = &cursor->loading;
	u32 index;
	int err;

	pop(cursor, stream);
	index = stream->next++;
	err = wl_entry_read(wl, cursor->gen, cursor->id, stream->chunk, index, entry);
	if (err)
		return damaged_entry(cursor, WL_BAD_ENTRY, stream->chunk, index, "is damaged");
	err = verify_order(cursor, stream, entry);
	if (err)
		return err;
	cursor->order = entry->order;
	if (wl_entry_len(entry))
		stream->data_end = wl->base + entry->data + wl_entry_len(entry) -
				   wl_chunk_at(wl, entry->gen, entry->chunk);
	if (cursor->flags & WL_VERIFY_DATA && !wl_entry_verify(wl, entry))
		return damaged_entry(cursor, WL_BAD_DATA, entry->chunk, index,
				     "has data that do not match their checksum");
	return 1;
}

/**
 * wl_cursor_next - the next entry of a replay
 * @cursor: from wl_cursor_start()
 * @entry: set if 1 is returned, or -EUCLEAN for WL_BAD_DATA
 *
 * After -EUCLEAN, cursor->damage describes the damage; the next call continues after it.
 *
 * Context: Any.
 * Return: 1: an entry; 0: there are no more; -EUCLEAN: damage.
 */
int wl_cursor_next(struct wl_cursor *cursor, struct wl_entry *entry)
{
	int err = verify_gens(cursor);

	while (!err) {
		err = load(cursor);
		if (err)
			break;
		if (cursor->id && cursor->chunks_seen < cursor->wl->nr_chunks)
			err = next_chunk(cursor);
		else if (cursor->sum_matters)
			err = verify_sum(cursor);
		else if (!cursor->nr_streams)
			err = next_gen(cursor);
		else
			return take(cursor, entry);
	}
	return err == -ENOENT ? 0 : err;
}
