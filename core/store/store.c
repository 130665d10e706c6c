// SPDX-License-Identifier: GPL-2.0-only
/*
 * Records of files and pages: how each is created, changed and freed.
 *
 * Invariants (docs/formats.md argues them):
 *   - what a commit word vouches for is durable before the word is stored;
 *   - a page record whose commit word is not 0 never gets another check word,
 *     so no half-made record can pass for a whole one;
 *   - a file record's generation only grows, so pages of an earlier life never
 *     count for a later one.
 *
 * super.c has the superblock and opens a store. check.c reads all records and compares them. Nothing
 * here sleeps, locks or allocates.
 */
#include "store.h"

static_assert(sizeof(struct ps_file_onmedia) == 64);
static_assert(sizeof(struct ps_page_onmedia) == 16);

#define FILE_CRC_START	offsetof(struct ps_file_onmedia, type)
#define FILE_CRC_LEN	(offsetof(struct ps_file_onmedia, time) - FILE_CRC_START)

static u64 load(const __le64 *word)
{
	return le64_to_cpu(READ_ONCE(*word));
}

static void flush(const struct ps *ps, void *addr, size_t len)
{
	if (ps->flush_caches && !BREAK_FLUSH)
		pm_flush(addr, len);
}

/* All changes of a record's word are made by this function. */
static void store(const struct ps *ps, __le64 *word, u64 value)
{
	pm_store64(word, cpu_to_le64(value));
	flush(ps, word, sizeof(*word));
}

/**
 * ps_fence - make all earlier stores durable before all later ones
 * @ps: store
 *
 * Context: Any.
 */
void ps_fence(struct ps *ps)
{
	(void)ps;
	pm_fence();
}

static u64 file_commit_word(u32 generation, enum ps_file_state state)
{
	return (u64)generation << PS_FILE_GEN_SHIFT | state;
}

static u32 file_generation(const struct ps *ps, u32 file)
{
	return load(&ps->files[file].commit) >> PS_FILE_GEN_SHIFT;
}

static u32 file_crc(const struct ps_file_onmedia *rec, u32 generation)
{
	__le32 gen = cpu_to_le32(generation);
	u32 crc = crc32c(~0u, &gen, sizeof(gen));

	return ~crc32c(crc, (const u8 *)rec + FILE_CRC_START, FILE_CRC_LEN);
}

/**
 * ps_file_create - begin a new life of a free file record
 * @ps: store
 * @file: record number, free
 * @handle: the lower file; @handle->len is at most PS_HANDLE_MAX
 * @size: minimum size of the file in bytes; 0: the lower file's size counts
 *
 * Durable on return. Pages left from the record's earlier lives don't count.
 *
 * Context: Any; the caller excludes others from this record.
 */
void ps_file_create(struct ps *ps, u32 file, const struct ps_handle *handle, u64 size)
{
	struct ps_file_onmedia *to = &ps->files[file];
	struct ps_file_onmedia rec = {
		.size = cpu_to_le64(size),
		.type = handle->type,
		.len = handle->len,
	};
	u32 generation = file_generation(ps, file) + 1;

	if (!generation)
		generation = 1;
	memcpy(rec.handle, handle->bytes, handle->len);
	rec.crc = cpu_to_le32(file_crc(&rec, generation));
	pm_copy(&to->size, &rec.size, sizeof(rec) - offsetof(struct ps_file_onmedia, size));
	ps_fence(ps);
	store(ps, &to->commit, file_commit_word(generation, PS_FILE_LIVE));
	ps_fence(ps);
}

/**
 * ps_file_set_state - mark a file unlinked, or live again
 * @ps: store
 * @file: record number, not free
 * @state: PS_FILE_LIVE or PS_FILE_UNLINKED
 *
 * Durable on return.
 *
 * Context: Any; the caller excludes others from this record.
 */
void ps_file_set_state(struct ps *ps, u32 file, enum ps_file_state state)
{
	store(ps, &ps->files[file].commit, file_commit_word(file_generation(ps, file), state));
	ps_fence(ps);
}

/**
 * ps_file_free - free a file record and all its pages at once
 * @ps: store
 * @file: record number, not free
 *
 * Durable on return. The page records become stale, which counts as free.
 *
 * Context: Any; the caller excludes others from this record and its pages.
 */
void ps_file_free(struct ps *ps, u32 file)
{
	ps_file_set_state(ps, file, PS_FILE_FREE);
}

/**
 * ps_file_set_size - set the minimum size of a file
 * @ps: store
 * @file: record number, not free
 * @size: bytes
 *
 * Durable after ps_fence(). The data up to @size must be durable before, so a fence is needed before
 * this call, too.
 *
 * Context: Any; the caller excludes others from this record.
 */
void ps_file_set_size(struct ps *ps, u32 file, u64 size)
{
	store(ps, &ps->files[file].size, size);
}

/**
 * ps_file_set_time - set when a file was last changed
 * @ps: store
 * @file: record number, not free
 * @time: nanoseconds since 1970, 0 for unknown
 *
 * Durable after ps_fence(). It has no order relative to other stores.
 *
 * Context: Any; the caller excludes other calls of this function for this record.
 */
void ps_file_set_time(struct ps *ps, u32 file, s64 time)
{
	store(ps, &ps->files[file].time, (u64)time);
}

/**
 * ps_file_read - read and verify a file record
 * @ps: store
 * @file: record number, below nr_files
 * @info: filled in unless the record is damaged; if free, state and generation
 *
 * Context: Any.
 * Return: 0, or -EUCLEAN: the record is damaged.
 */
int ps_file_read(const struct ps *ps, u32 file, struct ps_file_info *info)
{
	struct ps_file_onmedia rec;
	u64 commit;

	memset(info, 0, sizeof(*info));
	if (!pm_read(&rec, &ps->files[file], sizeof(rec)))
		return -EUCLEAN;
	commit = le64_to_cpu(rec.commit);
	info->state = commit & PS_FILE_STATE_MASK;
	info->generation = commit >> PS_FILE_GEN_SHIFT;
	if (info->state > PS_FILE_UNLINKED ||
	    commit != file_commit_word(info->generation, info->state))
		return -EUCLEAN;
	if (info->state == PS_FILE_FREE)
		return 0;
	if (!info->generation || rec.len > PS_HANDLE_MAX ||
	    le32_to_cpu(rec.crc) != file_crc(&rec, info->generation))
		return -EUCLEAN;
	info->size = le64_to_cpu(rec.size);
	info->time = (s64)le64_to_cpu(rec.time);
	info->handle.type = rec.type;
	info->handle.len = rec.len;
	memcpy(info->handle.bytes, rec.handle, rec.len);
	return 0;
}

/**
 * ps_page_addr - address of a page's data
 * @ps: store
 * @page: page number, below nr_pages
 *
 * Context: Any.
 * Return: address of PS_PAGE_SIZE bytes, aligned to that.
 */
void *ps_page_addr(const struct ps *ps, u32 page)
{
	return ps->data + ((u64)page << PS_PAGE_SHIFT);
}

/**
 * ps_page_write - write into a page's data
 * @ps: store
 * @page: page number; free, stale, or out-of-sync
 * @offset: bytes from the start of the page
 * @src: source
 * @len: bytes; stays within the page
 *
 * Durable after ps_fence(). Before that any mix of old and new bytes may survive.
 *
 * Context: Any.
 */
void ps_page_write(struct ps *ps, u32 page, u32 offset, const void *src, u32 len)
{
	pm_copy((u8 *)ps_page_addr(ps, page) + offset, src, len);
}

/**
 * ps_page_zero - write zeros into a page's data
 * @ps: store
 * @page: page number; free, stale, or out-of-sync
 * @offset: bytes from the start of the page
 * @len: bytes; stays within the page
 *
 * As ps_page_write().
 *
 * Context: Any.
 */
void ps_page_zero(struct ps *ps, u32 page, u32 offset, u32 len)
{
	pm_zero((u8 *)ps_page_addr(ps, page) + offset, len);
}

/**
 * ps_page_flush - write back a page's bytes that were stored by other means
 * @ps: store
 * @page: page number
 * @offset: bytes from the start of the page
 * @len: bytes; stays within the page
 *
 * Durable after ps_fence().
 *
 * Context: Any.
 */
void ps_page_flush(struct ps *ps, u32 page, u32 offset, u32 len)
{
	flush(ps, (u8 *)ps_page_addr(ps, page) + offset, len);
}

static u64 page_commit_word(u32 file, u64 index, enum ps_page_state state)
{
	return index << PS_PAGE_INDEX_SHIFT | (u64)file << PS_PAGE_FILE_SHIFT | state;
}

static u64 page_check_word(u32 page, u64 commit, u32 generation)
{
	struct {
		__le64 commit;
		__le32 generation;
		__le32 page;
	} covered = {
		.commit = cpu_to_le64(commit & ~PS_PAGE_STATE_MASK),
		.generation = cpu_to_le32(generation),
		.page = cpu_to_le32(page),
	};

	return (u64)~crc32c(~0u, &covered, sizeof(covered)) << 32 | generation;
}

/**
 * ps_page_prepare - record the owner of a page, without effect yet
 * @ps: store
 * @page: page number, durably free or stale
 * @file: file record, not free
 * @index: page of the file, below PS_MAX_INDEX
 *
 * Durable after ps_fence(), which is needed between this and ps_page_commit().
 *
 * Context: Any; the caller excludes others from this record.
 */
void ps_page_prepare(struct ps *ps, u32 page, u32 file, u64 index)
{
	struct ps_page_onmedia *rec = &ps->pages[page];
	u64 commit = page_commit_word(file, index, PS_PAGE_FREE);

	/*
	 * A stale commit word may name the same file and index; the new check
	 * word would make it valid before the data is durable.
	 */
	if (load(&rec->commit)) {
		store(ps, &rec->commit, 0);
		ps_fence(ps);
	}
	store(ps, &rec->check, page_check_word(page, commit, file_generation(ps, file)));
}

/**
 * ps_page_commit - make a prepared page valid
 * @ps: store
 * @page: page number, prepared for @file and @index, and fenced with its data
 * @file: as in ps_page_prepare()
 * @index: as in ps_page_prepare()
 * @state: PS_PAGE_OUT_OF_SYNC or PS_PAGE_CLEAN
 *
 * Durable after ps_fence().
 *
 * Context: Any; the caller excludes others from this record.
 */
void ps_page_commit(struct ps *ps, u32 page, u32 file, u64 index, enum ps_page_state state)
{
	store(ps, &ps->pages[page].commit, page_commit_word(file, index, state));
}

/**
 * ps_page_set_state - mark a page clean, or out-of-sync
 * @ps: store
 * @page: page number, valid
 * @state: PS_PAGE_OUT_OF_SYNC or PS_PAGE_CLEAN
 *
 * Durable after ps_fence(). Before a clean page is written in place, its state out-of-sync must be
 * durable. Before a page is set clean, the lower file's copy must be durable.
 *
 * Context: Any; the caller excludes others from this record.
 */
void ps_page_set_state(struct ps *ps, u32 page, enum ps_page_state state)
{
	__le64 *commit = &ps->pages[page].commit;

	store(ps, commit, (load(commit) & ~PS_PAGE_STATE_MASK) | state);
}

/**
 * ps_page_free - free a page record
 * @ps: store
 * @page: page number
 *
 * Durable after ps_fence(); before that the page's bytes must not change.
 *
 * Context: Any; the caller excludes others from this record.
 */
void ps_page_free(struct ps *ps, u32 page)
{
	store(ps, &ps->pages[page].commit, 0);
}

/**
 * ps_page_read - read and verify a page record
 * @ps: store
 * @page: page number, below nr_pages
 * @info: filled in if 0 is returned; of a free page only the state
 *
 * Context: Any.
 * Return: 0; -ESTALE: its file record has been freed since, so the page is free; -EUCLEAN: this record
 * or its file's record is damaged.
 */
int ps_page_read(const struct ps *ps, u32 page, struct ps_page_info *info)
{
	struct ps_page_onmedia rec;
	struct ps_file_info file;
	u64 commit, check;

	memset(info, 0, sizeof(*info));
	if (!pm_read(&rec, &ps->pages[page], sizeof(rec)))
		return -EUCLEAN;
	commit = le64_to_cpu(rec.commit);
	check = le64_to_cpu(rec.check);
	if (!commit)
		return 0;
	info->state = commit & PS_PAGE_STATE_MASK;
	info->file = commit >> PS_PAGE_FILE_SHIFT & (PS_MAX_FILES - 1);
	info->index = commit >> PS_PAGE_INDEX_SHIFT;
	if (info->state == PS_PAGE_FREE || info->state > PS_PAGE_CLEAN)
		return -EUCLEAN;
	if (info->file >= ps->nr_files || check != page_check_word(page, commit, (u32)check))
		return -EUCLEAN;
	if (ps_file_read(ps, info->file, &file))
		return -EUCLEAN;
	if (file.state == PS_FILE_FREE || file.generation != (u32)check)
		return -ESTALE;
	return 0;
}

/**
 * ps_pages_commit - make prepared pages valid, durably
 * @ps: store
 * @moves: the pages; data written and flushed, records prepared, nothing fenced yet
 * @n: number of pages
 * @state: PS_PAGE_OUT_OF_SYNC or PS_PAGE_CLEAN
 *
 * After a power cut during this function, each page is valid and complete, or free.
 *
 * Context: Any; the caller excludes others from these records.
 */
void ps_pages_commit(struct ps *ps, const struct ps_move *moves, u32 n, enum ps_page_state state)
{
	const struct ps_move *move;

	if (!BREAK_DATA_FENCE)
		ps_fence(ps);
	for (move = moves; move < moves + n; move++)
		ps_page_commit(ps, move->page, move->file, move->index, state);
	ps_fence(ps);
}

/**
 * ps_pages_free - free page records, durably; the pages can be reused
 * @ps: store
 * @pages: their numbers
 * @n: number of pages
 *
 * Context: Any; the caller excludes others from these records.
 */
void ps_pages_free(struct ps *ps, const u32 *pages, u32 n)
{
	u32 i;

	for (i = 0; i < n; i++)
		ps_page_free(ps, pages[i]);
	if (!BREAK_FREE_FENCE)
		ps_fence(ps);
}
