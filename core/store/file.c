// SPDX-License-Identifier: GPL-2.0-only
/*
 * Records of files: how each is created, changed and freed.
 *
 * Invariants (docs/formats.md argues them):
 *   - what a commit word vouches for is durable before the word is stored;
 *   - a file record's generation only grows, so pages of an earlier life never
 *     count for a later one;
 *   - a record whose line the medium has lost is written as a whole, with all
 *     that it must hold, or not at all: then the caller is told.
 *
 * page.c has the records of pages. Nothing here sleeps, locks or allocates.
 */
#include "layout.h"

static_assert(sizeof(struct ps_file_onmedia) == PS_LINE);

#define FILE_CRC_START	offsetof(struct ps_file_onmedia, type)
#define FILE_CRC_LEN	(offsetof(struct ps_file_onmedia, time) - FILE_CRC_START)

static u64 file_commit_word(u32 generation, enum ps_file_state state)
{
	return (u64)generation << PS_FILE_GEN_SHIFT | state;
}

/*
 * The generation of a file record whose line is lost: the largest that any page record has. So all pages
 * that name the file are of this generation, or of an earlier one.
 *
 * Records of other files count, too, and free ones: another thread may have stored the 0 of a page's commit
 * word, and not fenced it. A power cut may bring the word back. The check word stays until the 0 is durable.
 */
static u32 newest_generation(const struct ps *ps)
{
	struct ps_page_onmedia line[PS_LINE_RECORDS];
	u32 page, n, newest = 0;

	for (page = 0; page < ps->nr_pages; page += n) {
		n = min_t(u32, PS_LINE_RECORDS, ps->nr_pages - page);
		if (!pm_read(line, &ps->pages[page], n * sizeof(*line)))
			continue;	/* a lost line never says again what it said */
		for (u32 i = 0; i < n; i++)
			newest = max_t(u32, newest, le64_to_cpu(line[i].check));
	}
	return newest;
}

static u32 file_crc(const struct ps_file_onmedia *rec, u32 generation)
{
	__le32 gen = cpu_to_le32(generation);
	u32 crc = crc32c(~0u, &gen, sizeof(gen));

	return ~crc32c(crc, (const u8 *)rec + FILE_CRC_START, FILE_CRC_LEN);
}

/* Writes a file record whose line is lost: the line stays lost, or is whole. Durable on return. */
static void file_write_line(struct ps *ps, u32 file, struct ps_file_onmedia *rec, u32 generation,
			    enum ps_file_state state)
{
	rec->commit = cpu_to_le64(file_commit_word(generation, state));
	pm_copy(&ps->files[file], rec, sizeof(*rec));
	ps_fence(ps);
}

static void file_make(struct ps_file_onmedia *rec, u32 generation, const struct ps_handle *handle, u64 size)
{
	*rec = (struct ps_file_onmedia){
		.size = cpu_to_le64(size),
		.type = handle->type,
		.len = handle->len,
	};
	memcpy(rec->handle, handle->bytes, handle->len);
	rec->crc = cpu_to_le32(file_crc(rec, generation));
}

/**
 * ps_file_create - begin a new life of a free file record
 * @ps: store
 * @file: record number, free
 * @handle: the lower file; @handle->len is at most PS_HANDLE_MAX
 * @size: minimum size of the file in bytes; 0: the lower file's size counts
 *
 * Durable on return. Pages left from the record's earlier lives don't count. A lost line is healed; that
 * reads all page records.
 *
 * Context: Any; the caller excludes others from this record.
 * Return: the generation of this life, for ps_file_rewrite().
 */
u32 ps_file_create(struct ps *ps, u32 file, const struct ps_handle *handle, u64 size)
{
	struct ps_file_onmedia *to = &ps->files[file];
	struct ps_file_onmedia rec;
	u32 generation;
	bool lost = !ps_file_generation(ps, file, &generation);

	if (lost)
		generation = newest_generation(ps);
	generation = generation + 1 ?: 1;
	file_make(&rec, generation, handle, size);
	if (lost) {
		file_write_line(ps, file, &rec, generation, PS_FILE_LIVE);
		return generation;
	}
	pm_copy(&to->size, &rec.size, sizeof(rec) - offsetof(struct ps_file_onmedia, size));
	ps_fence(ps);
	ps_store(ps, &to->commit, file_commit_word(generation, PS_FILE_LIVE));
	ps_fence(ps);
	return generation;
}

/**
 * ps_file_rewrite - write a file record that the medium has lost
 * @ps: store
 * @file: record number, not free
 * @info: what the record said, and @info->generation with that: it is never guessed, for a wrong one would
 *	bring pages of an earlier life back, or lose those of this life
 *
 * Durable on return. Does nothing if the record can be read.
 *
 * Context: Any; the caller excludes others from this record.
 */
void ps_file_rewrite(struct ps *ps, u32 file, const struct ps_file_info *info)
{
	struct ps_file_onmedia rec;

	if (ps_file_load(ps, file, &rec))
		return;
	file_make(&rec, info->generation, &info->handle, info->size);
	rec.time = cpu_to_le64((u64)info->time);
	file_write_line(ps, file, &rec, info->generation, info->state);
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
 * Return: 0; -EIO: the medium has lost the record, and nothing was stored. ps_file_rewrite() heals it.
 */
int ps_file_set_state(struct ps *ps, u32 file, enum ps_file_state state)
{
	u32 generation;

	if (!ps_file_generation(ps, file, &generation))
		return -EIO;
	ps_store(ps, &ps->files[file].commit, file_commit_word(generation, state));
	ps_fence(ps);
	return 0;
}

/**
 * ps_file_free - free a file record and all its pages at once
 * @ps: store
 * @file: record number, not free
 *
 * Durable on return. The page records become stale, which counts as free. A lost line is healed; that reads
 * all page records.
 *
 * Context: Any; the caller excludes others from this record and its pages.
 */
void ps_file_free(struct ps *ps, u32 file)
{
	struct ps_file_onmedia rec = { };

	if (ps_file_set_state(ps, file, PS_FILE_FREE))
		file_write_line(ps, file, &rec, newest_generation(ps), PS_FILE_FREE);
}

/*
 * Stores a word that may change alone. The processor needs the line for the store, and the caller waits for
 * the store by a fence. So reading the word first costs a call, and no second wait for the medium.
 */
static int file_store(struct ps *ps, __le64 *word, u64 value)
{
	__le64 old;

	if (!pm_read(&old, word, sizeof(old)))
		return -EIO;
	ps_store(ps, word, value);
	return 0;
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
 * Return: as ps_file_set_state().
 */
int ps_file_set_size(struct ps *ps, u32 file, u64 size)
{
	return file_store(ps, &ps->files[file].size, size);
}

/**
 * ps_file_set_time - set when a file was last changed
 * @ps: store
 * @file: record number, not free
 * @time: nanoseconds since 1970, 0 for unknown
 *
 * Durable after ps_fence(). It has no order relative to other stores.
 *
 * Context: Any; the caller excludes other calls of this function for this record, and ps_file_rewrite().
 * Return: as ps_file_set_state().
 */
int ps_file_set_time(struct ps *ps, u32 file, s64 time)
{
	return file_store(ps, &ps->files[file].time, (u64)time);
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
	if (!ps_file_load(ps, file, &rec))
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
